"""What do we need of a PostgreSQL server?"""
