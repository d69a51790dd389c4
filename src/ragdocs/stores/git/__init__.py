"""Text in a git repository."""
