"""Given a query, which passages?"""
