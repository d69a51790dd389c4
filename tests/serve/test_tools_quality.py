"""Why a search finds a document, as an agent and as a person ask it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ragdocs.serve.cli import app as cli

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect


@pytest.fixture
def asked(project: Project) -> Project:
    project.doc("auth.md", "# Tokens\n\nTokens are refreshed every quarter of an hour.\n")
    project.memory("plan.md", "# Plan\n\nMove to JWT.\n")
    return project


def test_an_agent_learns_why_a_document_is_found_or_not(asked: Project, connect: Connect) -> None:
    session = connect(**{"server.toolsets": ["docs", "quality"]})
    shown = session.call("explain_search", query="tokens refreshed", path="docs/auth.md")
    assert (shown["stage"], shown["place"]) == ("shown", 1)
    assert sum(signal["share"] for signal in shown["signals"]) == pytest.approx(
        shown["score"], abs=0.001
    )
    absent = session.call("explain_search", query="tokens", path="docs/auht.md")
    assert absent["stage"] == "not indexed"
    assert "did you mean docs/auth.md" in absent["why"]
    assert (
        session.call("explain_search", query="JWT", path="plan", lane="memory")["stage"] == "shown"
    )


def test_the_tool_is_not_among_those_that_are_there_by_default(
    asked: Project, connect: Connect
) -> None:
    assert "explain_search" not in [tool.name for tool in connect().tools()]


def test_a_person_learns_it_in_a_terminal(
    asked: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    common = [
        "--project",
        str(asked.root),
        "--set",
        "embedding.model=hash",
        "--set",
        "memory.enabled=true",
    ]
    assert cli.main(["explain", "are tokens refreshed", "docs/auth.md", *common]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("docs/auth.md: shown as number 1: words: tokens, refreshed")
    assert "of the query in it: tokens, refreshed; not in it: are" in printed
    assert (
        cli.main(["explain", "JWT", "plan", "--lane", "memory", "--tag", "ui", "--json", *common])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["stage"] == "filtered"
