"""Given a query, which chunks."""
