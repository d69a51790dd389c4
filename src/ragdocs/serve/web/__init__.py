"""The page: what a person looks at in a browser."""
