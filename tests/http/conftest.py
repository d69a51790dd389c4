"""One project and one server for all tests that only ask it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.conftest import Project
from tests.http.site import Site, make_token, serving


@dataclass(frozen=True)
class World:
    """A server, the project behind it, and a token for each role."""

    site: Site
    project: Project
    writer: str
    reader: str
    # A token of somebody else who may write.
    colleague: str = ""
    cookies: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("http")
    before = dict(os.environ)
    for variable in ("CACHE", "STATE", "DATA", "CONFIG"):
        os.environ[f"XDG_{variable}_HOME"] = str(folder / variable.casefold())
    root = folder / "project"
    root.mkdir()
    project = Project(root)
    project.write("config.toml", "[memory]\nenabled = true\n[journal]\nenabled = true\n")
    project.doc("guide.md", "# Guide\n\nTokens are refreshed every quarter of an hour.\n")
    project.memory("plan.md", "---\ntype: plan\ntags: [auth]\n---\nMove to JWT in June.\n")
    writer, reader = make_token(root, "--role", "writer"), make_token(root)
    colleague = make_token(root, "--role", "writer")
    with serving(root) as site:
        os.environ.clear()
        os.environ.update(before)
        yield World(site, project, writer, reader, colleague)
