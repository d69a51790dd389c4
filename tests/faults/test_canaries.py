"""Secrets that must not be found again.

Through every way of writing, in every place, answer, error and log.
"""

from __future__ import annotations

import io
import json
import random
import string
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs import config
from ragdocs.project.identity import clean_address
from ragdocs.serve.cli import app as cli

from .window import SETTINGS, Window

if TYPE_CHECKING:
    from tests.conftest import Project

    from .conftest import Tally

SCORE = "S7 canaries"
EVERY_LANE = ("--set", "journal.enabled=true", "--set", "docs.commits=true")
EVERY_TOOLSET = ("--set", f"server.toolsets={','.join(config.KEYS['server.toolsets'].choices)}")
LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
# Where a secret stands in a text: the canary itself comes in at the braces. No issuer's form stands
# in this file.
FORMS = (
    "The token is gh" + "p_{36} until Monday.",
    "slack: xo" + "xb-{n12}-{n12}-{24}",
    "AWS_SECRET_ACCESS_KEY={40}",
    "key: AI" + "zaSy{33}",
    "curl -H 'Authorization: Bearer {40}' https://host/api",
    "postgres://me:{18}@db.internal:5432/shop",
    "git clone https://oauth2:{24}@git.internal/a/b.git",
    "| password | {16} |",
    'client_secret = "{32}"',
    "sk" + "_live_{24}",
    "Our npm token npm" + "_{36} is used by the robot.",
    "da" + "pi{h32}",
    "export DB_PASSWORD='{14}'",
    "- `--token {28}`",
    "-----BEGIN " + "PRIVATE KEY-----\n{64}\n{64}\n-----END " + "PRIVATE KEY-----",
    "ey" + "J{20}.ey" + "J{40}.{43}",
    "The pipeline reads {env} from its environment.",
    "See ticket {own} for it.",
    "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={86}==",
    "[docs](https://me:{20}@host/path)",
)
CANARIES = 200


class Flock:
    """Canaries and the texts they sit in.

    `parts` are the strings that must not be found anywhere.
    """

    def __init__(self, seed: int = 4) -> None:
        self._random = random.Random(seed)
        self.parts: list[str] = []
        self.environ = {
            f"CANARY_{number}_API_KEY": self._noise(24) for number in range(CANARIES // len(FORMS))
        }
        self.lines = [self._line(number) for number in range(CANARIES)]
        self.texts = [
            "\n\n".join(self.lines[start : start + 50]) for start in range(0, CANARIES, 50)
        ]

    def _noise(self, length: int, alphabet: str = LETTERS) -> str:
        return "".join(self._random.choice(alphabet) for _ in range(length))

    def _line(self, number: int) -> str:
        form = FORMS[number % len(FORMS)]
        secrets = []
        while "{" in form:
            before, _, rest = form.partition("{")
            what, _, after = rest.partition("}")
            if what == "env":
                secret = self.environ[f"CANARY_{number // len(FORMS)}_API_KEY"]
            elif what == "own":
                secret = f"ticket-{self._noise(12, HEX)}"
            else:
                alphabet = {"n": string.digits, "h": HEX}.get(what[0], LETTERS)
                secret = self._noise(int(what.strip("nh")), alphabet)
            secrets.append(secret)
            form = f"{before}{secret}{after}"
        self.parts.append(max(secrets, key=len))
        return form

    def seen_in(self, text: str) -> list[str]:
        """Name the canaries in a text, also where letters lost their case, as in an index."""
        folded = text.casefold()
        return [part for part in self.parts if part.casefold() in folded]


@pytest.fixture
def flock(project: Project, monkeypatch: pytest.MonkeyPatch) -> Flock:
    flock = Flock()
    assert len(flock.parts) == len(set(flock.parts)) == CANARIES
    for name, value in flock.environ.items():
        monkeypatch.setenv(name, value)
    project.write("config.toml", '[redaction]\npatterns = ["ticket-[0-9a-f]{12}"]\n')
    return flock


def files(*roots: Path) -> Iterator[tuple[Path, str]]:
    for root in roots:
        for path in sorted(root.rglob("*")):
            yield path, str(path)
            if path.is_file() and not path.is_symlink():
                yield path, path.read_bytes().decode("latin-1")


def look(flock: Flock, answers: list[str], *roots: Path) -> list[str]:
    """Return where any canary is, without telling which."""
    found = [str(path) for path, text in files(*roots) if flock.seen_in(text)]
    return found + [
        f"answer {number}" for number, answer in enumerate(answers) if flock.seen_in(answer)
    ]


def through_tools(window: Window, flock: Flock) -> Iterator[str]:
    """Send every canary through every tool that takes a text.

    And through the ways in which they fail.
    """
    tools = window.ask("tools/list")["result"]["tools"]
    for number, text in enumerate(flock.texts):
        lines = text.split("\n\n")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("create_memory", {"filename": f"a{number}", "content": text, "tags": []}),
            ("create_memory", {"filename": f"a{number}", "content": text, "tags": []}),
            (
                "create_memory",
                {
                    "filename": f"b{number}",
                    "content": f"---\nnote: |\n  {text}\n---\nx",
                    "tags": [],
                },
            ),
            (
                "create_memory",
                {
                    "filename": f"c{number}",
                    "content": "x",
                    "tags": [x for x in lines if len(x) < 100],
                },
            ),
            ("create_memory", {"filename": f"d{number}", "content": "x", "tags": [text]}),
            (
                "create_memory",
                {"filename": f"e{number}", "content": "x", "tags": [], "memory_type": text},
            ),
            ("create_memory", {"filename": "../" + text, "content": "x", "tags": []}),
            ("append_memory", {"filename": f"a{number}", "content": text}),
            (
                "append_memory",
                {"filename": f"a{number}", "content": text, "expected_version": "0" * 16},
            ),
            (
                "update_memory",
                {"filename": f"a{number}", "content": text, "expected_version": "0" * 16},
            ),
            ("update_memory", {"filename": f"a{number}", "content": f"# Again\n\n{text}"}),
            ("update_memory", {"filename": f"absent{number}", "content": text}),
            (
                "merge_memories",
                {
                    "source_files": [f"a{number}"],
                    "target_file": f"m{number}",
                    "summary_content": text,
                },
            ),
            (
                "merge_memories",
                {
                    "source_files": [f"z{number}"],
                    "target_file": f"y{number}",
                    "summary_content": text,
                },
            ),
            (
                "search_memories",
                {"query": text[:900], "filter_tags": lines, "filter_type": lines[0]},
            ),
            ("search_docs", {"query": text[:900], "path": lines[1]}),
            ("search_linked_memories", {"query": lines[2], "target_document": lines[3]}),
            ("delete_memory", {"filename": f"m{number}"}),
            ("remember", {"content": text, "tags": [x for x in lines if len(x) < 100]}),
            ("recall", {"query": text[:900], "tags": lines, "since": lines[0]}),
            ("edit_memory", {"filename": f"b{number}", "text": f"\n\n{text}", "mode": "append"}),
            ("edit_memory", {"filename": f"b{number}", "text": text, "find": "x"}),
            ("edit_memory", {"filename": f"b{number}", "text": text, "find": text}),
            ("edit_memory", {"filename": f"b{number}", "fields": {"note": text, "tags": lines}}),
            ("rename_memory", {"filename": f"b{number}", "new_name": lines[0]}),
            ("restore_memory", {"filename": f"b{number}", "version": lines[4]}),
            ("memory_add", {"content": text, "context": text, "source": "agent"}),
            ("memory_add", {"content": "x", "source": lines[0], "tags": lines}),
            ("memory_search", {"query": text[:900], "tags": lines}),
            ("memory_get", {"id": lines[5]}),
            (
                "upsert_convention",
                {
                    "title": lines[0][:190],
                    "content": text,
                    "tags": [x for x in lines if len(x) < 100],
                },
            ),
            (
                "upsert_decision",
                {"summary": "x", "rationale": text, "impacted_paths": [f"src/{lines[7]}"]},
            ),
            (
                "upsert_decision",
                {"summary": lines[5][:190], "rationale": "x", "impacted_paths": lines},
            ),
            ("upsert_note", {"content": text, "source": "agent"}),
            ("upsert_note", {"content": "x", "id": lines[11].split()[-1]}),
            (
                "append_summary",
                {
                    "run_id": lines[0][:190],
                    "step_id": lines[9][:190],
                    "summary": text,
                    "tags": lines[:1],
                },
            ),
            ("get_repo_memory", {"id": lines[3], "path": lines[5]}),
            ("get_repo_memory", {}),
            ("delete_repo_memory", {"kind": "note", "id": lines[11].split()[-1]}),
            ("build_context", {"task": text[:900], "files": [lines[5]]}),
            ("build_context", {"task": text[:900], "files": ["src/a.py"]}),
            ("journal_read", {"id": f"s{number}"}),
            (
                "journal_write",
                {"path": f"s{number}", "entry": text, "work_context": text, "summary": lines[0]},
            ),
            ("journal_write", {"path": f"s{number}", "entry": text, "overview": text}),
            ("journal_write", {"path": f"s{number}", "entry": "\0" + text, "overview": text}),
            ("journal_read", {"id": f"s{number}"}),
            ("journal_list_entries", {"path": f"s{number}"}),
            ("journal_read", {"id": lines[0].replace("/", "")}),
            ("journal_search", {"work_context": text[:900], "content": text[:900]}),
        ]
        for line in lines:
            calls += [("read_memory", {"filename": line}), ("read_doc", {"path": line})]
            calls += [("get_memory_stats", {line: ""}), (line, {})]
        calls += in_every_parameter(tools, text, f"b{number}")
        for tool, arguments in calls:
            yield json.dumps(window.call(tool, **arguments), ensure_ascii=False)


def in_every_parameter(
    tools: list[dict[str, Any]], text: str, known: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Fill every parameter of every tool, also of those to come, with a text.

    Then the names with one that exists.
    """
    for tool in tools:
        kinds = {
            name: json.dumps(schema) for name, schema in tool["inputSchema"]["properties"].items()
        }
        full: dict[str, Any] = {
            name: text.split("\n\n") if '"array"' in kind else text
            for name, kind in kinds.items()
            if '"string"' in kind
        }
        yield tool["name"], full
        named = {
            name: known for name, kind in kinds.items() if "file" in name and '"array"' not in kind
        }
        yield tool["name"], {**full, **named}
        needed = tool["inputSchema"].get("required", [])
        yield (
            tool["name"],
            {name: value for name, value in {**full, **named}.items() if name in needed},
        )


def test_no_canary_is_found_after_every_tool(
    project: Project, flock: Flock, own_directories: Path, tmp_path: Path, tally: Tally
) -> None:
    log = tmp_path / "log"
    with Window(project.root, log, [*SETTINGS, *EVERY_TOOLSET, *EVERY_LANE]) as window:
        answers = list(through_tools(window, flock))
    assert sum("placeholder" in answer for answer in answers) >= 20, (
        "most writes said what they took out"
    )
    assert (
        look(flock, [*answers, log.read_text(encoding="utf-8")], project.root, own_directories)
        == []
    )
    tally(SCORE, canaries=CANARIES, answers_looked_at=len(answers), found=0)


Run = Callable[..., str]


@pytest.fixture
def run(
    project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    def run(*words: str, stdin: str = "") -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        cli.main([*words, "--project", str(project.root), *SETTINGS])
        return "".join(capfd.readouterr())

    return run


def test_no_canary_is_found_after_every_command(
    project: Project, flock: Flock, run: Run, own_directories: Path, tmp_path: Path, tally: Tally
) -> None:
    answers = []
    for number, text in enumerate(flock.texts):
        given = tmp_path / "given.md"
        given.write_text(text)
        answers += [
            run("memory", "create", f"a{number}", stdin=text),
            run("memory", "create", f"a{number}", "--content", text),
            run("memory", "create", f"b{number}", "--file", str(given), "--tag", text[:90]),
            run("memory", "append", f"a{number}", "--content", text),
            run("memory", "update", f"a{number}", "--content", f"{text}\n", "--expect", "0" * 16),
            run("memory", "update", f"a{number}", "--file", str(given), "--json"),
            run("memory", "restore", f"a{number}"),
            run(
                "memory",
                "merge",
                f"a{number}",
                f"b{number}",
                "--into",
                f"m{number}",
                "--content",
                f"All:\n{text}",
            ),
            run("memory", "delete", f"m{number}"),
            run("memory", "read", text),
            run("memory", "search", text[:900]),
            run("repo", "convention", text[:190], "--content", text),
            run("repo", "decision", "x", "--file", str(given), "--path", text[:90]),
            run("repo", "summary", "--run", text[:90], "--step", "s", stdin=text),
            run("repo", "show", "--id", text[:90]),
            run("repo", "copy", text[:90], "main"),
            run("context", text[:900], "--file", text[:90]),
            run("context", text[:900]),
            run("search", text[:900], "--path", text[:90]),
            run("index", "--set", text[:90]),
        ]
        given.unlink()
    assert look(flock, answers, project.root, own_directories) == []
    tally(SCORE, canaries=CANARIES, answers_looked_at=len(answers), found=0)


def test_what_was_written_by_hand_is_found_by_lint_and_not_repeated(
    project: Project, flock: Flock, run: Run
) -> None:
    hidden = (
        ("memory", ".memories/a.md"),
        ("trash", ".memories/.trash/b_20260204_120000.md"),
        ("docs", "docs/c.md"),
    )
    for number, (_, path) in enumerate(hidden):
        project.write(path, f"A title\n\n{flock.lines[20 * number]}\n")
    project.memory("old.md", f"{flock.lines[1]}\n")
    run("memory", "update", "old.md", "--content", "clean")
    shown = run("lint", "--secrets")
    assert all(f"{project.root / path}:3: github-token" in shown for _, path in hidden)
    assert ".history" in shown
    assert not flock.seen_in(shown)
    leaks = json.loads(run("lint", "--secrets", "--json"))
    assert {leak["line"] for leak in leaks} == {1, 3}
    assert all(set(leak) == {"path", "line", "rule"} for leak in leaks)


# --- the addresses of remotes ---


PASSWORD = "Tr0ub4dor&3-" + "x" * 4
# Every way in which people and programs write credentials into the address of a remote.
ADDRESSES = [
    *(f"{scheme}://{user}@github.com/owner/repo.git"
      for scheme in ("https", "HTTP", "ssh", "git+ssh", "git", "ftps", "svn+ssh")
      for user in ("me:{}", "{}", ":{}", "{}:x-oauth-basic")),
    "https://me:{}@github.com:443/owner/repo/?foo=bar#section",
    "https://me:p@ss{}@github.com/owner/repo",
    "https://me:a/b{}@github.com/owner/repo",
    "https://me:a?b{}@github.com/owner/repo",
    "https://me:a#b{}@github.com/owner/repo",
    "https://me:a\\b{}@github.com/owner/repo",
    "https://me:{}%40@github.com/owner/repo",
    "https://me:{}@[::1]:8443/owner/repo",
    "https://me:{}@github.com:notaport/owner/repo",
    "https://me:{}@[::1/owner/repo",
    "https://me:{}@",
    "https://me:{}@/owner",
    "https://github.com/owner/repo?access_token={}",
    "https://github.com/owner/repo#{}",
    "https://github.com/owner;token={}/repo",
    "https://github.com?token={}",
    "https://github.com#{}",
    "https://github.com;password={}",
    "https://me:{}\n@github.com/owner/repo",
    "https://\u200bme:{}@github.com/owner/repo",
    "https://m\u00e9:{}@github.com/owner/repo",
    "https://me:{}@\u212aithub.com/owner/repo",
    "me:{}@github.com:owner/repo.git",
    "{}@github.com:owner/repo.git",
    "me:{}@github.com",
    "me@host:{}@github.com",
    "me:p@ss:{}@github.com",
    "me:{}@[::1]:owner/repo",
    "ext::sh -c 'curl -u me:{} https://x'",
    "ext::{}",
    "gcrypt::https://me:{}@github.com/owner/repo",
    "gcrypt::{}",
    "//me:{}@github.com/owner/repo",
    "/srv/git/repo?{}",
    "https:///{}@x",
    "https:me:{}@github.com/owner/repo",
    "://me:{}@github.com/owner/repo",
    "https://me:{}@github.com/" + "o" * 3000,
    "https://" + "m" * 1990 + ":{}@github.com/",
]  # fmt: skip


def test_no_form_of_an_address_keeps_its_credentials(tally: Tally) -> None:
    assert len(ADDRESSES) >= 55
    for address in ADDRESSES:
        clean = clean_address(address.format(PASSWORD))
        assert "Tr0ub4dor" not in clean, address
        assert "&3-x" not in clean, address
    tally("S7 remote addresses", tried=len(ADDRESSES), credentials_left=0, exceptions=0)
