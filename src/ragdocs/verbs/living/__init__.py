"""Living links: what became of the files that memories and documents are about."""
