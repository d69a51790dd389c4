"""Verbs as endpoints: the same answers as tools, clear errors, limits and figures."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.http.site import make_token, serving

from ragdocs.serve.http import openapi
from ragdocs.serve.surface.catalog import every

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.http.conftest import World


def test_a_verb_answers_by_address_and_by_body_alike(world: World) -> None:
    by_body = world.site.ask("/api/search_docs", {"query": "refreshed"}, token=world.reader)
    by_address = world.site.ask("/api/search_docs?query=refreshed", token=world.reader)
    assert by_body.json["result"][0]["path"] == "docs/guide.md"
    assert by_body.json == by_address.json


def test_every_tool_has_an_endpoint_that_the_description_names(world: World) -> None:
    described = world.site.ask("/openapi.json", token=world.reader).json
    asked = {f"/api/{verb.name}" for verb in every() if verb.tool or verb.page}
    assert set(described["paths"]) == asked
    for path, operations in described["paths"].items():
        schema = operations["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema["additionalProperties"] is False, path


def test_every_reference_of_the_description_leads_somewhere() -> None:
    described = openapi.description()
    names: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            names.extend([value["$ref"]] if "$ref" in value else [])
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    collect(described)
    for name in names:
        assert name.removeprefix("#/components/schemas/") in described["components"]["schemas"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/api/search_docs", {}, 400, "query"),
        ("/api/search_docs", {"query": "x", "bogus": 1}, 400, "bogus"),
        ("/api/search_docs", {"query": "x" * 30_000}, 400, "longer than"),
        ("/api/search_docs", b"[1]", 400, "not a JSON object"),
        ("/api/search_docs", b"{", 400, "not JSON"),
        ("/api/search_docs", b"[" * 100_000, 400, "not JSON"),
        ("/api/read_memory", {"filename": "none.md"}, 404, "none.md"),
        ("/api/read_memory", {"filename": "../config.toml"}, 400, ""),
        ("/api/create_memory", {"filename": "plan.md", "content": "x", "tags": []}, 409, "plan.md"),
        ("/api/no_such_verb", {}, 404, ""),
    ],
)
def test_what_cannot_be_done_is_said(
    world: World, path: str, body: object, status: int, words: str
) -> None:
    answer = world.site.ask(path, body, token=world.writer)
    assert answer.status == status, answer.text
    assert words in answer.text


def test_a_write_by_address_is_no_write(world: World) -> None:
    path = "/api/create_memory?filename=get.md&content=x"
    assert world.site.ask(path, token=world.writer).status == 405
    assert not (world.project.root / ".memories/get.md").exists()


def test_a_conflict_comes_with_all_its_texts(world: World) -> None:
    token = world.writer
    world.site.ask(
        "/api/create_memory", {"filename": "race.md", "content": "one\n", "tags": []}, token=token
    )
    read = world.site.ask("/api/read_memory", {"filename": "race.md"}, token=token).json
    update = {"filename": "race.md", "expected_version": read["version"]}
    first = world.site.ask("/api/update_memory", {**update, "content": "two\n"}, token=token)
    assert first.status == 200
    second = world.site.ask("/api/update_memory", {**update, "content": "three\n"}, token=token)
    assert second.status == 409
    conflict = second.json["conflict"]
    assert "two" in conflict["theirs"]
    assert "three" in conflict["yours"]
    assert conflict["version"] == first.json["version"]


def test_a_body_that_is_too_large_is_refused_before_it_is_read(world: World) -> None:
    refused = world.site.ask("/api/search_docs", b"", token=world.reader, content_length="99999999")
    assert refused.status == 413


def test_what_an_agent_writes_is_told_to_open_pages(world: World) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", world.site.port, timeout=20)
    headers = {"authorization": f"Bearer {world.reader}", "host": world.site.host}
    connection.request("GET", "/api/events", headers=headers)
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    memory = {"filename": "news.md", "content": "# News\n\nfresh", "tags": []}
    world.site.ask("/api/create_memory", memory, token=world.writer)
    lines: list[bytes] = []
    while not any(line.startswith(b"data:") for line in lines):
        lines.append(response.readline())
    data = json.loads(lines[-1].removeprefix(b"data:"))
    assert (data["lane"], data["path"], data["change"]) == ("memory", "news.md", "written")
    connection.close()


def test_figures_tell_requests_calls_and_indexes(world: World) -> None:
    world.site.ask("/api/search_docs?query=x", token=world.reader)
    text = world.site.ask("/metrics", token=world.reader).text
    assert 'ragdocs_call_seconds_count{outcome="done",verb="search_docs"}' in text
    assert 'ragdocs_documents{lane="docs",project=""} 1.0' in text
    assert 'ragdocs_http_requests_total{method="GET",status="200"}' in text
    assert "ragdocs_passages_to_embed" in text


def test_callers_who_ask_too_often_are_told_when_to_come_back(project: Project) -> None:
    project.write("config.toml", "")
    token = make_token(project.root)
    with serving(project.root, "--requests-a-second", "1") as site:
        statuses = [site.ask("/api/events-none", token=token).status for _ in range(210)]
        assert statuses[0] == 404
        refused = site.ask("/api/search_docs?query=x", token=token)
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) >= 1
        # Somebody else is not kept waiting.
        assert site.ask("/healthz").status == 200


def test_a_call_that_takes_too_long_is_given_up(project: Project) -> None:
    project.write("config.toml", "")
    project.doc("guide.md", "# Guide\n\nTokens.\n")
    token = make_token(project.root)
    with serving(project.root, "--call-seconds", "0.0001") as site:
        refused = site.ask("/api/search_docs?query=tokens", token=token)
        assert refused.status == 408
        assert "longer than" in refused.json["error"]


def test_a_signal_ends_the_server_after_the_requests_it_has(project: Project) -> None:
    project.write("config.toml", "[memory]\nenabled = true\n")
    token = make_token(project.root, "--role", "writer")
    with serving(project.root, cold=True) as site:
        statuses: list[int] = []

        def write(number: int) -> None:
            memory = {"filename": f"m{number}.md", "content": "x", "tags": []}
            try:
                statuses.append(site.ask("/api/create_memory", memory, token=token).status)
            except OSError:
                statuses.append(0)

        write(0)
        threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 9)]
        for thread in threads:
            thread.start()
        assert site.stop() == 0
        for thread in threads:
            thread.join()
        written = len(list((project.root / ".memories").glob("m*.md")))
        # Whatever was acknowledged is there.
        assert written >= statuses.count(200)
