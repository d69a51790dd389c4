"""The journal as an agent uses it, over real repositories.

Names, messages, refs, rewritten history, old and new.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.asking import ask
from tests.conftest import NOW

from ragdocs.errors import (
    AlreadyExistsError,
    ConfigError,
    NotFoundError,
    RagdocsError,
    UnavailableError,
    ValidationError,
)
from ragdocs.verbs.journal import Journal, NewEntry, Reads, SectionTree

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

Git = Callable[..., str]
ON: dict[str, object] = {"journal.enabled": True}


def git_in(root: Path) -> Git:
    environ = {"HOME": str(root.parent), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str, stdin: bytes = b"", at: str = "") -> str:
        who = ("-c", "user.name=P", "-c", "user.email=p@localhost", "-c", "init.defaultBranch=main")
        dated = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
        command = ["git", "-C", str(root), *who, *words]
        output = subprocess.check_output(command, env=environ | dated, input=stdin)
        return output.decode(errors="replace").strip()

    return git


@pytest.fixture
def workspace(project: Project) -> Workspace:
    return project.open(**ON)


@pytest.fixture
def journal(workspace: Workspace) -> Journal:
    return workspace.journal


@pytest.fixture
def root(project: Project) -> Path:
    return project.root / "journal-data"


def add(journal: Journal, section: str, entry: str, **more: str) -> str:
    reads: Reads = {}
    journal.read(section, reads=reads)
    return journal.write(section, NewEntry(entry, **more), reads).id


def found(workspace: Workspace, text: str, *threshold: float) -> list[str]:
    """Return the entries that a search finds, as a server that follows the refs does."""
    workspace.sync()
    return [hit.chunk.text for hit in workspace.journal.search("", text, *threshold).findings.hits]


ENTRIES = {
    "headings": "# A heading\n\n# Another\n#hashtag",
    "trailers": "Body\n\nSigned-off-by: A <a@b>\nCo-authored-by: B <b@c>",
    "emoji": "emoji 🎉👩‍👩‍👧 and ünïcödé and 日本語",
    "frontmatter": "---\nstatus: archived\nexpires_at: 2001-01-01\n---\nlooks like frontmatter",
    "diff": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@",
    "blanks": "  indented first line\n\ttab\n\n\n\nblank lines",
    "one line of 64 KB": "x" * 65_536,
    "64 KB": "line\n" * 13_000,
    "stream": "data 5\nM 100644 inline evil.md\nfrom refs/heads/main\ndone",
}


def test_an_entry_is_kept_letter_by_letter(journal: Journal, root: Path) -> None:
    for kind, entry in ENTRIES.items():
        name = add(journal, "a", entry)
        assert journal.read(name).text == entry.strip("\n"), kind
        assert git_in(root)("log", "-1", "--format=%B") == entry.strip(), kind
        hits = journal.search("", entry[:200], 0.0).findings.hits
        assert hits[0].document.path.startswith(name), kind
    assert git_in(root)("ls-files") == "a.md"
    for entry in ("a\0b", "x" * 1_000_001, "", "\n \n"):
        with pytest.raises(ValidationError):
            add(journal, "a", entry)
    assert journal.contents().entry_count == len(ENTRIES)


NAMES = ["-rf", "--output=x", "with spaces in it", "größe/überblick", "日本語", "🎉 party"]
NAMES += ["a'b$(x)`y`", "v1.2/notes", "HEAD"]
ELSEWHERE = ["", ".git/config", "../x", "/etc/x", "a#b", "a/../b", ".hidden", "a\nb", "HEAD.md/y"]


def sections(tree: SectionTree) -> set[str]:
    """Return the ids of all sections of a tree."""
    if not tree.below:
        return {tree.id}
    return set().union(*map(sections, tree.below))


def test_a_section_may_have_any_name_that_does_not_lead_elsewhere(
    journal: Journal, root: Path
) -> None:
    for name in NAMES:
        first = add(journal, name, "one")
        add(journal, name, "two", overview="# Now")
        assert journal.read(name).text == "# Now"
        assert journal.read(first).text == "one"
        assert journal.entries(name).total == 2
        assert (root / f"{name}.md").read_text() == "# Now\n\n<!-- entry count: 2 -->\n"
    assert git_in(root)("status", "--porcelain") == ""
    for name in [*ELSEWHERE, "nul"]:
        with pytest.raises((ValidationError, NotFoundError)):
            add(journal, name, "entry")
    assert sections(journal.contents(depth=5)) == set(NAMES)


def test_names_that_differ_only_in_case_collide_and_in_form_do_not(journal: Journal) -> None:
    add(journal, "Größe", "one")
    with pytest.raises(AlreadyExistsError, match="Größe"):
        add(journal, "größe", "two")
    add(journal, "Gro\u0308ße", "the same name, decomposed")
    assert journal.entries("Größe").total == 2


def commits_at_once(root: Path, messages: list[str]) -> None:
    """Make many commits as fast as git can."""
    stream = []
    for number, message in enumerate(messages):
        who = f"P <p@localhost> {1_700_000_000 + number} +0000"
        head = f"commit refs/heads/main\nauthor {who}\ncommitter {who}"
        file = f"M 100644 inline a.md\ndata {len(str(number))}\n{number}"
        stream.append(f"{head}\ndata {len(message)}\n{message}\n{file}\n")
    git_in(root)("fast-import", "--quiet", stdin="".join(stream).encode())


def test_an_ambiguous_beginning_lists_the_candidates(project: Project, root: Path) -> None:
    root.mkdir()
    git_in(root)("init", "-q")
    commits_at_once(root, [f"entry {number}" for number in range(500)])
    names = git_in(root)("log", "--format=%H").split("\n")
    prefix, count = Counter(name[:4] for name in names).most_common(1)[0]
    assert count > 1, "500 commits share four digits somewhere"
    journal = project.open(**{"journal.enabled": True, "embedding.model": "none"}).journal
    complaint = f"{prefix} is the beginning of {count} entries"
    with pytest.raises(ValidationError, match=complaint) as caught:
        journal.read(f"a#{prefix}")
    alike = [name for name in names if name.startswith(prefix)]
    assert all(f"a#{name}" in str(caught.value) for name in alike)
    assert journal.read(f"a#{alike[0][:12]}").version == alike[0]
    for wrong in ("a#abc", "a#zzzz", "a#HEAD", "a#", f"b#{alike[0][:12]}"):
        with pytest.raises(RagdocsError):
            journal.read(wrong)
    assert journal.read("a").entry_count == 500


def test_an_empty_repository_is_an_empty_journal(project: Project, root: Path) -> None:
    root.mkdir()
    git_in(root)("init", "-q", "-b", "trunk")
    journal = project.open(**ON).journal
    assert journal.contents() == SectionTree("", "journal", None, 0, ())
    assert journal.search("a", "b").findings.hits == ()
    with pytest.raises(NotFoundError):
        journal.entries("a")
    add(journal, "a", "first")
    assert git_in(root)("rev-parse", "--abbrev-ref", "HEAD") == "trunk"


BROKEN = [
    ("HEAD", ""),
    ("HEAD", "nonsense\n"),
    ("HEAD", "ref: refs/heads/../../x\n"),
    ("refs/heads/main", "nonsense\n"),
    ("refs/heads/main", "0" * 39 + "1\n"),
    ("config", "[core\n"),
]


@pytest.mark.parametrize(("file", "text"), BROKEN)
def test_a_broken_repository_is_told_and_costs_nothing(
    project: Project, root: Path, file: str, text: str
) -> None:
    outer = git_in(project.root)
    outer("init", "-q")
    outer("commit", "-q", "--allow-empty", "-m", "outer")
    project.doc("a.md", "# Retries\n\nWith jitter.\n")
    first = project.open(**ON)
    add(first.journal, "a", "first entry")
    first.save()
    (root / ".git" / file).write_text(text)
    workspace = project.open(**ON)
    assert workspace.documents.search("retries").hits
    with pytest.raises(UnavailableError):
        add(workspace.journal, "a", "second")
    # git goes on to the repository above when it finds one damaged.
    assert outer("log", "--format=%s") == "outer"
    assert (root / ".git" / file).read_text() == text
    lane = next(lane for lane in workspace.status().lanes if lane.lane == "journal")
    assert lane.documents == 1, "what cannot be looked at is not gone"
    assert str(root) in lane.notes[-1]


def test_a_head_on_no_branch_and_a_merge_under_way_are_left_to_the_person(
    journal: Journal, root: Path
) -> None:
    add(journal, "a", "one")
    git = git_in(root)
    git("switch", "--detach", "-q")
    with pytest.raises(UnavailableError, match="git switch main"):
        add(journal, "a", "two")
    git("switch", "-q", "main")
    (root / ".git" / "MERGE_HEAD").write_text(git("rev-parse", "HEAD"))
    with pytest.raises(UnavailableError, match="in the middle of a merge"):
        add(journal, "a", "two")


def test_entries_on_all_refs_are_found_and_rewritten_ones_leave_no_ghost(
    workspace: Workspace, root: Path
) -> None:
    journal, git = workspace.journal, git_in(root)
    add(journal, "a", "the walrus is on main")
    git("switch", "-qc", "idea")
    (root / "a.md").write_text("# Idea\n")
    git("commit", "-qam", "the ocelot is on a branch")
    git("tag", "-a", "-m", "t", "kept")
    (root / "b.md").write_text("# B\n")
    git("add", "b.md")
    git("commit", "-qm", "the gecko is elsewhere")
    git("switch", "-q", "main")
    assert found(workspace, "ocelot", 0.0) == ["the ocelot is on a branch"]
    assert found(workspace, "gecko", 0.0) == ["the gecko is elsewhere"]
    assert journal.read("a").entry_count == 1
    git("branch", "-qD", "idea")
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    assert found(workspace, "gecko", 0.0) == []
    assert found(workspace, "ocelot", 0.0) == ["the ocelot is on a branch"], (
        "the tag still leads there"
    )
    git("tag", "-d", "kept")
    git("commit", "-q", "--amend", "-m", "the walrus was renamed to manatee")
    assert found(workspace, "ocelot", 0.0) == []
    assert found(workspace, "walrus manatee", 0.0) == ["the walrus was renamed to manatee"]
    (root / "a.md").write_text("stashed\n")
    git("stash", "-q")
    assert found(workspace, "WIP on main", 0.0) == []


def test_old_entries_must_say_more_to_be_found(
    project: Project, workspace: Workspace, root: Path
) -> None:
    journal, git = workspace.journal, git_in(root)
    add(journal, "a", "made just now")
    for days, name in ((0, "fresh"), (30, "a month old"), (300, "ancient")):
        moment = (project.clock() - timedelta(days=days)).isoformat()
        for text in ("backoff jitter retry", "retry, backoff, jitter and more"):
            (root / "a.md").write_text(f"{name} {text}\n")
            git("commit", "-qam", f"{text}, {name}", at=moment)
    workspace.sync()
    workspace.embed()
    threshold = 0.94
    strict = journal.search("", "backoff jitter retry", threshold).findings.hits
    names = [hit.chunk.text.rpartition(", ")[2] for hit in strict]
    assert names.count("fresh") == 2
    assert names.count("ancient") < names.count("fresh")
    ids = {hit.chunk.id for hit in strict}
    for hit in journal.search("", "backoff jitter retry", 0.1).findings.hits:
        name = hit.chunk.text.rpartition(", ")[2]
        salience = {"fresh": 1.0, "a month old": 0.5, "ancient": 0.5**10}.get(name, 1.0)
        needed = 0.1 * salience + threshold * (1 - salience)
        assert (hit.chunk.id in ids) == (hit.score > needed), (hit, needed)
    assert project.config().journal.half_life_days == 30


def test_threshold_and_number_of_results_are_configurable(
    project: Project, workspace: Workspace
) -> None:
    for number in range(4):
        add(workspace.journal, "a", f"backoff with jitter, attempt {number}")
    assert len(found(workspace, "backoff")) == 4
    flags = {"journal.enabled": True, "journal.max_results": 3}
    assert len(found(project.open(**flags), "backoff")) == 3
    project.clock = lambda: NOW + timedelta(days=3000)
    strict = project.open(**flags, **{"journal.default_salience_threshold": 1.0})
    assert found(strict, "backoff") == []
    assert len(found(strict, "backoff", 0.0)) == 3


def test_every_time_is_in_utc_and_ends_in_z(workspace: Workspace, root: Path) -> None:
    add(workspace.journal, "a/b", "one")
    (root / "a/b.md").write_text("by hand\n")
    git_in(root)("commit", "-qam", "two, far in the west", at="2026-11-16T02:00:00-08:00")
    workspace.sync()
    listed = ask(workspace, "journal_list_entries", path="a/b")["result"]
    found = {"work_context": "", "content": "west one", "salience_threshold": 0.0}
    hits = ask(workspace, "journal_search", **found)["result"]
    times = [row["timestamp"] for row in (*listed, *hits)]
    assert "2026-11-16T10:00:00Z" in times
    assert len(times) >= 3
    times.append(ask(workspace, "journal_read", id="a/b")["timestamp"])
    times.append(ask(workspace, "journal_toc")["last_updated"])
    for moment in times:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment), times


def test_a_removed_section_leaves_the_contents_and_stays_in_the_history(
    journal: Journal, root: Path
) -> None:
    add(journal, "a", "one")
    add(journal, "b", "two")
    git = git_in(root)
    git("rm", "-q", "a.md")
    git("commit", "-qm", "a is done with")
    assert [section.id for section in journal.contents().below or ()] == ["b"]
    assert not journal.read("a").exists
    assert journal.entries("a").total == 2
    add(journal, "a", "again", overview="# A again")
    assert journal.read("a").entry_count == 3


def test_plain_git_clones_logs_and_pulls_a_journal(
    journal: Journal, root: Path, tmp_path: Path
) -> None:
    add(journal, "a/b", "one", summary="the first")
    other = tmp_path / "other"
    git_in(tmp_path)("clone", "-q", str(root), str(other))
    add(journal, "a/b", "two", overview="# Now")
    git_in(other)("pull", "-q")
    assert (other / "a" / "b.md").read_text() == "# Now\n\n<!-- entry count: 2 -->\n"
    assert git_in(other)("log", "--format=%s").split("\n") == ["two", "the first"]


def test_what_piles_up_is_packed_in_the_background_unless_that_is_off(
    project: Project, root: Path
) -> None:
    journal = project.open(**{"journal.enabled": True, "journal.auto_gc": False}).journal
    add(journal, "a", "one")
    # As if there were some 6,700 loose objects: git looks at one folder of 256, too.
    crowd = root / ".git" / "objects" / "17"
    crowd.mkdir(exist_ok=True)
    for number in range(30):
        (crowd / f"{number:038x}").touch()
    add(journal, "a", "two")
    packs = root / ".git" / "objects" / "pack"
    assert not list(packs.glob("*.pack"))
    for number in range(30):
        (crowd / f"{number:038x}").unlink()
        (crowd / f"tmp_obj_{number}").touch()
    journal = project.open(**ON).journal
    add(journal, "a", "three")
    deadline = time.monotonic() + 30
    while not list(packs.glob("*.pack")):
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
    assert journal.read("a").entry_count == 3


def test_a_repository_or_a_folder_of_others_never_becomes_the_journal(
    project: Project, root: Path
) -> None:
    outer = git_in(project.root)
    outer("init", "-q")
    (project.root / "sub").symlink_to(project.root)
    for path in (".", "sub/..", ".git/journal", "sub"):
        workspace = project.open(**ON, **{"journal.path": path})
        with pytest.raises(UnavailableError):
            add(workspace.journal, "a", "one")
    assert outer("for-each-ref") == ""
    project.write("journal-data/mine.txt", "mine")
    with pytest.raises(UnavailableError, match="is not empty and is not a git repository"):
        add(project.open(**ON).journal, "a", "one")
    assert not (root / ".git").exists()


def test_a_journal_that_a_person_cloned_is_used_and_left_alone_by_the_project(
    project: Project, root: Path
) -> None:
    elsewhere = project.root.parent / "elsewhere"
    elsewhere.mkdir()
    git_in(elsewhere)("init", "-q")
    commits_at_once(elsewhere, ["one", "two"])
    outer = git_in(project.root)
    outer("init", "-q")
    bare = elsewhere.with_name("elsewhere.git")
    outer("clone", "-q", "--bare", str(elsewhere), str(bare))
    outer("clone", "-q", str(bare), str(root))
    journal = project.open(**ON).journal
    assert journal.read("a").entry_count == 2
    add(journal, "a", "three")
    assert outer("status", "--porcelain") == ""
    assert journal.sync().sent == 1
    outer("-C", str(root), "remote", "set-url", "origin", str(elsewhere))
    with pytest.raises(UnavailableError, match="not a bare repository"):
        journal.sync()


def test_the_author_is_as_configured_if_git_can_write_it_down(project: Project, root: Path) -> None:
    for author in ("nobody", "A<a@b>", "A <a@b> B", "A <a>b>"):
        with pytest.raises(ConfigError, match=r"journal\.author"):
            project.open(**{"journal.enabled": True, "journal.author": author})
    flags = {"journal.enabled": True, "journal.author": "Ünal Ö. <u@localhost>"}
    add(project.open(**flags).journal, "a", "one")
    assert git_in(root)("log", "--format=%an|%ae|%cn") == "Ünal Ö.|u@localhost|Ünal Ö."
