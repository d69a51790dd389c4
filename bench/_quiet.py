"""Serves a project as `ragdocs mcp` does, with vectors that cost nothing.

All but the encoding is left.
"""

from __future__ import annotations

from bench._corpora import StandIn


def main() -> None:
    from ragdocs.search.encoders import minilm as encode

    # The workspace takes its encoder from here when it opens.
    encode.open_encoder = lambda *_: StandIn()
    from ragdocs.serve.shared import daemon as shared

    shared.main()


if __name__ == "__main__":
    main()
