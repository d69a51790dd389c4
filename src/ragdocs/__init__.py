"""ragdocs: documentation search and a memory graph for the agents in your IDE."""

__version__ = "0.2.0"
