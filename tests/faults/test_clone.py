"""A stranger's repository: its traps spring for plain git and pickle, never for us."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import pty
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from whoosh import fields, index

from ragdocs.engines.local import snapshot
from ragdocs.errors import RagdocsError
from ragdocs.project.identity import repository_id
from ragdocs.serve.cli import app as cli
from ragdocs.system import git

from .window import SETTINGS, Window

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.tally import Tally

SCORE = "S2 hostile clone"
HOST = "ssh://host.invalid/x"
# A commit with a signature, so that git asks its program whether it is good.
SIGNED = """tree {tree}
author T <t@localhost> 0 +0000
committer T <t@localhost> 0 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
 
 x
 -----END PGP SIGNATURE-----

signed
"""  # noqa: W293 - a continued header begins with a space


class Clone:
    """A hostile repository, and the trap that tells when something of it was run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        self.root.mkdir(parents=True)
        self.mark = folder / "fired"
        self.trap = folder / "trap"
        self.trap.write_text(f'#!/bin/sh\necho "$0" >> "{self.mark}"\nexit 1\n')
        self.trap.chmod(0o755)
        self.environ = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.git("init", "-q", "-b", "main")
        self.write("a.md", "text\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")

    def write(self, name: str, text: str) -> Path:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    def git(self, *words: str, stdin: str = "") -> str:
        """Run plain git, which may spring the trap, fail, or wait for somebody."""
        who = ("-c", "user.name=T", "-c", "user.email=t@localhost")
        command = ["git", "-C", str(self.root), *who, *words]
        options: dict[str, Any] = {"env": self.environ, "input": stdin, "timeout": 20}
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        return str(done.stdout).strip()

    def set(self, **settings: str) -> None:
        for name, value in settings.items():
            self.git("config", name.replace("__", "."), value)

    def fired(self) -> bool:
        fired = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return fired

    def change(self) -> None:
        """Change a file so that git has to look into it: same length, another time."""
        self.write("a.md", "tExt\n")
        os.utime(self.root / "a.md", (1, 1))


def driver(
    clone: Clone, kind: str, part: str, place: str = ".gitattributes", name: str = "evil"
) -> None:
    clone.write(place, f"* {kind}={name}\n")
    with (clone.root / ".git" / "config").open("a") as file:
        file.write(f'[{kind} "{name}"]\n{part} = {clone.trap}\n')
    clone.change()


def hook(clone: Clone) -> None:
    shutil.copy(clone.trap, clone.root / ".git" / "hooks" / "post-index-change")
    # The same text at another time: git writes its index anew, and not only if a second has not passed.
    os.utime(clone.root / "a.md", (1, 1))


def hooks_path(clone: Clone) -> None:
    hook(clone)
    shutil.copytree(clone.root / ".git" / "hooks", clone.root / "hooks")
    clone.set(core__hooksPath="hooks")


def included(clone: Clone) -> None:
    clone.write("extra.config", f"[core]\nfsmonitor = {clone.trap}\n")
    clone.set(include__path="../extra.config")


def users_file(clone: Clone) -> None:
    home = Path(clone.environ["HOME"])
    home.mkdir()
    (home / ".gitconfig").write_text(f"[core]\nfsmonitor = {clone.trap}\n")


def submodule(clone: Clone) -> None:
    inner = clone.root / "inner"
    inner.mkdir()
    clone.git("-C", "inner", "init", "-q")
    clone.git("-C", "inner", "commit", "-q", "--allow-empty", "-m", "x")
    clone.git("-C", "inner", "config", "core.fsmonitor", str(clone.trap))
    clone.git("add", "inner")
    clone.git("commit", "-q", "-m", "inner")


def bare_inside(clone: Clone) -> None:
    """Make the folder of documents look like a repository of its own."""
    docs = clone.root / "docs"
    shutil.copytree(clone.root / ".git", docs)
    (docs / "config").write_text(
        "[core]\nrepositoryFormatVersion = 0\nbare = false\nworktree = ..\nfsmonitor = "
        f"{clone.trap}\n"
    )


def signed(clone: Clone) -> None:
    text = SIGNED.format(tree=clone.git("rev-parse", "HEAD^{tree}"))
    clone.git(
        "update-ref", "HEAD", clone.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
    )
    clone.set(log__showSignature="true", gpg__program=str(clone.trap))


def promised(clone: Clone) -> None:
    """Lack an object that a remote has promised: git fetches it by itself, through any program."""
    clone.set(
        core__repositoryFormatVersion="1",
        extensions__partialClone="origin",
        remote__origin__promisor="true",
    )
    clone.set(remote__origin__url=str(clone.root), remote__origin__uploadpack=str(clone.trap))
    for place in (clone.root / ".git" / "objects").glob("??/*"):
        if clone.git("cat-file", "-t", place.parent.name + place.name) == "blob":
            place.unlink()


def in_terminal(clone: Clone) -> None:
    """Let git believe that a person is watching, so that it starts a pager."""
    ours, theirs = pty.openpty()
    subprocess.run(
        ["git", "-C", str(clone.root), "log"], env={**clone.environ, "TERM": "xterm"}, stdout=theirs, stdin=theirs,
        check=False, timeout=20,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)


def setting(**settings: str) -> Callable[[Clone], None]:
    """Set what the names say; the trap comes in at the braces."""
    return lambda clone: clone.set(
        **{name: value.format(clone.trap) for name, value in settings.items()}
    )


def external_diff(clone: Clone) -> None:
    clone.set(diff__external=str(clone.trap))
    clone.change()


Step = Callable[[Clone], Any]


def plainly(*words: str, stdin: str = "") -> Step:
    return lambda clone: clone.git(*words, stdin=stdin)


def by_driver(kind: str, part: str, **more: str) -> Step:
    return lambda clone: driver(clone, kind, part, **more)


STATUS, FETCH = plainly("status"), plainly("fetch")
ASK = plainly("credential", "fill", stdin="protocol=https\nhost=host.invalid\n\n")
ATTRIBUTES = ".git/info/attributes"
# What the stranger does, and what plain git does to spring it.
VECTORS: dict[str, tuple[Step, Step]] = {
    "hook": (hook, STATUS),
    "hooks path": (hooks_path, STATUS),
    "fsmonitor": (setting(core__fsmonitor="{}"), STATUS),
    "included file": (included, STATUS),
    "user's file": (users_file, STATUS),
    "clean filter": (by_driver("filter", "clean"), STATUS),
    "filter process": (by_driver("filter", "process"), STATUS),
    "filter by info/attributes": (by_driver("filter", "clean", place=ATTRIBUTES), STATUS),
    "filter with an odd name": (by_driver("filter", "clean", name="a=b.clean"), STATUS),
    "smudge filter": (by_driver("filter", "smudge"), plainly("checkout", "--", "a.md")),
    "textconv": (by_driver("diff", "textconv"), plainly("log", "-p")),
    "diff driver": (by_driver("diff", "command"), plainly("diff")),
    "external diff": (external_diff, plainly("diff")),
    "submodule": (submodule, STATUS),
    "repository among the documents": (bare_inside, plainly("-C", "docs", "status")),
    "gpg program": (signed, plainly("log")),
    "promised object": (promised, plainly("cat-file", "-p", "HEAD:a.md")),
    "pager": (setting(core__pager="{}"), in_terminal),
    "editor": (setting(core__editor="{}"), plainly("commit", "--allow-empty")),
    "alias": (setting(alias__history="!{}"), plainly("history")),
    "ssh command": (setting(core__sshCommand="{}", remote__origin__url=HOST), FETCH),
    "remote helper": (
        setting(remote__origin__url="ext::{}", protocol__ext__allow="always"),
        FETCH,
    ),
    "upload pack": (setting(remote__origin__uploadpack="{}", remote__origin__url="."), FETCH),
    "git proxy": (setting(core__gitProxy="{}", remote__origin__url="git://host.invalid/x"), FETCH),
    "credential helper": (setting(credential__helper="{}"), ASK),
    "password question": (setting(core__askPass="{}"), ASK),
}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def _ask(root: Path, words: list[str], _: Clone) -> None:
    who = {"user.name": "T", "user.email": "t@localhost"}
    terms = git.Terms(seconds=10, protocols="file:git:https:ssh", settings=who)
    git.run(root, words, terms=terms)


def everything(clone: Clone, root: Path) -> Iterator[Step]:
    """Yield all that we ever ask of git, and what a journal may ask of it."""
    yield lambda _: git.context(root)
    yield lambda _: git.head(root)
    yield lambda _: git.branch(root)
    yield lambda _: git.common_dir(root)
    yield lambda _: git.remote(root)
    yield lambda _: repository_id(root)
    calls = (
        ["log", "-p"], ["log", "--format=%H %G?%n%B", "--all"], ["show", "HEAD"], ["cat-file", "-p", "HEAD:a.md"],
        ["diff-tree", "-p", "--root", "HEAD"], ["rev-list", "--all"], ["ls-files", "-m"], ["for-each-ref"],
        ["hash-object", "-w", "--path=a.md", "--stdin"], ["fetch"], ["fetch", "origin"], ["push", "origin", "HEAD"],
        ["commit-tree", "-m", "x", "HEAD^{tree}"], ["update-ref", "refs/heads/x", "HEAD"], ["gc"], ["init"],
    )  # fmt: skip
    for words in calls:
        # A new repository below would no longer be the trap.
        if words[0] != "init" or root == clone.root:
            yield partial(_ask, root, words)


@pytest.mark.parametrize("name", VECTORS)
def test_a_trap_springs_for_plain_git_and_never_for_us(
    clone: Clone, name: str, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    lay, spring = VECTORS[name]
    lay(clone)
    for variable, value in clone.environ.items():
        monkeypatch.setenv(variable, value)
    ours = 0
    places = [folder for folder in (clone.root, clone.root / "docs") if folder.is_dir()]
    for place in places:
        for step in everything(clone, place):
            with contextlib.suppress(RagdocsError):
                step(clone)
            ours += clone.fired()
    spring(clone)
    assert clone.fired(), "the trap does not work"
    assert ours == 0
    tally(SCORE, git_traps=1, sprung_for_plain_git=1, fired=ours)


def test_the_users_environment_for_git_is_not_passed_on(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    settings = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(clone.trap),
    }
    programs = dict.fromkeys(
        ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_ASKPASS"), str(clone.trap)
    )
    for name, value in {**settings, **programs}.items():
        monkeypatch.setenv(name, value)
        clone.environ[name] = value
    clone.change()
    for step in everything(clone, clone.root):
        with contextlib.suppress(RagdocsError):
            step(clone)
    assert not clone.fired()
    clone.git("status")
    assert clone.fired(), "the trap does not work"
    tally(SCORE, git_traps=1, sprung_for_plain_git=1, fired=0)


def test_names_that_are_options_stay_names(clone: Clone, tally: Tally) -> None:
    written = clone.root / "written"
    options: dict[str, Callable[[str], object]] = {
        f"--output={written}": lambda option: clone.git("log", option),
        f"-O{clone.trap}": lambda option: clone.git("grep", option, "text"),
        f"--upload-pack={clone.trap}": lambda option: clone.git("ls-remote", option, "."),
    }
    for option, plainly in options.items():
        for command in ("log", "show", "rev-parse", "cat-file -p", "fetch", "ls-tree", "rev-list"):
            for given in ({"operands": [option]}, {"operands": ["HEAD"], "paths": [option]}):
                with contextlib.suppress(RagdocsError):
                    git.run(clone.root, command.split(), **given)  # type: ignore[arg-type]
        clone.git("symbolic-ref", "HEAD", f"refs/heads/{option}")
        git.context(clone.root)
        git.head(clone.root)
        assert not written.exists()
        assert not clone.fired()
        clone.git("symbolic-ref", "HEAD", "refs/heads/main")
        plainly(option)
        assert clone.fired() or written.exists(), "the injection does not work"
        written.unlink(missing_ok=True)
        tally(SCORE, argument_injections=1, sprung_for_plain_git=1, fired=0)


def test_a_working_tree_that_lies_elsewhere_is_not_looked_at(clone: Clone, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary.txt").write_text("x\n")
    clone.set(core__worktree=str(tmp_path / "private"))
    assert "diary.txt" in clone.git("status", "--short"), "the trap does not work"
    found = git.context(clone.root)
    assert found is not None
    assert found.files_changed == ()


# --- indexes, links and settings that came along ---


class Payload:
    """What a pickle may hold: a call."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self._mark),)


class Field(fields.TEXT):  # type: ignore[misc] # Whoosh has no types
    """A field of a Whoosh index that calls something when it is read back."""

    mark: Path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def run(root: Path, *words: str) -> int:
    return cli.main([*words, "--project", str(root), *SETTINGS])


COMMANDS = (
    ("index",), ("search", "poison"), ("search", "--lane", "memory", "poison"), ("status",), ("lint",), ("verify",),
    ("lint", "--secrets"), ("check-config",), ("memory", "create", "new", "--content", "x"), ("memory", "stats"),
    ("memory", "read", "a.md"), ("memory", "log"), ("memory", "suggest"), ("index", "--rebuild"),
)  # fmt: skip
TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("index_status", {}),
    ("search_docs", {"query": "poison"}),
    ("search_memories", {"query": "poison"}),
    ("read_memory", {"filename": "a.md"}),
    ("create_memory", {"filename": "fresh", "content": "x", "tags": []}),
    ("suggest_memory_merges", {}),
    ("remember", {"content": "x"}),
    ("recall", {}),
)


def use(root: Path, log: Path) -> str:
    """Do with a project all that people and agents do, and return everything that was answered."""
    with Window(root, log) as window:
        return json.dumps([window.call(tool, **arguments) for tool, arguments in TOOLS])


@pytest.fixture
def planted(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make a project whose indexes were signed by somebody else, over texts that are gone."""
    project.doc("a.md", "# A\n\nHonest text.\n")
    project.memory("a.md", "Honest text.\n")
    project.memory("poison.md", "Poison.\n")
    with monkeypatch.context() as theirs:
        theirs.setenv("XDG_STATE_HOME", str(tmp_path / "attacker"))
        theirs.setenv("XDG_CACHE_HOME", str(tmp_path / "attacker"))
        assert run(project.root, "index") == 0
        (project.root / ".memories" / "poison.md").unlink()
        place = project.root / ".memories" / "indices"
        key = (tmp_path / "attacker" / "ragdocs" / "index.key").read_bytes()
        _poison(place / (place / "current").read_text(), tmp_path / "fired", key)
    return place


def _poison(generation: Path, mark: Path, key: bytes) -> None:
    """Put a pickle wherever one may be looked for, signed with the attacker's own key."""
    payload = pickle.dumps(Payload(mark))
    for path in sorted(generation.rglob("*")):
        if path.is_file() and path.parent.name == "keyword":
            path.write_bytes(payload)
    Field.mark = mark
    index.create_in(generation / "keyword", fields.Schema(text=Field()))
    for name in ("segments.pickle", "_MAIN_1.seg", "vector/docstore.pkl"):
        (generation / name).write_bytes(payload)
    manifest = json.loads((generation / "manifest.json").read_text())
    manifest["files"] = {}
    for path in sorted(generation.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            name = path.relative_to(generation).as_posix()
            manifest["files"][name] = snapshot._digest([path.read_bytes()])
    manifest.pop("signature")
    manifest["signature"] = snapshot._sign(manifest, key)
    (generation / "manifest.json").write_text(json.dumps(manifest))


def test_commands_and_the_server_spring_none_of_all_the_traps_at_once(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    names = [name for name in VECTORS if name not in {"filter with an odd name", "promised object"}]
    for name in names:
        VECTORS[name][0](clone)
    for variable, value in clone.environ.items():
        monkeypatch.setenv(variable, value)
    clone.write(".memories/a.md", "Honest text.\n")
    monkeypatch.chdir(clone.root)
    clone.fired()  # plain git has set some of them off while others were being laid
    for words in COMMANDS:
        run(clone.root, *words)
    use(clone.root, tmp_path / "log")
    assert not clone.fired()
    clone.change()
    clone.git("status")
    assert clone.fired(), "the traps do not work"
    tally(SCORE, traps_at_once=len(names), fired=0)


def test_an_index_that_came_along_is_never_opened(
    project: Project, planted: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], tally: Tally
) -> None:
    mark = tmp_path / "fired"
    generation = planted / (planted / "current").read_text()
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        index.open_dir(generation / "keyword")
    assert mark.exists(), "the pickle does not work"
    mark.rmdir()
    spare = tmp_path / "spare"
    shutil.copytree(planted, spare)
    tried = 0
    for words in COMMANDS:
        shutil.rmtree(planted)
        shutil.copytree(spare, planted)
        run(project.root, *words)
        assert not mark.exists(), words
        tried += 1
    answered = use(project.root, tmp_path / "log")
    assert not mark.exists()
    assert "Poison" not in answered + capfd.readouterr().out, (
        "a document that is not there was answered with"
    )
    assert run(project.root, "verify") == 0
    tally(SCORE, planted_indexes=tried + 1, fired=0)


def test_a_planted_vector_file_is_never_parsed(
    project: Project, planted: Path, tmp_path: Path, tally: Tally
) -> None:
    generation = planted / (planted / "current").read_text()
    for number, damage in enumerate(
        (b"", b"IxFl" + b"\xff" * 64, b"IxMp" + b"\xff" * 4096, os.urandom(4096))
    ):
        (generation / "vector" / "faiss_index.bin").write_bytes(damage)
        assert run(project.root, "search", "--lane", "memory", "honest") == 0, number
        # A search opens the lane it needs; the index of the other one is made here.
        assert run(project.root, "index") == 0
        assert run(project.root, "verify") == 0
        tally(SCORE, planted_indexes=1, fired=0)


@pytest.mark.parametrize(
    "linked", [".memories", "docs", ".memories/inner", "docs/inner", ".memories/indices"]
)
def test_a_linked_folder_gives_nothing_out_and_takes_nothing_in(
    project: Project, linked: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], tally: Tally
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "a.md").write_text("# Poison\n\nThe poison is in the diary of somebody else.\n")
    (private / "poison.md").write_text("poison\n")
    before = {path: path.read_bytes() for path in private.rglob("*")}
    link = project.root / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(private)
    for words in COMMANDS:
        run(project.root, *words)
    answered = use(project.root, tmp_path / "log") + "".join(capfd.readouterr())
    assert "diary" not in answered
    assert {path: path.read_bytes() for path in private.rglob("*")} == before
    tally(SCORE, links=1, escapes=0)


SETTINGS_OF_A_STRANGER = (
    '[docs]\ninclude = ["../**/*.md"]', '[docs]\ninclude = ["/**/*.md"]',
    '[docs]\ninclude = ["docs/../../**"]', '[docs]\ninclude = ["~/**"]',
    '[memory]\nenabled = true\nstorage_strategy = "user"',
    '[memory]\nenabled = true\npath = "/tmp"', '[embedding]\nmodel = "stranger/model"',
    '[embedding]\nmodel = "../../model"', '[embedding]\nhost = "http://stranger.invalid"',
    '[redaction]\npatterns = ["(a+)+$"]', '[redaction]\npatterns = [".*"]',
    "[server]\nanswer_chars = 999999999", '[server]\ntoolsets = ["os"]',
)  # fmt: skip


@pytest.mark.parametrize("text", SETTINGS_OF_A_STRANGER)
def test_a_strangers_settings_reach_nothing_outside_the_project(
    project: Project, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    (tmp_path / "outside.md").write_text("The diary of somebody else.\n")
    project.write("config.toml", text)
    project.doc("a.md", "Honest text.\n")
    before = {path for path in tmp_path.rglob("*") if project.root not in path.parents}
    codes = [
        cli.main([*words, "--project", str(project.root)])
        for words in (("search", "diary"), ("check-config",))
    ]
    assert 1 in codes, "it was not refused"
    shown = capsys.readouterr()
    assert "somebody else" not in shown.out + shown.err
    assert {path for path in tmp_path.rglob("*") if project.root not in path.parents} == before
    tally(SCORE, hostile_settings=1, refused=1)
