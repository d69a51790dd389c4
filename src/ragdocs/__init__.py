"""ragdocs: documentation search and a memory graph for the agents in your IDE."""

__version__ = "0.4.0"
__all__ = ["Project", "__version__", "open_project"]

# Type checkers take it for true; importing `typing` would cost a window a part of its start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ragdocs.serve.library import Project, open_project


def __getattr__(name: str) -> object:
    """Import the library when it is asked for, because every start imports this module."""
    if name not in {"Project", "open_project"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ragdocs.serve import library

    return getattr(library, name)
