"""Exchange with a remote: fetch, merge section by section, push, or change nothing and say why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ragdocs.errors import ConflictError, NotFoundError, UnavailableError, ValidationError
from ragdocs.stores.git.checkout import Move
from ragdocs.stores.git.draft import Draft
from ragdocs.stores.git.journal import LOCK_SECONDS, JournalStore
from ragdocs.stores.git.ledger import Ledger
from ragdocs.stores.git.plumbing import Blob
from ragdocs.system import git, platform, repository
from ragdocs.system.locks import lock
from ragdocs.text.formats.journal import is_section, overview, with_count
from ragdocs.text.merge import Merge, merge, propose
from ragdocs.types import Exchanged

# Somebody else may push between our fetch and our push.
ATTEMPTS = 4
# How git may speak to a remote that a person named; never by a program of the remote's choosing.
PROTOCOLS = "file:http:https:ssh"
SECONDS = 300.0
# We start the git that serves a remote on this machine, and it would follow the remote's own hooks
# and settings: the remote may have come along with the journal, so nothing there is run.
SERVED_SAFELY = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=: -c core.fsmonitor=false "
    "-c receive.autogc=false -c receive.denyCurrentBranch=refuse"
)
FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--prune")
HEADS = "refs/heads/"


class _Remote(NamedTuple):
    name: str
    address: str
    # Whether it is a folder on this machine, which a git that we start serves.
    is_local: bool


class _MergedSection(NamedTuple):
    """A section that both sides changed, and the two changes put together."""

    path: str
    base: str
    theirs: str
    ours: str
    merged: Merge


@dataclass(frozen=True, slots=True)
class Exchange:
    """One journal and its remotes."""

    store: JournalStore

    def run(self, remote: str, resolved: Mapping[str, str]) -> Exchanged:
        """Bring both sides to the same commit.

        `resolved` maps sections that both sides have changed to the text they are to have.
        """
        target = self._remote(remote)
        self.store.checkout.refuse_link()
        received = 0
        merged: set[str] = set()
        for _ in range(ATTEMPTS):
            self._fetch(target)
            with lock(self.store.root, timeout=LOCK_SECONDS):
                self.store.checkout.refuse_unfinished()
                ledger = self.store.refresh()
                branch = ledger.branch or self.store.branch()
                short_branch = branch.removeprefix(HEADS)
                theirs = self._tip(f"refs/remotes/{target.name}/{short_branch}")
                received += self._count_between(ledger.head, theirs)
                merged |= self._take(ledger, theirs, resolved)
            sent = self._count_between(theirs, self.store.refresh().head)
            if not sent or self._push(target, branch):
                return Exchanged(target.name, short_branch, received, sent, tuple(sorted(merged)))
        raise UnavailableError(f"others pushed to {target.name} at every try", "Try again")

    # --- remotes ---

    def _remote(self, wanted: str) -> _Remote:
        """Return a remote of the journal, by its name or the first choice, if it is safe to use."""
        if not (self.store.root / ".git").is_dir():
            hint = f"`git clone ADDRESS {self.store.root}` brings one from elsewhere"
            raise NotFoundError("there is no journal yet", hint)
        addresses = self._addresses()
        name = wanted
        if not name:
            name = "origin" if "origin" in addresses else next(iter(addresses), "")
        if name not in addresses:
            message = "the journal has no remote"
            if name:
                message = f"{message} {name!r}"
            hint = f"In {self.store.root}, run `git remote add origin ADDRESS`"
            raise NotFoundError(message, hint)
        address = addresses[name]
        _check_address(name, address)
        folder = local_folder(address, self.store.root)
        if folder:
            repository.check_bare(folder)
        return _Remote(name, address, folder is not None)

    def _addresses(self) -> dict[str, str]:
        """Map the names of remotes to their addresses, the last one named first."""
        options = ["config", "--local", "--null", "--get-regexp", r"^remote\..*\.url$"]
        addresses = {}
        for item in reversed(self._query(options).split("\0")):
            if item:
                key, _, address = item.partition("\n")
                addresses[key.removeprefix("remote.").removesuffix(".url")] = address
        return addresses

    def _fetch(self, remote: _Remote) -> None:
        options = list(FETCH)
        if remote.is_local:
            options.append(f"--upload-pack={SERVED_SAFELY} upload-pack")
        operands = [remote.address, f"+refs/heads/*:refs/remotes/{remote.name}/*"]
        terms = replace(self.store.terms, protocols=PROTOCOLS, seconds=SECONDS)
        git.run(self.store.root, options, operands, terms=terms)

    def _push(self, remote: _Remote, branch: str) -> bool:
        """Push the branch; return False if the remote's branch had moved meanwhile."""
        options = ["push", "--porcelain"]
        if remote.is_local:
            options.append(f"--receive-pack={SERVED_SAFELY} receive-pack")
        operands = [remote.address, f"{branch}:{branch}"]
        terms = replace(self.store.terms, protocols=PROTOCOLS, seconds=SECONDS, codes=(0, 1))
        out = git.run(self.store.root, options, operands, terms=terms).decode(errors="replace")
        refusals = [line for line in out.split("\n") if line.startswith("!")]
        if refusals and "[rejected]" not in out and "stale" not in out:
            reason = refusals[0][1:].strip()[:200]
            raise UnavailableError(f"the remote did not take it: {reason}")
        return not refusals

    # --- merging ---

    def _take(self, ledger: Ledger, theirs: str, resolved: Mapping[str, str]) -> set[str]:
        """Bring the branch to a commit that has both sides.

        Return the sections that both had changed.
        """
        ours = ledger.head
        if not self._count_between(ours, theirs):
            return set()
        base = ""
        if ours:
            base = self._merge_base(ours, theirs)
        if base == ours:
            self._forward(ledger, theirs)
            return set()
        contents, both = self._merge(base, ours, theirs, resolved)
        message = f"Merge {len(both)} sections that both sides had written\n"
        draft = Draft(tuple(contents.items()), message, theirs)
        commit = self.store.record(draft, ledger)
        if commit is None:
            raise UnavailableError("the journal was written to meanwhile", "Try again")
        self._bring(ours, commit)
        return both

    def _forward(self, ledger: Ledger, theirs: str) -> None:
        """Move the branch to a commit of theirs that has all of ours."""
        self.store.checkout.begin()
        branch = ledger.branch or self.store.branch()
        before = ledger.head or "0" * len(theirs)
        self._git(["update-ref", branch, theirs, before])
        self._bring(ledger.head, theirs)

    def _merge(
        self, base: str, ours: str, theirs: str, resolved: Mapping[str, str]
    ) -> tuple[dict[str, bytes | None], set[str]]:
        """Return the files that must change on our side, and the sections changed on both sides."""
        our_paths = set(self._changed(base, ours))
        their_paths = set(self._changed(base, theirs))
        contents: dict[str, bytes | None] = {}
        for path in their_paths - our_paths:
            blob = self.store.blobs.of(theirs, path)
            contents[path] = blob.data if blob else None
        both = {path for path in their_paths & our_paths if is_section(path)}
        conflicts = []
        for path in sorted(both):
            text = resolved.get(path)
            if text is None:
                section = self._merge_section(path, base, ours, theirs)
                text = section.merged.text
                if section.merged.overlaps:
                    conflicts.append(section)
            contents[path] = with_count(text, self._entry_count(path, ours, theirs))
        if conflicts:
            raise _conflict_error(conflicts)
        return contents, both

    def _merge_section(self, path: str, base: str, ours: str, theirs: str) -> _MergedSection:
        base_text = self._overview(base, path)
        our_text = self._overview(ours, path)
        their_text = self._overview(theirs, path)
        merged = merge(base_text, their_text, our_text)
        return _MergedSection(path, base_text, their_text, our_text, merged)

    def _overview(self, commit: str, path: str) -> str:
        blob = self.store.blobs.of(commit, path)
        if blob is None:
            return ""
        return overview(blob.data) + "\n"

    def _bring(self, before: str, after: str) -> None:
        """Bring the files of sections along from one commit to the next."""
        paths = [path for path in self._changed(before, after) if is_section(path)]
        old = self.store.blobs.all_of(before, paths)
        new = self.store.blobs.all_of(after, paths)
        nothing = Blob("", b"")
        moves = []
        for path, old_blob, new_blob in zip(paths, old, new, strict=True):
            before_name = (old_blob or nothing).name
            moves.append(Move(path, before_name, *(new_blob or nothing)))
        self.store.checkout.move(after, moves)

    # --- commits ---

    def _changed(self, before: str, after: str) -> list[str]:
        """List the paths that differ between two commits, or all of one."""
        if before:
            options = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"]
            out = self._git(options, before, after)
        else:
            out = self._git(["ls-tree", "-r", "-z", "--name-only", "--full-tree"], after)
        return [path for path in out.split("\0") if path]

    def _entry_count(self, path: str, ours: str, theirs: str) -> int:
        """Count the entries of a section on both sides together."""
        options = ["rev-list", "--count", "--no-merges"]
        return int(self._git(options, ours, theirs, paths=[path]))

    def _count_between(self, before: str, after: str) -> int:
        """Count the commits that one side has and the other has not."""
        if not after:
            return 0
        options = ["rev-list", "--count"]
        if before:
            options.append(f"^{before}")
        return int(self._git(options, after))

    def _merge_base(self, ours: str, theirs: str) -> str:
        return self._query(["merge-base"], ours, theirs)

    def _tip(self, ref: str) -> str:
        return self._query(["rev-parse", "--verify", "--quiet"], ref)

    def _git(self, options: Sequence[str], *operands: str, paths: Sequence[str] = ()) -> str:
        terms = self.store.terms
        out = git.run(self.store.root, options, operands, paths=paths, terms=terms)
        return out.decode(errors="replace")

    def _query(self, options: Sequence[str], *operands: str) -> str:
        """Run a git command that exits with 1 where there is nothing, and return "" then."""
        terms = replace(self.store.terms, codes=(0, 1))
        out = git.run(self.store.root, options, operands, terms=terms)
        return out.decode(errors="replace").strip()


def local_folder(address: str, root: Path) -> Path | None:
    """Return the folder of a remote on this machine, or None for one across a network."""
    scheme, mark, rest = address.partition("://")
    if mark and scheme == "file":
        # As git reads it: anything but a path from the top is a share of another machine.
        return Path(unquote(rest if rest.startswith("/") else f"//{rest}"))
    # As git tells them apart: a colon before the first slash ends the name of a host, or of a
    # drive on Windows.
    before_slash, _, _ = address.partition("/")
    is_drive = platform.is_windows() and address[1:2] == ":"
    if ":" in before_slash and not is_drive:
        return None
    return root / address


def _check_address(name: str, address: str) -> None:
    """Refuse an address by which git would run a program, or read another remote."""
    is_safe = urlsplit(address).scheme in {"", *PROTOCOLS.split(":")}
    if "::" in address or not is_safe:
        raise ValidationError(
            f"the address of {name} is not one that is safe to use", f"Use one of {PROTOCOLS}"
        )
    if "/" not in address and ":" not in address:
        # git would take a single word for the name of another remote.
        raise ValidationError(
            f"the address of {name} is not a path", "Write it with a slash, such as ./FOLDER"
        )


def _conflict_error(conflicts: Sequence[_MergedSection]) -> ConflictError:
    first = conflicts[0]
    names = ", ".join(conflict.path.removesuffix(".md") for conflict in conflicts)
    section = first.path.removesuffix(".md")
    hint = (
        f"Nothing was changed. Write what {section} is to say into a file, "
        f"then <exchange with a remote> with --resolve {section}=FILE"
    )
    error = ConflictError(
        f"both sides have changed {names}", hint, theirs=first.theirs, yours=first.ours
    )
    propose(error, first.base)
    return error
