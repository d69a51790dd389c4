"""Serves a project as the shared server does, with vectors that cost nothing to compute."""

from __future__ import annotations

from bench._corpora import StandIn

from ragdocs import workspace
from ragdocs.serve.shared import daemon


def main() -> None:
    # The workspace takes its encoder from here when it opens.
    workspace.open_encoder = lambda *_: StandIn()  # type: ignore[attr-defined]
    daemon.main()


if __name__ == "__main__":
    main()
