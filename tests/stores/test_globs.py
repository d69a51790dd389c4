from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.errors import NotFoundError, ReadOnlyError, StorageError, UnavailableError
from ragdocs.lanes import DOCS, MEMORY
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Discard, Put, Scan

from .contract import fork, lane, listed, plant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


# --- what a scan lists ---


TREE = "README.md docs/a.md docs/b/c.md docs/b/d.png docs/drafts/e.md src/README.md"


@pytest.mark.parametrize(
    ("include", "exclude", "found"),
    [
        ("docs/**/*.md README.md", "", "README.md docs/a.md docs/b/c.md docs/drafts/e.md"),
        ("docs/**", "docs/drafts", "docs/a.md docs/b/c.md docs/b/d.png"),
        ("**/*.md", "**/drafts/** src/*", "README.md docs/a.md docs/b/c.md"),
        ("*/?.md", "", "docs/a.md"),
        # A folder anywhere, also at the top; not a file of that name, and not a part of a name.
        ("**/*.md", "**/docs/** **/README.md/** **/sr/**", "README.md src/README.md"),
        ("**/*.md", "**/d?afts/** **/[s]rc/**", "README.md docs/a.md docs/b/c.md"),
        ("**/*.md", "**/**/** **/./**", ""),
    ],
)
def test_globs_choose_and_exclude(root: Path, include: str, exclude: str, found: str) -> None:
    plant(root, *TREE.split())
    chosen = lane(*include.split(), exclude=tuple(exclude.split()))
    assert listed(root, chosen) == set(found.split())


def test_folders_that_no_glob_can_reach_are_not_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(root, "docs/a.md", "docs/deep/b.md", "vendor/x/y.md", "docs/node_modules/p/README.md")
    opened = []
    scandir = os.scandir

    def recorded(place: str) -> object:
        opened.append(Path(place).relative_to(root).as_posix())
        return scandir(place)

    monkeypatch.setattr(os, "scandir", recorded)
    assert listed(root, lane("docs/**/*.md")) == {"docs/a.md", "docs/deep/b.md"}
    assert sorted(opened) == [".", "docs", "docs/deep"]


def test_hidden_and_internal_folders_are_never_listed(root: Path) -> None:
    hidden = (".trash/b.md", ".history/c.md", "x/.git/e.md", "node_modules/f.md", ".g.md")
    plant(root, "a.md", "indices/d.md", *hidden)
    assert listed(root, MEMORY) == {"a.md"}
    assert listed(root, lane("**/*.md")) == {"a.md", "indices/d.md"}


def test_ignore_files_nest_and_the_nearest_wins(root: Path) -> None:
    ignored = ("docs/build/b.md", "docs/sub/c.md", "docs/tmp.md", "docs/local.md")
    plant(root, "docs/a.md", "docs/sub/keep.md", *ignored)
    (root / ".gitignore").write_text("build/\n/docs/tmp.md\n*.bak\n\nkeep.md\n")
    (root / "docs/sub/.gitignore").write_text("*\n!keep.md\n")
    (root / ".git/info").mkdir(parents=True)
    (root / ".git/info/exclude").write_text("local.md\n")
    assert listed(root, DOCS) == {"docs/a.md", "docs/sub/keep.md"}
    assert listed(root, lane("docs/**/*.md")) >= {*ignored}


def test_an_exclude_file_counts_wherever_objects_are_kept(root: Path, tmp_path: Path) -> None:
    plant(root, "docs/a.md", "docs/local.md")
    (root / ".git/info").mkdir(parents=True)
    (root / ".git/info/exclude").write_text("local.md\n")
    (tmp_path / "disk").mkdir()
    (root / ".git/objects").symlink_to(tmp_path / "disk")
    assert listed(root, DOCS) == {"docs/a.md"}


@pytest.mark.parametrize("part", ["info", "info/exclude"])
def test_an_exclude_file_that_is_kept_elsewhere_does_not_count(
    root: Path, tmp_path: Path, part: str
) -> None:
    plant(root, "docs/a.md", "docs/local.md")
    plant(tmp_path, "stranger/info/exclude")
    (tmp_path / "stranger/info/exclude").write_text("local.md\n")
    link = root / ".git" / part
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "stranger" / part)
    assert listed(root, DOCS) == {"docs/a.md", "docs/local.md"}


def test_ignore_files_above_the_root_count_up_to_the_repository(root: Path) -> None:
    plant(root, "packages/one/docs/a.md", "packages/one/docs/b.md", "packages/one/docs/c.md")
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("b.md\n")
    (root / "packages/.gitignore").write_text("one/docs/c.md\n")
    (root.parent / ".gitignore").write_text("*\n")
    assert listed(root / "packages/one", DOCS) == {"docs/a.md"}


NAMES = st.sampled_from(["a", "b", "ab", "a.md", "b.md", "x y", "[z]"])
GLOBS = st.lists(
    st.sampled_from(
        ["a", "b", "*", "**", "?", "a*", "*.md", "[ab]", "[^a]", "[!b]*", r"\[z]", r"a\*", "*b*"]
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def ignore_line(draw: st.DrawFn) -> str:
    body = "/".join(draw(GLOBS))
    return (
        draw(st.sampled_from(["", "!", "/", "!/", "#"]))
        + body
        + draw(st.sampled_from(["", "/", "  "]))
    )


@settings(max_examples=60, deadline=None, database=None)
@given(
    st.lists(ignore_line(), min_size=1, max_size=5),
    st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=8),
)
def test_ignore_rules_are_those_of_git(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], paths: list[list[str]]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for parts in paths:
        with contextlib.suppress(OSError):
            plant(root, "/".join(parts))
    (root / ".gitignore").write_text("\n".join(lines) + "\n")
    command = ["git", "-C", str(root), "ls-files", "-z", "--others", "--exclude-standard"]
    expected = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(
        "\0"
    )
    assert listed(root, lane("**", gitignore=True)) == {
        name for name in expected if name not in {"", ".gitignore"}
    }


def walked(root: Path, files: int, ignore: str, nested: int = 1) -> tuple[float, Scan]:
    """Walk a tree whose ignore files say so, and return the processor's time and what was seen."""
    place = root.joinpath("docs", *(["d"] * (nested - 1)))
    for number in range(files):
        plant(root, f"{place.relative_to(root)}/{number:05}-{'a' * 60}.md")
    for folder in (place, *place.parents[: nested - 1]):
        (folder / ".gitignore").write_text(ignore)
    (root / ".git").mkdir(exist_ok=True)
    store = FileStore(root, lane("**/*.md", gitignore=True))
    started = time.process_time()
    scan = store.scan()
    return time.process_time() - started, scan


HOSTILE = {
    "backtracking": "*a*a*a*a*a*a*a*a*b\n**/a/**/a/**/a/**/a/**/b\n[z-a]\n[\n!\n\\\n" * 50,
    "ends": "\n".join(f"*{number}x" for number in range(9_000)),
    "starts": "\n".join(f"x{number}*" for number in range(9_000)),
    "names": "\n".join(f"x{number}" for number in range(9_000)),
    "paths": "\n".join(f"/x{number}/y" for number in range(5_000)),
    "stars": "\n".join(f"*a*a*a{number}*" for number in range(5_000)),
    "repeated": "*a*b\n" * 12_000,
    "folders": "\n".join(f"**/d/*{number}*/" for number in range(4_000)),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("nested", [1, 12])
def test_a_large_ignore_file_costs_about_as_much_as_a_small_one(
    root: Path, kind: str, nested: int
) -> None:
    assert len(HOSTILE[kind]) < 65_536
    cost, scan = walked(root, 500, HOSTILE[kind], nested)
    assert len(scan.stamps) == 500
    # It was 8 s for one file of globs and more than a minute for twelve of them.
    assert cost < 8
    assert bool(scan.unreadable) == (kind in {"stars", "folders"})


def test_what_is_not_followed_of_an_ignore_file_is_told_and_the_last_lines_count(
    root: Path,
) -> None:
    globs = [f"*zzz{number}*q" for number in range(1_500)]
    _, scan = walked(root, 3, "\n".join(["*-a*.m?", *globs, "*00001*a.md"]))
    assert {path.rpartition("/")[2][:5] for path in scan.stamps} == {"00000", "00002"}
    assert list(scan.unreadable) == ["docs/.gitignore"]
    assert "more than 1000" in scan.unreadable["docs/.gitignore"]
    (root / "docs/.gitignore").write_text("x\n" * 40_000)
    scan = FileStore(root, lane("**/*.md", gitignore=True)).scan()
    assert len(scan.stamps) == 3
    assert "larger than" in scan.unreadable["docs/.gitignore"]


def test_very_deep_folders_are_walked(root: Path) -> None:
    root.mkdir()
    handle = os.open(root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("a.md", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)
    try:
        assert listed(root, MEMORY) == {"d/" * 1500 + "a.md"}
    finally:
        # Python's own removal of trees recurses, and would fail in pytest's cleaning up.
        subprocess.run(["rm", "-rf", str(root)], check=True)


def test_links_are_followed_inside_and_refused_outside(root: Path) -> None:
    plant(root, "docs/a.md", "shared/s.md", "secret/.env", ".git/config.md")
    plant(root.parent, "outside/o.md")
    inside = {"shared": "../shared", "one.md": "../shared/s.md", "twin.md": "a.md"}
    odd = {"loop": "..", "self": "self", "dangling.md": "nowhere.md", "git": "../.git"}
    outside = {"out": "../../outside", "out.md": "../../outside/o.md", "passwd.md": "/etc/passwd"}
    for name, target in {**inside, **odd, **outside, "env.md": "../secret/.env"}.items():
        (root / "docs" / name).symlink_to(target)
    (root / "shared/back").symlink_to("../docs")
    found = FileStore(root, DOCS)
    assert set(found.scan().stamps) == {"docs/a.md", "docs/shared/s.md", "docs/one.md"}
    assert found.read("docs/shared/s.md").text == "shared/s.md"
    for name in (
        "out.md",
        "out/o.md",
        "env.md",
        "passwd.md",
        "git/config.md",
        "../../outside/o.md",
    ):
        with pytest.raises(NotFoundError):
            found.read(f"docs/{name}")


def test_links_between_folders_do_not_explode(root: Path) -> None:
    folders = [f"shared/{index}" for index in range(12)]
    plant(root, "docs/a.md", *(f"{folder}/x.md" for folder in folders))
    for folder in folders:
        for other in folders:
            if folder != other:
                (root / folder / Path(other).name).symlink_to(f"../{Path(other).name}")
        (root / "docs" / Path(folder).name).symlink_to(f"../{folder}")
    assert len(listed(root, DOCS)) == 13


def test_a_missing_root_is_empty_and_a_broken_one_is_an_error(tmp_path: Path) -> None:
    assert FileStore(tmp_path / "never", MEMORY).scan().stamps == {}
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("gone")
    for name in ("file", "loop", "dangling", "file/below", "n" * 300):
        with pytest.raises(UnavailableError):
            FileStore(tmp_path / name, MEMORY).scan()


def as_nobody(work: Callable[[], None]) -> int:
    """Run something in a child without the superuser's rights and return its exit code."""
    child = fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            work()
        except BaseException as error:  # noqa: BLE001  # the child must not return into pytest
            sys.stderr.write(repr(error))
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def open_root() -> Iterator[Path]:
    """Give a folder that a user without rights can reach, which pytest's own are not."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    yield root
    root.chmod(0o755)
    shutil.rmtree(root)


def test_what_cannot_be_read_or_written_is_told_and_not_taken_for_absent(open_root: Path) -> None:
    plant(open_root, "a.md", "closed/b.md", "secret.md")
    for name, mode in (("secret.md", 0), ("closed", 0), ("", 0o555)):
        (open_root / name).chmod(mode)

    def work() -> None:
        store = FileStore(open_root, MEMORY)
        scan = store.scan()
        assert set(scan.stamps) == {"a.md"}, scan
        assert set(scan.unreadable) == {"closed", "secret.md"}, scan
        assert set(store.scan(["closed/b.md"]).unreadable) == {"closed/b.md"}
        with pytest.raises(StorageError):
            store.read("secret.md")
        for change in (Put("a.md", "x"), Put("b.md", "x"), Discard("a.md")):
            with pytest.raises(ReadOnlyError):
                store.commit([change])
        assert store.read("a.md").text == "a.md"

    assert as_nobody(work) == 0
    (open_root / "closed").chmod(0o755)


def test_an_unreadable_root_is_an_error(open_root: Path) -> None:
    plant(open_root, "a.md")
    open_root.chmod(0o311)

    def work() -> None:
        with pytest.raises(UnavailableError):
            FileStore(open_root, MEMORY).scan()

    assert as_nobody(work) == 0
