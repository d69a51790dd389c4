"""What the search page shows where there is little to show, and how it marks a passage."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.conftest import Project

from ragdocs.serve.live import Live
from ragdocs.serve.web import search
from ragdocs.serve.web.excerpt import SHOWN, excerpt


def page_of(project: Project, path: str, **flags: object) -> tuple[int, str]:
    live = Live(project.config(**flags))
    live.start()
    with TestClient(Starlette(routes=search.routes(live))) as client:
        answer = client.get(path)
    return answer.status_code, answer.text


@pytest.mark.parametrize(
    ("flags", "path", "status", "words"),
    [
        ({}, "/", 200, "No memories yet"),
        ({"memory.enabled": False}, "/", 200, "Memory is off"),
        ({"memory.enabled": False}, "/?q=tokens", 200, "<mark>Tokens</mark>"),
        ({"memory.enabled": False}, "/?q=tokens&lane=memory", 503, "switched off"),
        ({}, "/?q=tokens&lane=nowhere", 400, "there is no lane"),
        ({}, "/?q=tokens&since=someday", 400, "someday"),
        ({}, f"/?q=tokens&type={'x' * 101}", 400, "longer than"),
        ({}, f"/?q=tokens&status={'x' * 201}", 400, "longer than"),
        ({}, "/?q=tokens" + "&tag=x" * 101, 400, "more than"),
        ({}, "/?tag=nobody", 200, "No document passes these filters"),
        ({}, "/?q=tokens&why=docs/absent.md", 200, "not indexed"),
        ({}, "/?q=tokens&offset=7", 200, "Previous results"),
    ],
)
def test_a_page_with_little_on_it_says_why(
    project: Project, flags: dict[str, object], path: str, status: int, words: str
) -> None:
    project.doc("auth.md", "# Authentication\n\nTokens are refreshed.\n")
    answer = page_of(project, path, **flags)
    assert (answer[0], words in answer[1]) == (status, True), answer[1]


@pytest.mark.parametrize(
    ("query", "passage", "marked"),
    [
        (
            "delivered webhooks",
            "The webhook delivers `webhook_id`.",
            ["webhook", "delivers", "webhook"],
        ),
        ("how is it", "How it is done", ["How", "it", "is"]),
        ("getUser", "Call getUser or get_user.", ["getUser", "get", "user"]),
        ("Müller", "Frau MULLER kam.", ["MULLER"]),
        ("認証", "認証の設定", ["認証の設定"]),
        ("absent", "Nothing of it", []),
    ],
)
def test_the_words_of_a_query_are_marked_as_they_are_searched(
    query: str, passage: str, marked: list[str]
) -> None:
    pieces = excerpt(passage, query)
    runs = [run for piece in pieces for run in piece.runs]
    assert [run.text for run in runs if run.is_marked] == marked
    assert "".join(run.text for run in runs) == passage.replace("`", "")


def test_a_long_passage_is_cut_around_the_words() -> None:
    passage = (
        f"# Title\n\n{'filler ' * 200}the **webhook** was [delivered](x.md) twice. {'rest ' * 200}"
    )
    pieces = excerpt(passage, "webhook delivered twice")
    text = "".join(run.text for piece in pieces for run in piece.runs)
    assert "the webhook was delivered twice." in text
    assert text.startswith("… ")
    assert text.endswith(" …")
    assert len(text) <= SHOWN + 4
