"""Settings of a journal that reach beyond it are refused before git reads them."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.plain_git import ENVIRON
from tests.plain_git import plain_git as plain

from ragdocs.errors import RagdocsError, UnavailableError, ValidationError
from ragdocs.stores.git.exchange import Exchange
from ragdocs.stores.git.journal import JournalStore
from ragdocs.system import git
from ragdocs.types import Exchanged, Put


def sync(root: Path) -> Exchanged:
    return Exchange(JournalStore(root)).run("", {})


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    plain(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def journal(tmp_path: Path, remote: Path) -> Path:
    root = tmp_path / "journal"
    JournalStore(root).commit([Put("a.md", "# A", note="first")])
    plain(root, "remote", "add", "origin", str(remote))
    return root


class Cookies(BaseHTTPRequestHandler):
    """Answers every request with a cookie."""

    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        # An empty repository, as a plain file server shows one.
        self.send_response(200 if "info/refs" in self.path else 404)
        self.send_header("Set-Cookie", "evil=1; Max-Age=9999")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Cookies.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cookies)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("of_address", [False, True])
def test_a_cookie_file_of_a_journal_overwrites_nothing(
    journal: Path, server: ThreadingHTTPServer, of_address: bool
) -> None:
    precious = journal.parent / "precious"
    address = f"http://127.0.0.1:{server.server_port}/"
    section = f"http.{address}" if of_address else "http"
    plain(journal, "config", f"{section}.cookieFile", str(precious))
    plain(journal, "config", f"{section}.saveCookies", "true")
    plain(journal, "config", "remote.origin.url", f"{address}x.git")
    precious.write_text("precious\n")
    with pytest.raises(UnavailableError, match="cookiefile") as caught:
        sync(journal)
    assert str(journal / ".git" / "config") in str(caught.value)
    assert "--unset-all" in caught.value.hint
    assert precious.read_text() == "precious\n"
    assert Cookies.requests == []
    plain(journal, "fetch", check=False)
    assert precious.read_text() != "precious\n", "the trap works for plain git"


SETTINGS = (
    "http.cookieFile", "http.sslCert", "http.sslKey", "http.sslCAInfo", "http.proxy", "http.http://h/.cookieFile",
    "http.extraHeader", "url.ext::x.insteadOf", "url.x.pushInsteadOf", "remote.origin.uploadpack",
    "remote.origin.receivepack", "remote.origin.vcs", "remote.origin.proxy", "remote.origin.promisor",
    "remote.https://h/x.url", "remote.pushDefault", "core.gitProxy", "core.sshCommand", "core.worktree",
    "core.hooksPath", "core.fsmonitor", "core.attributesFile", "core.excludesFile", "core.alternateRefsCommand",
    "protocol.ext.allow", "include.path", "includeIf.gitdir:/.path", "extensions.worktreeConfig",
    "extensions.partialClone", "extensions.refStorage", "gc.recentObjectsHook", "gc.repackFilterTo", "gc.pruneExpire",
    "fetch.fsck.skipList", "fetch.bundleURI", "fetch.fsckObjects", "receive.fsck.skipList", "trace2.eventTarget",
    "filter.x.clean", "diff.x.textconv", "merge.x.driver", "credential.helper", "gpg.program", "mailmap.file",
    "submodule.x.update", "alias.x", "uploadpack.packObjectsHook", "ssh.variant", "transfer.credentialsInUrl",
)  # fmt: skip


# What people set in their journals.
HARMLESS = (
    "user.name", "user.email", "pull.rebase", "commit.gpgSign", "branch.a.b/c.merge",
    "core.autocrlf",
)  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_may_reach_further_is_refused_by_name(
    journal: Path, remote: Path, name: str
) -> None:
    value = str(journal.parent / "reached")
    with (journal / ".git" / "config").open("a") as file:
        section, _, rest = name.partition(".")
        subsection, _, key = rest.rpartition(".")
        head = f'{section} "{subsection}"' if subsection else section
        file.write(f"[{head}]\n{key} = {value}\n")
    before = sorted(remote.rglob("*"))
    with pytest.raises(UnavailableError) as caught:
        sync(journal)
    assert f"sets {section.lower()}." in str(caught.value)
    assert f"{key.lower()}, which a journal is not used with" in str(caught.value)
    store = JournalStore(journal)
    with pytest.raises(UnavailableError, match="which a journal is not used with"):
        store.commit([Put("a.md", "# B", note="second")])
    assert "which a journal is not used with" in store.scan().unreadable[""]
    assert sorted(remote.rglob("*")) == before
    assert not (journal.parent / "reached").exists()
    # What the hint says mends it.
    words = caught.value.hint.partition("`")[2].partition("`")[0]
    subprocess.run(words, shell=True, check=True, env=ENVIRON)
    assert sync(journal).sent == 1


def test_a_configuration_that_changes_while_a_store_is_open_is_looked_at_again(
    journal: Path,
) -> None:
    store = JournalStore(journal)
    store.commit([Put("a.md", "# B", note="second")])
    plain(journal, "config", "core.fsmonitor", "x")
    with pytest.raises(UnavailableError, match="fsmonitor"):
        store.commit([Put("a.md", "# C", note="third")])


def test_what_people_set_in_their_journals_is_no_obstacle(journal: Path) -> None:
    for name in HARMLESS:
        plain(journal, "config", name, "false")
    plain(journal, "config", "core.repositoryFormatVersion", "1")
    plain(journal, "config", "extensions.objectFormat", "sha1")
    plain(journal, "branch", "--set-upstream-to=origin/main", check=False)
    assert sync(journal).sent == 1


@pytest.mark.parametrize("folder", ["remotes", "branches"])
def test_files_that_give_a_remote_another_address_are_refused(journal: Path, folder: str) -> None:
    place = journal / ".git" / folder
    place.mkdir(exist_ok=True)
    (place / "host:x").write_text("URL: elsewhere\n")
    with pytest.raises(UnavailableError, match="another address"):
        sync(journal)


# --- remotes on this machine ---


REMOTE_HOOKS = (
    "pre-receive", "update", "post-receive", "post-update", "reference-transaction", "proc-receive",
)  # fmt: skip
REMOTE_PROGRAMS = (
    "core.alternateRefsCommand", "core.fsmonitor", "uploadpack.packObjectsHook",
    "gc.recentObjectsHook",
)  # fmt: skip


def test_a_remote_on_this_machine_runs_nothing_of_its_own(journal: Path, remote: Path) -> None:
    fired, trap = journal.parent / "fired", journal.parent / "trap"
    trap.write_text(f'#!/bin/sh\ntouch "{fired}"\n')
    trap.chmod(0o755)
    (remote / "evil").mkdir()
    for hook in REMOTE_HOOKS:
        for folder in (remote / "hooks", remote / "evil"):
            folder.mkdir(exist_ok=True)
            shutil.copy(trap, folder / hook)
    for name in REMOTE_PROGRAMS:
        plain(remote, "config", name, str(trap))
    for hooks in ("", str(remote / "evil")):
        if hooks:
            plain(remote, "config", "core.hooksPath", hooks)
        for address in (str(remote), f"file://{remote}", "../remote.git"):
            plain(journal, "config", "remote.origin.url", address)
            JournalStore(journal).commit([Put("a.md", "# A", note=f"by {address}")])
            assert sync(journal).sent >= 1
            assert not fired.exists(), address
    JournalStore(journal).commit([Put("a.md", "# A", note="last")])
    plain(journal, "push", "origin", "main")
    assert fired.exists(), "the trap works for plain git"


def test_a_remote_on_this_machine_is_a_whole_bare_repository(
    journal: Path, tmp_path: Path, remote: Path
) -> None:
    victim = tmp_path / "victim"
    JournalStore(victim).commit([Put("secret.md", "# Secret", note="canary")])
    plain(victim, "checkout", "-q", "-b", "other")
    files = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}
    common, linked, borrowing = (
        tmp_path / f"{name}.git" for name in ("common", "linked", "borrowing")
    )
    for place in (common, linked, borrowing):
        shutil.copytree(remote, place)
    (common / "commondir").write_text(f"{victim}/.git\n")
    shutil.rmtree(linked / "refs")
    (linked / "refs").symlink_to(victim / ".git" / "refs")
    (borrowing / "objects" / "info" / "alternates").write_text(f"{victim}/.git/objects\n")
    (tmp_path / "file.git").write_text(f"gitdir: {victim}/.git\n")
    shutil.copytree(remote, tmp_path / "inner.git")
    (tmp_path / "inner.git" / ".git").write_text(f"gitdir: {victim}/.git\n")
    names = ["victim", "victim/.git", "none"]
    names += [f"{name}.git" for name in ("common", "linked", "borrowing", "file", "inner")]
    for address in (*names, *(f"file://{tmp_path / name}" for name in names)):
        where = address if "://" in address else f"../{address}"
        plain(journal, "config", "remote.origin.url", where)
        with pytest.raises(UnavailableError):
            sync(journal)
    assert "canary" not in plain(journal, "log", "--all", "--format=%B")
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == files
    plain(journal, "config", "remote.origin.url", "word")
    with pytest.raises(ValidationError, match="not a path"):
        sync(journal)


def test_addresses_over_a_network_are_not_taken_for_folders(journal: Path) -> None:
    for address in ("ssh://host.invalid/x", "http://127.0.0.1:9/x.git", "git@host.invalid:a/b"):
        plain(journal, "config", "remote.origin.url", address)
        with pytest.raises(RagdocsError, match="git failed"):
            sync(journal)


# --- files that git writes about itself ---


def test_traces_are_written_neither_for_a_setting_nor_for_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain(tmp_path, "init", "-q", "project")
    root, written = tmp_path / "project", tmp_path / "written"
    for name in ("normalTarget", "perfTarget", "eventTarget"):
        plain(root, "config", f"trace2.{name}", str(written))
    for name in ("", "2", "2_EVENT", "2_PERF", "_SETUP", "_CURL"):
        monkeypatch.setenv(f"GIT_TRACE{name}", str(written))
    assert git.context(root) is not None
    assert git.remote(root) == ""
    assert not written.exists()
    plain(root, "status", GIT_TRACE2=str(written))
    assert written.exists(), "the trap works for plain git"
