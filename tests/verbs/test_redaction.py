"""No secret reaches a file, the index, the history or an answer.

Whichever way a memory is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.errors import ConfigError, ValidationError
from ragdocs.serve.cli import app as cli
from ragdocs.verbs.memories import record

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.verbs.memories.write import Memories

# Put together here, so that no scanner takes this file for a leak.
TOKEN = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
ALL = "BEGIN\nall of it"


def leaks(project: Project, secret: str) -> list[Path]:
    files = filter(Path.is_file, project.root.rglob("*"))
    return [path for path in files if secret.encode() in path.read_bytes()]


def text_of(memories: Memories, name: str) -> str:
    return memories.read(name).source.text


@pytest.mark.parametrize("secret", [TOKEN, "q7Zp-93kd-Lw0x-Tt5v"])
def test_every_way_of_writing_keeps_secrets_out(
    project: Project, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("PAYMENT_API_KEY", "q7Zp-93kd-Lw0x-Tt5v")
    workspace = project.open()
    memories = workspace.memories
    outcomes = [
        memories.create("a", f"The value is {secret} today.", ["x"]).written,
        memories.update("a", f"Now it is {secret}.").written,
        memories.append("a", f"And again {secret}.").written,
        memories.create("b", "Nothing here.", []).written,
        workspace.merges.merge(["a", "b"], "c", f"Merged, with {secret}.").written[0],
    ]
    workspace.save()
    assert leaks(project, secret) == []
    assert secret not in str((outcomes, memories.search(f"the value {secret}").hits))
    assert [len(written.removed) for written in outcomes] == [1, 1, 1, 0, 1]
    assert "line" in outcomes[0].removed[0]


def test_a_secret_among_the_tags_leaves_a_list_of_tags(project: Project) -> None:
    memories = project.open().memories
    memories.create("a", "x", ["ok", TOKEN, "later"])
    memories.create("b", f"---\ntags: [ok, {TOKEN}, later]\n---\nx", [])
    for name in ("a", "b"):
        tags = record.own_fields(text_of(memories, name))["tags"]
        assert tags == ["ok", "(redacted:github-token)", "later"]
    assert leaks(project, TOKEN) == []


def test_a_pattern_that_is_none_or_takes_everything_is_refused_by_file_and_line(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        project.open(**{"redaction.patterns": ["[unclosed"]})
    project.write("config.toml", "[redaction]\npatterns = ['[\\s\\S]+']\n")
    refusal = r"pattern 1 of config\.toml:2 matches 100% of an ordinary text"
    with pytest.raises(ConfigError, match=refusal):
        project.open()
    assert cli.main(["check-config", "--project", str(project.root)]) == 1
    assert "config.toml:2" in capsys.readouterr().err


def test_a_persons_own_pattern_counts_and_is_named_where_it_leaves_nothing(
    project: Project,
) -> None:
    project.write("config.toml", "[redaction]\npatterns = ['(?s)BEGIN.*', 'ticket-[0-9]{4}']\n")
    memories = project.open().memories
    memories.create("a", "Before ticket-4711.", [])
    refusal = r"pattern 1 of config\.toml:2 matches all of it"
    with pytest.raises(ValidationError, match=refusal):
        memories.create("b", ALL, [])
    with pytest.raises(ValidationError, match=refusal):
        memories.update("a", ALL)
    assert text_of(memories, "a").endswith("Before [redacted:pattern-2].")
    assert not (project.root / ".memories/b.md").exists()
    memories.create("c", f"See {ALL}", [])
    assert "See [redacted:pattern-1]" in text_of(memories, "c")


def test_text_without_secrets_is_written_as_given(project: Project) -> None:
    checked = "The password is checked in [[src/auth.py]]; commit 3f2a9b8c7d6e5f4a."
    text = f"---\ntype: fact\n---\n\n{checked}\n"
    memories = project.open().memories
    memories.create("a", "x", [])
    memories.update("a", text)
    assert text_of(memories, "a") == text


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
    project.write("config.toml", "[redaction]\npatterns = ['ticket-[0-9]{4}']\n")
    memories = project.open().memories
    for name in (TOKEN, "ticket-1234"):
        with pytest.raises(ValidationError, match="the name of the file holds a secret") as refused:
            memories.create(f"notes/{name}", "text", [])
        assert name not in str(refused.value)
    assert "redaction pattern 1 of config" in str(refused.value)
    assert not (project.root / ".memories").exists()
