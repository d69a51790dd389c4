"""Text beyond the project: other folders, revisions of repositories, installed packages."""
