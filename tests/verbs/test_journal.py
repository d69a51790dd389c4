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
from tests.conftest import NOW

from ragdocs.errors import (
    AlreadyExistsError,
    ConfigError,
    NotFoundError,
    RagdocsError,
    UnavailableError,
    ValidationError,
)
from ragdocs.verbs.journal import Journal, NewEntry, Reads

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

Git = Callable[..., str]


def git_in(root: Path) -> Git:
    environ = {"HOME": str(root.parent), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str, stdin: bytes = b"", check: bool = True, at: str = "") -> str:
        who = ("-c", "user.name=P", "-c", "user.email=p@localhost", "-c", "init.defaultBranch=main")
        dated = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {}
        command = ["git", "-C", str(root), *who, *words]
        done = subprocess.run(
            command, env=environ | dated, input=stdin, check=check, capture_output=True
        )
        return done.stdout.decode(errors="replace").strip()

    return git


@pytest.fixture
def workspace(project: Project) -> Workspace:
    return project.open(**{"journal.enabled": True})


@pytest.fixture
def journal(workspace: Workspace) -> Journal:
    return workspace.journal


@pytest.fixture
def root(project: Project) -> Path:
    return project.root / "journal-data"


def add(journal: Journal, section: str, entry: str, **more: str) -> str:
    reads: Reads = {}
    journal.read(section, reads=reads)
    return journal.write(section, NewEntry(entry, **more), reads)["id"]


def found(workspace: Workspace, text: str) -> list[str]:
    """Return the entries that a search finds, as a server that follows the refs does."""
    workspace.sync()
    return [hit["content"] for hit in workspace.journal.search("", text, 0.0)["result"]]


@pytest.mark.parametrize(
    "entry",
    [
        "# A heading\n\n# Another\n#hashtag",
        "Body\n\nSigned-off-by: A <a@b>\nCo-authored-by: B <b@c>",
        "emoji 🎉👩‍👩‍👧 and ünïcödé and 日本語",
        "---\nstatus: archived\nexpires_at: 2001-01-01\n---\nlooks like frontmatter",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@",
        "  indented first line\n\ttab\n\n\n\nblank lines",
        "x" * 65_536,
        "line\n" * 13_000,
        "data 5\nM 100644 inline evil.md\nfrom refs/heads/main\ndone",
    ],
    ids=[
        "headings",
        "trailers",
        "emoji",
        "frontmatter",
        "diff",
        "blanks",
        "one line of 64 KB",
        "64 KB",
        "stream",
    ],
)
def test_an_entry_is_kept_letter_by_letter(journal: Journal, root: Path, entry: str) -> None:
    name = add(journal, "a", entry)
    source = journal.corpus.store.read(next(iter(journal.corpus.store.scan([name]).stamps)))
    assert source.text == entry.strip("\n")
    assert (
        git_in(root)("log", "-1", "--format=%B").strip("\n") == entry.strip("\n").strip()
        or entry[0] == " "
    )
    assert git_in(root)("ls-files") == "a.md"
    assert len(journal.search("", entry[:200], 0.0)["result"]) == 1


def test_what_cannot_be_a_message_is_refused(journal: Journal) -> None:
    for entry in ("a\0b", "x" * 1_000_001, "", "\n \n"):
        with pytest.raises(ValidationError):
            add(journal, "a", entry)
    assert journal.contents()["entry_count"] == 0


NAMES = [
    "-rf",
    "--output=x",
    "with spaces in it",
    "größe/überblick",
    "日本語",
    "🎉 party",
    "a'b$(x)`y`",
    "v1.2/notes",
    "HEAD",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_section_may_have_any_reasonable_name(journal: Journal, root: Path, name: str) -> None:
    first = add(journal, name, "one")
    add(journal, name, "two", overview="# Now")
    assert journal.read(name)["content"] == "# Now"
    assert journal.read(first)["content"] == "one"
    assert journal.entries(name)["total"] == 2
    assert (root / f"{name}.md").read_text() == "# Now\n\n<!-- entry count: 2 -->\n"
    assert git_in(root)("status", "--porcelain") == ""
    below = journal.contents(depth=5)["subsections"]
    while "subsections" in below[0] and below[0]["subsections"]:
        below = below[0]["subsections"]
    assert below[0]["id"] == name


@pytest.mark.parametrize(
    "name",
    ["", ".git/config", "../x", "/etc/x", "a#b", "a/../b", ".hidden", "a\nb", "x.md/y", "nul"],
)
def test_a_name_that_leads_elsewhere_is_refused(journal: Journal, root: Path, name: str) -> None:
    add(journal, "x", "one")
    with pytest.raises((ValidationError, NotFoundError)):
        add(journal, name, "entry")
    assert git_in(root)("ls-files") == "x.md"


def test_names_that_differ_only_in_case_collide_and_in_form_do_not(journal: Journal) -> None:
    add(journal, "Größe", "one")
    with pytest.raises(AlreadyExistsError, match="Größe"):
        add(journal, "größe", "two")
    add(journal, "Gro\u0308ße", "the same name, decomposed")
    assert journal.entries("Größe")["total"] == 2


def commits_at_once(root: Path, messages: list[str]) -> None:
    """Make many commits as fast as git can."""
    stream = []
    for number, message in enumerate(messages):
        data = message.encode()
        who = f"P <p@localhost> {1_700_000_000 + number} +0000"
        stream.append(
            f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {len(data)}\n".encode()
            + data
        )
        stream.append(f"\nM 100644 inline a.md\ndata {len(str(number))}\n{number}\n".encode())
    git_in(root)("fast-import", "--quiet", stdin=b"".join(stream))


def test_an_ambiguous_beginning_lists_the_candidates(project: Project, root: Path) -> None:
    root.mkdir()
    git_in(root)("init", "-q")
    commits_at_once(root, [f"entry {number}" for number in range(1500)])
    names = git_in(root)("log", "--format=%H").split("\n")
    prefix, count = Counter(name[:4] for name in names).most_common(1)[0]
    assert count > 1, "1,500 commits share four digits somewhere"
    journal = project.open(**{"journal.enabled": True, "embedding.model": "none"}).journal
    with pytest.raises(
        ValidationError, match=f"{prefix} is the beginning of {count} entries"
    ) as caught:
        journal.read(f"a#{prefix}")
    alike = [name for name in names if name.startswith(prefix)]
    assert all(f"a#{name}" in str(caught.value) for name in alike)
    assert journal.read(f"a#{alike[0][:12]}")["version"] == alike[0]
    for wrong in ("a#abc", "a#zzzz", "a#HEAD", "a#", "b#" + alike[0][:12]):
        with pytest.raises(RagdocsError):
            journal.read(wrong)
    assert journal.read("a")["entry_count"] == 1500


def test_an_empty_repository_is_an_empty_journal(project: Project, root: Path) -> None:
    root.mkdir()
    git_in(root)("init", "-q", "-b", "trunk")
    workspace = project.open(**{"journal.enabled": True})
    journal = workspace.journal
    assert journal.contents() == {
        "id": "",
        "type": "journal",
        "last_updated": None,
        "entry_count": 0,
        "subsections": [],
        "notes": [],
    }
    assert journal.search("a", "b")["result"] == []
    with pytest.raises(NotFoundError):
        journal.entries("a")
    add(journal, "a", "first")
    assert git_in(root)("rev-parse", "--abbrev-ref", "HEAD") == "trunk"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("HEAD", ""),
        ("HEAD", "nonsense\n"),
        ("HEAD", "ref: refs/heads/../../x\n"),
        ("refs/heads/main", "nonsense\n"),
        ("refs/heads/main", "0" * 39 + "1\n"),
        ("config", "[core\n"),
    ],
)
def test_a_broken_repository_is_told_and_costs_nothing(
    project: Project, root: Path, file: str, text: str
) -> None:
    outer = git_in(project.root)
    outer("init", "-q")
    outer("commit", "-q", "--allow-empty", "-m", "outer")
    project.doc("a.md", "# Retries\n\nWith jitter.\n")
    first = project.open(**{"journal.enabled": True})
    add(first.journal, "a", "first entry")
    first.save()
    (root / ".git" / file).write_text(text)
    workspace = project.open(**{"journal.enabled": True})
    assert workspace.documents.search("retries")["result"]
    with pytest.raises(UnavailableError):
        add(workspace.journal, "a", "second")
    assert outer("log", "--format=%s") == "outer", (
        "git goes on to the repository above when it finds one damaged"
    )
    assert (root / ".git" / file).read_text() == text
    lane = next(lane for lane in workspace.status()["lanes"] if lane["lane"] == "journal")
    assert lane["documents"] == 1, "what cannot be looked at is not gone"
    assert "journal" in lane["notes"][-1]
    assert str(root) in lane["notes"][-1]


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


def test_a_folder_with_other_things_in_it_does_not_become_a_journal(
    project: Project, root: Path
) -> None:
    project.write("journal-data/mine.txt", "mine")
    with pytest.raises(UnavailableError, match="holds other things"):
        add(project.open(**{"journal.enabled": True}).journal, "a", "one")
    assert not (root / ".git").exists()


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
    assert found(workspace, "ocelot") == ["the ocelot is on a branch"]
    assert found(workspace, "gecko") == ["the gecko is elsewhere"]
    assert journal.read("a")["entry_count"] == 1
    git("branch", "-qD", "idea")
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    assert found(workspace, "gecko") == []
    assert found(workspace, "ocelot") == ["the ocelot is on a branch"], "the tag still leads there"
    git("tag", "-d", "kept")
    git("commit", "-q", "--amend", "-m", "the walrus was renamed to manatee")
    assert found(workspace, "ocelot") == []
    assert found(workspace, "walrus manatee") == ["the walrus was renamed to manatee"]
    stash = (root / "a.md").write_text("stashed\n")
    assert stash
    git("stash", "-q")
    assert found(workspace, "WIP on main") == []


def test_a_new_entry_embeds_itself_only(workspace: Workspace, root: Path) -> None:
    journal = workspace.journal
    for number in range(5):
        add(journal, "a", f"entry number {number}")
    workspace.embed()
    add(journal, "a", "one more")
    counts = journal.corpus.index.counts()
    assert (counts["vectors"], counts["chunks"]) == (6, 6), "a write waits for its own vectors"
    report = workspace.sync()["journal"]
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 0, 0, 6)
    assert workspace.embed() == 0
    (root / "a.md").write_text("by hand\n")
    git_in(root)("commit", "-qam", "committed by a person")
    report = workspace.sync()["journal"]
    assert (report.added, report.changed, report.removed, report.unchanged) == (1, 0, 0, 6)
    assert workspace.embed() == 1


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
    hits = journal.search("", "backoff jitter retry", 0.9)["result"]
    full = journal.search("", "backoff jitter retry", 0.1)["result"]
    kinds = [hit["content"].rpartition(", ")[2] for hit in hits]
    assert kinds.count("fresh") == 2
    assert kinds.count("ancient") < kinds.count("fresh")
    for hit in full:
        name = hit["content"].rpartition(", ")[2]
        salience = {"fresh": 1.0, "a month old": 0.5, "ancient": 0.5**10}.get(name, 1.0)
        needed = 0.1 * salience + 0.9 * (1 - salience)
        assert (hit in hits) == (hit["combined_score"] > needed), (hit, needed)
    assert project.config().journal.half_life_days == 30


def test_threshold_and_number_of_results_are_configurable(
    project: Project, workspace: Workspace
) -> None:
    for number in range(4):
        add(workspace.journal, "a", f"backoff with jitter, attempt {number}")
    assert len(workspace.journal.search("", "backoff")["result"]) == 4
    flags = {"journal.enabled": True, "journal.max_results": 3}
    assert len(project.open(**flags).journal.search("", "backoff")["result"]) == 3
    project.clock = lambda: NOW + timedelta(days=3000)
    strict = project.open(**flags, **{"journal.default_salience_threshold": 1.0}).journal
    assert strict.search("", "backoff")["result"] == []
    assert len(strict.search("", "backoff", 0.0)["result"]) == 3


def test_every_time_is_in_utc_and_ends_in_z(
    project: Project, workspace: Workspace, root: Path
) -> None:
    journal = workspace.journal
    add(journal, "a/b", "one")
    (root / "a/b.md").write_text("by hand\n")
    git_in(root)("commit", "-qam", "two, far in the west", at="2026-11-16T02:00:00-08:00")
    workspace.sync()
    listed = [one["timestamp"] for one in journal.entries("a/b")["result"]]
    hits = [hit["timestamp"] for hit in journal.search("", "west one", 0.0)["result"]]
    times = [*listed, *hits, journal.read("a/b")["timestamp"], journal.contents()["last_updated"]]
    assert "2026-11-16T10:00:00Z" in listed
    assert len(times) >= 5
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(moment)) for moment in times), (
        times
    )


def test_a_removed_section_leaves_the_contents_and_stays_in_the_history(
    journal: Journal, root: Path
) -> None:
    add(journal, "a", "one")
    add(journal, "b", "two")
    git = git_in(root)
    git("rm", "-q", "a.md")
    git("commit", "-qm", "a is done with")
    assert [one["id"] for one in journal.contents()["subsections"]] == ["b"]
    assert not journal.read("a")["exists"]
    assert journal.entries("a")["total"] == 2
    add(journal, "a", "again", overview="# A again")
    assert journal.read("a")["entry_count"] == 3


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
    journal = project.open(**{"journal.enabled": True}).journal
    add(journal, "a", "three")
    deadline = time.monotonic() + 30
    while not list(packs.glob("*.pack")):
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)
    assert journal.read("a")["entry_count"] == 3


@pytest.mark.parametrize("path", [".", "sub/..", ".git/journal", "sub"])
def test_the_project_s_own_repository_is_never_the_journal(project: Project, path: str) -> None:
    outer = git_in(project.root)
    outer("init", "-q")
    (project.root / "sub").symlink_to(project.root)
    workspace = project.open(**{"journal.enabled": True, "journal.path": path})
    with pytest.raises(UnavailableError):
        add(workspace.journal, "a", "one")
    assert outer("for-each-ref") == ""


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
    journal = project.open(**{"journal.enabled": True}).journal
    assert journal.read("a")["entry_count"] == 2
    add(journal, "a", "three")
    assert outer("status", "--porcelain") == ""
    assert journal.sync()["sent"] == 1
    outer("-C", str(root), "remote", "set-url", "origin", str(elsewhere))
    with pytest.raises(UnavailableError, match="not a bare repository"):
        journal.sync()


@pytest.mark.parametrize("author", ["nobody", "A<a@b>", "A <a@b> B", "A <a>b>"])
def test_an_author_that_git_could_not_write_down_is_refused(project: Project, author: str) -> None:
    with pytest.raises(ConfigError, match=r"journal\.author"):
        project.open(**{"journal.enabled": True, "journal.author": author})


def test_the_author_is_as_configured(project: Project, root: Path) -> None:
    add(
        project.open(
            **{"journal.enabled": True, "journal.author": "Ünal Ö. <u@localhost>"}
        ).journal,
        "a",
        "one",
    )
    assert git_in(root)("log", "--format=%an|%ae|%cn") == "Ünal Ö.|u@localhost|Ünal Ö."
