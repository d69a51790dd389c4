"""One server for all windows of a project."""
