"""Secrets must not be found again, in any file, answer, error or log."""

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
    from tests.tally import Tally

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
    """Canaries and the texts they sit in; `parts` are the strings to look for."""

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


Call = tuple[str, dict[str, Any]]


def call(tool: str, **arguments: Any) -> Call:
    return tool, arguments


def on_memories(number: int, text: str) -> Iterator[Call]:
    """Yield calls that write and search memories, with a text full of canaries in every place."""
    lines, query = text.split("\n\n"), text[:900]
    short = [line for line in lines if len(line) < 100]
    a, b, stale = f"a{number}", f"b{number}", "0" * 16
    yield call("create_memory", filename=a, content=text, tags=[])
    yield call("create_memory", filename=a, content=text, tags=[])
    yield call("create_memory", filename=b, content=f"---\nnote: |\n  {text}\n---\nx", tags=[])
    yield call("create_memory", filename=f"c{number}", content="x", tags=short)
    yield call("create_memory", filename=f"d{number}", content="x", tags=[text])
    yield call("create_memory", filename=f"e{number}", content="x", tags=[], memory_type=text)
    yield call("create_memory", filename="../" + text, content="x", tags=[])
    yield call("append_memory", filename=a, content=text)
    yield call("append_memory", filename=a, content=text, expected_version=stale)
    yield call("update_memory", filename=a, content=text, expected_version=stale)
    yield call("update_memory", filename=a, content=f"# Again\n\n{text}")
    yield call("update_memory", filename=f"absent{number}", content=text)
    for source, target in ((a, f"m{number}"), (f"z{number}", f"y{number}")):
        names = {"source_files": [source], "target_file": target}
        yield call("merge_memories", **names, summary_content=text)
    yield call("search_memories", query=query, filter_tags=lines, filter_type=lines[0])
    yield call("search_docs", query=query, path=lines[1])
    yield call("search_linked_memories", query=lines[2], target_document=lines[3])
    yield call("delete_memory", filename=f"m{number}")
    yield call("remember", content=text, tags=short)
    yield call("recall", query=query, tags=lines, since=lines[0])
    yield call("edit_memory", filename=b, text=f"\n\n{text}", mode="append")
    yield call("edit_memory", filename=b, text=text, find="x")
    yield call("edit_memory", filename=b, text=text, find=text)
    yield call("edit_memory", filename=b, fields={"note": text, "tags": lines})
    yield call("rename_memory", filename=b, new_name=lines[0])
    yield call("restore_memory", filename=b, version=lines[4])
    yield call("memory_add", content=text, context=text, source="agent")
    yield call("memory_add", content="x", source=lines[0], tags=lines)
    yield call("memory_search", query=query, tags=lines)
    yield call("memory_get", id=lines[5])
    for line in lines:
        yield call("read_memory", filename=line)
        yield call("read_doc", path=line)
        yield call("get_memory_stats", **{line: ""})
        yield call(line)


def on_the_repository(number: int, text: str) -> Iterator[Call]:
    """Yield calls that write and read repository memory and the journal."""
    lines, query = text.split("\n\n"), text[:900]
    short = [line for line in lines if len(line) < 100]
    yield call("upsert_convention", title=lines[0][:190], content=text, tags=short)
    yield call("upsert_decision", summary="x", rationale=text, impacted_paths=[f"src/{lines[7]}"])
    yield call("upsert_decision", summary=lines[5][:190], rationale="x", impacted_paths=lines)
    yield call("upsert_note", content=text, source="agent")
    yield call("upsert_note", content="x", id=lines[11].split()[-1])
    steps = {"run_id": lines[0][:190], "step_id": lines[9][:190]}
    yield call("append_summary", **steps, summary=text, tags=lines[:1])
    yield call("get_repo_memory", id=lines[3], path=lines[5])
    yield call("get_repo_memory")
    yield call("delete_repo_memory", kind="note", id=lines[11].split()[-1])
    yield call("build_context", task=query, files=[lines[5]])
    yield call("build_context", task=query, files=["src/a.py"])
    section = f"s{number}"
    yield call("journal_read", id=section)
    more = {"work_context": text, "summary": lines[0]}
    yield call("journal_write", path=section, entry=text, **more)
    yield call("journal_write", path=section, entry=text, overview=text)
    yield call("journal_write", path=section, entry="\0" + text, overview=text)
    yield call("journal_read", id=section)
    yield call("journal_list_entries", path=section)
    yield call("journal_read", id=lines[0].replace("/", ""))
    yield call("journal_search", work_context=query, content=query)


def through_tools(window: Window, flock: Flock) -> Iterator[str]:
    """Send every canary through every tool, and yield the answers."""
    tools = window.ask("tools/list")["result"]["tools"]
    calls: list[Call] = []
    for number, text in enumerate(flock.texts):
        calls += [*on_memories(number, text), *on_the_repository(number, text)]
    calls += in_every_parameter(tools, "\n\n".join(flock.texts), "b0")
    for tool, arguments in calls:
        yield json.dumps(window.call(tool, **arguments), ensure_ascii=False)


def in_every_parameter(tools: list[dict[str, Any]], text: str, known: str) -> Iterator[Call]:
    """Fill every parameter of every tool with a text, then the names with one that exists."""
    for tool in tools:
        full: dict[str, Any] = {}
        named = {}
        for name, schema in tool["inputSchema"]["properties"].items():
            kind = json.dumps(schema)
            if '"string"' in kind:
                full[name] = text.split("\n\n") if '"array"' in kind else text
            if "file" in name and '"array"' not in kind:
                named[name] = known
        yield tool["name"], full
        yield tool["name"], {**full, **named}
        needed = tool["inputSchema"].get("required", [])
        yield tool["name"], {name: {**full, **named}[name] for name in needed if name in full}


def test_no_canary_is_found_after_every_tool(
    project: Project, flock: Flock, own_directories: Path, tmp_path: Path, tally: Tally
) -> None:
    log = tmp_path / "log"
    with Window(project.root, log, [*SETTINGS, *EVERY_TOOLSET, *EVERY_LANE]) as window:
        answers = list(through_tools(window, flock))
    assert sum("placeholder" in answer for answer in answers) >= 20, (
        "most writes said what they took out"
    )
    answers.append(log.read_text(encoding="utf-8"))
    assert look(flock, answers, project.root, own_directories) == []
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
        merged = ("--into", f"m{number}", "--content", f"All:\n{text}")
        answers += [
            run("memory", "create", f"a{number}", stdin=text),
            run("memory", "create", f"a{number}", "--content", text),
            run("memory", "create", f"b{number}", "--file", str(given), "--tag", text[:90]),
            run("memory", "append", f"a{number}", "--content", text),
            run("memory", "update", f"a{number}", "--content", f"{text}\n", "--expect", "0" * 16),
            run("memory", "update", f"a{number}", "--file", str(given), "--json"),
            run("memory", "restore", f"a{number}"),
            run("memory", "merge", f"a{number}", f"b{number}", *merged),
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
    leaks = json.loads(run("lint", "--secrets", "--json"))["result"]
    assert {leak["line"] for leak in leaks} == {1, 3}
    assert {leak["problem"] for leak in leaks} == {"github-token", "slack-token"}


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
