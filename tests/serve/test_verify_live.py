"""The tool that verifies asks the index of the server that answers, not one on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect


def test_a_server_that_is_behind_its_files_says_so(project: Project, connect: Connect) -> None:
    project.doc("a.md", "# Alpha\n\nOne passage.\n")
    # Nobody follows the files of this server.
    session = connect(**{"server.toolsets": ["docs", "quality"]}).settle()
    verified = session.call("verify_index")
    assert verified["identical"]
    assert verified["lanes"]["docs"]["compared"]["documents"] == 1
    project.doc("a.md", "# Alpha\n\nAnother passage.\n")
    project.doc("b.md", "# Beta\n")
    behind = session.call("verify_index")
    assert not behind["identical"]
    assert behind["lanes"]["docs"]["stale"] == ["docs/a.md"]
    assert behind["lanes"]["docs"]["missing"] == ["docs/b.md"]
    assert "docs/b.md: not indexed" in session.text("verify_index")
