"""From the options of a command line to a server that speaks MCP."""

from __future__ import annotations

from collections.abc import Sequence

from ragdocs.serve.source import Source, load_config

__all__ = ["load_config", "serve_mcp"]


def serve_mcp(project: str | None, pairs: Sequence[str]) -> None:
    """Serve a project over standard input and output until the client goes away."""
    from ragdocs.serve.mcp.stdio import serve

    serve(Source(project, pairs))
