"""No secret reaches a file, the index, the history or an answer.

Whichever way a memory is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.errors import ConfigError, ValidationError
from ragdocs.serve.cli import app as cli
from ragdocs.text import frontmatter as metadata

if TYPE_CHECKING:
    from tests.conftest import Project

# Put together here, so that no scanner takes this file for a leak.
TOKEN = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
OWN = "ticket-" + "4711-" + "0815"


def leaks(project: Project, secret: str) -> list[Path]:
    return [
        path
        for path in project.root.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]


def test_every_way_of_writing_keeps_secrets_out(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENT_API_KEY", "q7Zp-93kd-Lw0x-Tt5v")
    for secret in (TOKEN, "q7Zp-93kd-Lw0x-Tt5v"):
        name = f"m{len(secret)}"
        workspace = project.open()
        memories = workspace.memories
        answers = [
            memories.create(f"{name}-a", f"The value is {secret} today.", ["x"]),
            memories.update(f"{name}-a", f"Now it is {secret}."),
            memories.append(f"{name}-a", f"And again {secret}."),
            memories.create(f"{name}-b", "Nothing here.", []),
            workspace.merges.merge(
                [f"{name}-a", f"{name}-b"], f"{name}-c", f"Merged, with {secret}."
            ),
        ]
        workspace.save()
        assert leaks(project, secret) == []
        assert secret not in str(answers)
        assert secret not in str(memories.search(f"the value {secret}")["result"])
        told = [answer["warnings"] for answer in answers]
        assert [bool(warnings) for warnings in told] == [True, True, True, False, True]
        assert "line" in told[0][0]


def test_a_secret_among_the_tags_leaves_a_list_of_tags(project: Project) -> None:
    memories = project.open().memories
    memories.create("a", "x", ["ok", TOKEN, "later"])
    memories.create("b", f"---\ntags: [ok, {TOKEN}, later]\n---\nx", [])
    for name in ("a", "b"):
        block, _, _ = metadata.split(memories.read(name)["content"])
        assert metadata.load(block or "")[0]["tags"] == ["ok", "(redacted:github-token)", "later"]
    assert leaks(project, TOKEN) == []


def test_a_persons_own_pattern_counts(project: Project) -> None:
    project.write("config.toml", '[redaction]\npatterns = ["ticket-[0-9]{4}-[0-9]{4}"]\n')
    memories = project.open().memories
    memories.create("a", f"See {OWN}.", [])
    assert "See [redacted:pattern-1]." in memories.read("a")["content"]


def test_a_pattern_that_is_none_is_refused_when_the_project_opens(project: Project) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        project.open(**{"redaction.patterns": ["[unclosed"]})


def test_a_pattern_that_takes_everything_is_refused_by_file_and_line(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("config.toml", "[redaction]\npatterns = ['[\\s\\S]+']\n")
    with pytest.raises(
        ConfigError, match=r"pattern 1 of config\.toml:2 matches 100% of an ordinary text"
    ):
        project.open()
    assert cli.main(["check-config", "--project", str(project.root)]) == 1
    assert "config.toml:2" in capsys.readouterr().err


def test_what_a_pattern_leaves_nothing_of_is_refused_and_the_pattern_named(
    project: Project,
) -> None:
    project.write("config.toml", "[redaction]\npatterns = ['(?s)BEGIN.*', 'ticket-[0-9]{4}']\n")
    memories = project.open().memories
    memories.create("a", "Before.", [])
    refusal = r"redaction pattern 1 of config\.toml:2 matches all of it"
    with pytest.raises(ValidationError, match=refusal):
        memories.create("b", "BEGIN\nall of it", [])
    with pytest.raises(ValidationError, match=refusal):
        memories.update("a", "BEGIN\nall of it")
    assert memories.read("a")["content"].endswith("Before.")
    assert not (project.root / ".memories/b.md").exists()
    with pytest.raises(
        ValidationError,
        match=r"name of the file holds a secret, says redaction pattern 2 of config",
    ):
        memories.create("ticket-1234", "text", [])
    memories.create("c", "See BEGIN and the rest", [])
    assert "See [redacted:pattern-1]" in memories.read("c")["content"]


def test_text_without_secrets_is_written_as_given(project: Project) -> None:
    text = "---\ntype: fact\n---\n\nThe password is checked in [[src/auth.py]]; commit 3f2a9b8c7d6e5f4a.\n"
    memories = project.open().memories
    memories.create("a", "x", [])
    memories.update("a", text)
    assert memories.read("a")["content"] == text


def test_a_long_value_of_the_frontmatter_is_not_folded_between_a_name_and_its_secret(
    project: Project,
) -> None:
    secret = "kR7" + "wZ2qV9" * 4
    memories = project.open().memories
    for length in range(60, 120, 4):
        words = ("word " * 30)[:length].strip()
        memories.create(f"m{length}", f'---\nnote: {words} client_secret = "{secret}"\n---\nx', [])
    assert leaks(project, secret) == []


def test_a_secret_is_refused_as_the_name_of_a_file(project: Project) -> None:
    memories = project.open().memories
    with pytest.raises(ValidationError, match="the name of the file holds a secret") as refused:
        memories.create(f"notes/{TOKEN}", "text", [])
    assert TOKEN not in str(refused.value)
    assert not list(project.root.rglob("*ghp_*"))
