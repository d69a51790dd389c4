"""Text beyond the project: a revision of a repository, an installed package, an llms.txt."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plain_git import plain_git
from tests.stores.contract import Library, ReadableContract, WatchedContract

from ragdocs.errors import NotFoundError, UnavailableError, ValidationError
from ragdocs.lanes import SOURCES
from ragdocs.project.packages import find_node_package, find_python_package
from ragdocs.project.sources import parse_source, split_path
from ragdocs.stores.sources.linked import LinkedFiles
from ragdocs.stores.sources.package import PackageStore
from ragdocs.stores.sources.tree import GitTree
from ragdocs.text import docstrings


def repository(root: Path, **files: str) -> Path:
    root.mkdir(parents=True)
    plain_git(root, "init", "--quiet")
    commit(root, **files)
    return root


def commit(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(text)
    plain_git(root, "add", "--all")
    plain_git(root, "commit", "--quiet", "--allow-empty", "--message", "change")


class Committed(Library):
    """Texts that are committed, and whose files are removed afterwards."""

    def open(self) -> GitTree:
        if not (self.root / ".git").exists():
            repository(self.root)
        return GitTree(self.root, "main", "", SOURCES)

    def add(self, name: str, text: str) -> None:
        commit(self.root, **{name.replace("/", "__"): text})


class TestGitTree(ReadableContract, WatchedContract):
    """The documents of a branch."""

    @pytest.fixture
    def library(self, tmp_path: Path) -> Library:
        return Committed(tmp_path / "repository")


def test_a_bare_clone_is_read_at_a_tag_whatever_its_branches_do(tmp_path: Path) -> None:
    root = repository(tmp_path / "tool", docs__guide="# Guide\n\nversion one")
    plain_git(root, "tag", "v1")
    commit(root, docs__guide="# Guide\n\nversion two", docs__new="# New")
    plain_git(tmp_path, "clone", "--quiet", "--bare", "tool", "tool.git")
    bare = tmp_path / "tool.git"
    old, new = GitTree(bare, "v1", "", SOURCES), GitTree(bare, "HEAD", "docs", SOURCES)
    assert set(old.scan().stamps) == {"docs/guide.md"}
    assert "version one" in old.read("docs/guide.md").text
    assert set(new.scan().stamps) == {"guide.md", "new.md"}
    assert new.locate("new.md") == f"{bare}@HEAD:docs/new.md"


def test_links_tests_and_other_files_of_a_revision_are_no_documents(tmp_path: Path) -> None:
    root = repository(tmp_path / "tool", docs__guide="# Guide")
    (root / "docs/passwords.md").symlink_to("/etc/passwd")
    (root / "docs/tool.py").write_text("x = 1")
    commit(root, tests__case="# Case", _static__theme="# Theme")
    assert set(GitTree(root, "main", "", SOURCES).scan().stamps) == {"docs/guide.md"}


def test_a_revision_or_repository_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    root = repository(tmp_path / "tool", guide="# Guide")
    with pytest.raises(UnavailableError, match="nothing-like-it"):
        GitTree(root, "nothing-like-it", "", SOURCES).scan()
    with pytest.raises(ValidationError):
        GitTree(root, "--output=/tmp/x", "", SOURCES).scan()
    (tmp_path / "plain").mkdir()
    with pytest.raises(UnavailableError, match="is not in a git repository"):
        GitTree(tmp_path / "plain", "HEAD", "", SOURCES)


METADATA = """\
Metadata-Version: 2.1
Name: Tidy.Lamp
Version: 2.3.1
Description-Content-Type: text/markdown

# Lamp

Lights up the {word}.
"""
MODULE = '''
"""Lamps of all kinds."""

class Lamp(Base):
    """A lamp with a zebra shade."""

    def light(self, hours: int = 1) -> None:
        """Burn for some hours."""

    def _hidden(self): ...

def _private(): ...
'''


def install(root: Path, *, word: str = "room") -> Path:
    """Install a package into the virtual environment of a project, as pip does."""
    site = root / ".venv/lib/python3.12/site-packages"
    info = site / "tidy_lamp-2.3.1.dist-info"
    info.mkdir(parents=True)
    (root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    (info / "METADATA").write_text(METADATA.format(word=word))
    files = {
        "tidy_lamp/__init__.py": MODULE,
        "tidy_lamp/_inner.py": MODULE,
        "tidy_lamp/tests/test_lamp.py": MODULE,
    }
    rows = ["tidy_lamp-2.3.1.dist-info/LICENSE.md,,", "../../../../../outside.md,,"]
    (root / "outside.md").write_text("# Outside")
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
        rows.append(f"{name},sha256=x,1")
    (info / "RECORD").write_text("\n".join(rows))
    return site


def package(root: Path) -> PackageStore:
    return PackageStore(root, "tidy-lamp", find_python_package(root, "tidy-lamp"), SOURCES)


def test_a_python_package_is_its_readme_and_the_docstrings_of_public_modules(
    tmp_path: Path,
) -> None:
    install(tmp_path)
    store = package(tmp_path)
    assert set(store.scan().stamps) == {"README.md", "api/tidy_lamp.md"}
    assert store.read("README.md").text == "# Lamp\n\nLights up the room."
    text = store.read("api/tidy_lamp.md").text
    assert "# tidy_lamp\n\nLamps of all kinds." in text
    assert "### Lamp.light\n\n```python\ndef light(self, hours: int=1) -> None\n```" in text
    assert "zebra" in text
    assert "hidden" not in text
    assert store.note.startswith("README and docstrings only")


def test_documents_that_a_package_bundles_are_read_and_named(tmp_path: Path) -> None:
    site = install(tmp_path)
    (site / "tidy_lamp/docs").mkdir()
    (site / "tidy_lamp/docs/bulbs.md").write_text("# Bulbs")
    with (site / "tidy_lamp-2.3.1.dist-info/RECORD").open("a") as record:
        record.write("\ntidy_lamp/docs/bulbs.md,,")
    store = package(tmp_path)
    assert store.read("tidy_lamp/docs/bulbs.md").text == "# Bulbs"
    assert store.note == ""


def test_an_environment_that_leads_out_of_the_project_is_refused(tmp_path: Path) -> None:
    install(tmp_path / "elsewhere")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.venv").symlink_to(tmp_path / "elsewhere/.venv")
    with pytest.raises(UnavailableError, match="leads out of the project"):
        find_python_package(tmp_path / "project", "tidy-lamp")


def test_a_package_that_is_not_installed_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    with pytest.raises(NotFoundError, match="has no virtual environment"):
        find_python_package(tmp_path, "tidy-lamp")
    install(tmp_path)
    with pytest.raises(NotFoundError, match="lantern is not installed in"):
        find_python_package(tmp_path, "lantern")
    with pytest.raises(NotFoundError, match="npm install zod"):
        find_node_package(tmp_path, "zod")


def test_a_module_that_is_no_python_is_an_error_and_no_crash() -> None:
    for source in ("def (", "(" * 5000, "x = \0"):
        with pytest.raises(ValueError, match=r"Python|null"):
            docstrings.reference("x", source)


def test_an_llms_txt_reads_the_files_on_disk_that_it_links_to(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    (folder / "docs").mkdir(parents=True)
    for name in ("docs/start.md", "docs/kit.md", "unlinked.md"):
        (folder / name).write_text(f"# {name}")
    (tmp_path / "secret.md").write_text("# secret")
    (folder / "docs/out.md").symlink_to(tmp_path / "secret.md")
    (folder / "llms.txt").write_text(
        "# Site\n\n- [Start](docs/start.md)\n- [Kit](https://example.org/docs/kit)\n"
        "- [Gone](gone.md)\n- [Up](../secret.md)\n- [Out](docs/out.md)\n"
    )
    store = LinkedFiles(folder / "llms.txt", SOURCES)
    assert set(store.scan().stamps) == {"llms.txt", "docs/start.md", "docs/kit.md"}
    assert store.note == "2 of its links lead to no file on this disk"
    with pytest.raises(NotFoundError):
        store.read("unlinked.md")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("/srv/handbook", ("folder", "handbook", "/srv/handbook", "", "")),
        ("rules=/srv/handbook", ("folder", "rules", "/srv/handbook", "", "")),
        ("git:/srv/tool.git@v2.1:docs/en", ("git", "tool", "/srv/tool.git", "v2.1", "docs/en")),
        ("git:/srv/tool", ("git", "tool", "/srv/tool", "HEAD", "")),
        ("pip:Tidy.Lamp", ("pip", "Tidy.Lamp", "Tidy.Lamp", "", "")),
        ("npm:@types/node", ("npm", "types-node", "@types/node", "", "")),
        ("llms:/srv/site/llms.txt", ("llms", "site", "/srv/site/llms.txt", "", "")),
    ],
)
def test_a_line_of_the_configuration_names_a_source(line: str, parts: tuple[str, ...]) -> None:
    source = parse_source(line)
    assert (source.kind, source.name, source.location, source.revision, source.folder) == parts


@pytest.mark.parametrize("line", ["handbook", "pip:../x", "npm:a b", "git:tool@v1", "cargo:x", "/"])
def test_a_line_that_is_no_source_says_how_to_write_one(line: str) -> None:
    with pytest.raises(ValidationError) as refused:
        parse_source(line)
    assert refused.value.hint.startswith("Write")


def test_the_path_of_a_document_has_its_source_and_version() -> None:
    assert split_path("zod@3.1.0/docs/api.md") == ("zod", "3.1.0", "docs/api.md")
    assert split_path("docs/api.md") is None
    assert split_path("docs/a@b.md") is None
