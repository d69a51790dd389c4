"""An index in the rows of a PostgreSQL database, shared by all servers of a team."""
