"""Where the text lives."""
