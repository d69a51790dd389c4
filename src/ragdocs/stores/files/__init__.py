"""Text in files."""
