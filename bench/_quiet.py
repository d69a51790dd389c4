"""Serves a project as the shared server does, with vectors that cost nothing to compute."""

from __future__ import annotations

from bench._corpora import StandIn

from ragdocs.search.encoders import choose
from ragdocs.serve.shared import daemon


def main() -> None:
    # A workspace that opens has its encoder made here; mypy would miss the name if it moved.
    choose.open_encoder = lambda *_: StandIn()
    daemon.main()


if __name__ == "__main__":
    main()
