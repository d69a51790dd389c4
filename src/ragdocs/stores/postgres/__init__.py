"""Texts, accesses and summaries on the rows of a team database."""
