"""The command that serves MCP, which is two rims in one: a command line starts a server."""

from __future__ import annotations

from collections.abc import Sequence

from ragdocs.serve.source import Source


def serve_mcp(project: str | None, pairs: Sequence[str]) -> None:
    """Serve a project over standard input and output until the client goes away."""
    from ragdocs.serve.mcp.stdio import serve

    serve(Source(project, pairs))
