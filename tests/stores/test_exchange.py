"""Two journals and a remote between them: nothing is lost, conflicts are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plain_git import plain_git

from ragdocs.errors import ConflictError, NotFoundError, RagdocsError, ValidationError
from ragdocs.stores.git.exchange import Exchange
from ragdocs.stores.git.journal import JournalStore
from ragdocs.types import Exchanged, Put


class Side:
    """One journal of two."""

    def __init__(self, root: Path, remote: Path) -> None:
        self.root = root
        self.store = JournalStore(root)
        root.mkdir()
        self.git("init", "-q")
        self.git("remote", "add", "origin", str(remote))

    def git(self, *words: str) -> str:
        return plain_git(self.root, *words)

    def add(self, section: str, entry: str, text: str | None = None) -> None:
        if text is None:
            try:
                text = self.store.read(f"{section}.md").text
            except NotFoundError:
                text = ""
        self.store.commit([Put(f"{section}.md", text, note=entry)])

    def sync(self, **resolved: str) -> Exchanged:
        texts = {f"{name}.md": text for name, text in resolved.items()}
        return Exchange(self.store).run("", texts)

    def says(self, section: str) -> str:
        assert self.git("status", "--porcelain") == ""
        return (self.root / f"{section}.md").read_text()

    def entries(self) -> list[str]:
        return sorted(self.git("log", "--no-merges", "--format=%s").split("\n"))


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    plain_git(tmp_path, "init", "-q", "--bare", "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def one(tmp_path: Path, remote: Path) -> Side:
    return Side(tmp_path / "one", remote)


@pytest.fixture
def two(tmp_path: Path, remote: Path) -> Side:
    return Side(tmp_path / "two", remote)


def test_what_one_side_writes_the_other_receives(one: Side, two: Side) -> None:
    one.add("a", "first", "# A")
    one.add("deep/down/b", "second")
    assert one.sync() == Exchanged("origin", "main", 0, 2, ())
    assert two.sync() == Exchanged("origin", "main", 2, 0, ())
    assert two.says("a") == "# A\n\n<!-- entry count: 1 -->\n"
    assert two.says("deep/down/b") == "<!-- entry count: 1 -->\n"
    assert two.sync() == Exchanged("origin", "main", 0, 0, ())
    two.git("rm", "-q", "a.md")
    two.git("commit", "-qm", "a is done with")
    two.sync()
    one.sync()
    assert not (one.root / "a.md").exists()
    assert one.git("status", "--porcelain") == ""


def test_entries_of_both_sides_are_counted_and_not_added_up(one: Side, two: Side) -> None:
    one.add("a", "first", "# A\n\ntop\n\nmiddle\n\nend")
    one.sync()
    two.sync()
    for number in range(3):
        one.add("a", f"one {number}")
        two.add("a", f"two {number}")
    one.add("only-one", "here")
    two.add("only-two", "there")
    two.add("a", "two changes the end", "# A\n\ntop\n\nmiddle\n\nEND")
    one.add("a", "one changes the top", "# A\n\nTOP\n\nmiddle\n\nend")
    one.sync()
    outcome = two.sync()
    assert (outcome.received, outcome.merged) == (5, ("a.md",))
    one.sync()
    text = "# A\n\nTOP\n\nmiddle\n\nEND\n\n<!-- entry count: 9 -->\n"
    assert one.says("a") == two.says("a") == text
    assert one.entries() == two.entries()
    assert len(one.entries()) == 11
    assert one.git("rev-parse", "HEAD") == two.git("rev-parse", "HEAD")
    one.add("a", "after the merge")
    assert one.says("a").endswith("<!-- entry count: 10 -->\n")


def test_overviews_that_contradict_are_told_and_nothing_is_changed(
    one: Side, two: Side, remote: Path
) -> None:
    one.add("a", "first", "we use REST")
    one.sync()
    two.sync()
    one.add("a", "one decides", "we use gRPC")
    two.add("a", "two decides", "we use GraphQL")
    one.sync()
    before = two.git("rev-parse", "HEAD")
    with pytest.raises(ConflictError, match="both sides have changed a") as caught:
        two.sync()
    error = caught.value
    texts = ("we use REST\n", "we use gRPC\n", "we use GraphQL\n")
    assert (error.base, error.theirs, error.yours) == texts
    assert "<<<<<<<" in error.merged
    assert (two.git("rev-parse", "HEAD"), two.git("status", "--porcelain")) == (before, "")
    two.sync(a="we use both")
    one.sync()
    assert one.says("a") == two.says("a") == "we use both\n\n<!-- entry count: 3 -->\n"
    assert one.entries() == ["first", "one decides", "two decides"]


def test_journals_that_began_apart_become_one(one: Side, two: Side) -> None:
    one.add("a", "of one", "# A")
    two.add("b", "of two", "# B")
    one.sync()
    two.sync()
    one.sync()
    assert one.says("b") == "# B\n\n<!-- entry count: 1 -->\n"
    assert two.says("a") == "# A\n\n<!-- entry count: 1 -->\n"


def test_an_edit_by_hand_outlives_what_is_received(one: Side, two: Side) -> None:
    one.add("a", "first", "# A")
    one.sync()
    two.sync()
    (two.root / "a.md").write_text("by hand\n")
    one.add("a", "second", "# A, changed")
    one.sync()
    two.sync()
    assert (two.root / "a.md").read_text() == "by hand\n"
    assert two.git("diff", "--name-only") == "a.md"


@pytest.mark.parametrize(
    "address", ["ext::sh -c 'touch x'", "foo::bar", "gopher://x/y", "git://host.invalid/x"]
)
def test_an_address_that_names_a_program_is_refused(one: Side, address: str) -> None:
    one.git("config", "remote.origin.url", address)
    with pytest.raises(ValidationError, match="not one that is safe"):
        one.sync()


def test_a_remote_that_is_not_there_is_told_without_its_password(one: Side) -> None:
    one.add("a", "first")
    one.git("config", "remote.origin.url", "https://user:hunter2@127.0.0.1:9/x.git")
    with pytest.raises(RagdocsError) as caught:
        one.sync()
    assert "hunter2" not in str(caught.value)
    one.git("remote", "remove", "origin")
    with pytest.raises(NotFoundError, match="has no remote"):
        one.sync()
