"""Memories of other tools and for other tools: one module for each format."""
