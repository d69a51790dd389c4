"""A team: one database, several people, several servers."""
