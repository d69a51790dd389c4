"""Meeting a remote: fetch, merge by section with entries counted anew, push.

Or change nothing and say why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ragdocs.errors import ConflictError, NotFoundError, UnavailableError, ValidationError
from ragdocs.stores.git.checkout import Move
from ragdocs.stores.git.commits import Ledger
from ragdocs.stores.git.draft import Draft
from ragdocs.stores.git.journal import JournalStore
from ragdocs.system import git, repository
from ragdocs.system.locks import lock
from ragdocs.text.formats.journal import is_section, overview, with_count

# Somebody else may push between our fetch and our push.
ATTEMPTS = 4
# What a remote that a person named may be spoken to by; never a program of its own choosing.
PROTOCOLS = "file:http:https:ssh"
SECONDS = 300.0
# A remote on this machine is served by a git that we start, with the remote's own hooks and
# settings: the remote may have come along with the journal, so nothing there is run.
SERVED_SAFELY = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=: -c core.fsmonitor=false -c receive.autogc=false "
    "-c receive.denyCurrentBranch=refuse"
)

# Puts two changes of a base together; returns the text and in how many places they overlap.
Merging = Callable[[str, str, str], tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an exchange did."""

    remote: str
    branch: str
    received: int
    sent: int
    merged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One journal that meets its remote; `merging` is how two versions of a section become one."""

    store: JournalStore
    merging: Merging

    def run(self, remote: str, resolved: Mapping[str, str]) -> Outcome:
        """Bring both sides to the same commit.

        `resolved` says what sections are to say that both have changed.
        """
        name, address = self._remote(remote)
        self.store.checkout.refuse_link()
        received, merged = 0, set[str]()
        for _ in range(ATTEMPTS):
            self._git(
                ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--prune"], address, name
            )
            with lock(self.store.root, timeout=15.0):
                self.store.refuse_unfinished()
                ledger = self.store.refresh()
                branch = ledger.branch or self.store.branch()
                theirs = self._tip(f"refs/remotes/{name}/{branch.removeprefix('refs/heads/')}")
                received += self._between(ledger.head, theirs)
                merged |= self._take(ledger, theirs, resolved)
            mine = self.store.refresh().head
            sent = self._between(theirs, mine)
            if not sent or self._push(address, branch):
                return Outcome(
                    name, branch.removeprefix("refs/heads/"), received, sent, tuple(sorted(merged))
                )
        raise UnavailableError(f"others push to {name} all the time", "Try again")

    def _remote(self, wanted: str) -> tuple[str, str]:
        """Return the name and address of a remote of the journal."""
        if not (self.store.root / ".git").is_dir():
            hint = f"`git clone ADDRESS {self.store.root}` brings one from elsewhere"
            raise NotFoundError("there is no journal yet", hint)
        options = ["config", "--local", "--null", "--get-regexp", r"^remote\..*\.url$"]
        out = git.run(self.store.root, options, terms=replace(self.store.terms, codes=(0, 1)))
        pairs = [item.partition("\n") for item in out.decode(errors="replace").split("\0") if item]
        known = {
            name.removeprefix("remote.").removesuffix(".url"): address
            for name, _, address in reversed(pairs)
        }
        name = wanted or ("origin" if "origin" in known else next(iter(known), ""))
        if name not in known:
            hint = f"In {self.store.root}, run `git remote add origin ADDRESS`"
            raise NotFoundError(
                f"the journal has no remote {name!r}" if name else "the journal has no remote", hint
            )
        if "::" in known[name] or urlsplit(known[name]).scheme not in {"", *PROTOCOLS.split(":")}:
            raise ValidationError(
                f"the address of {name} is not one that is safe to use", f"Use one of {PROTOCOLS}"
            )
        if "/" not in known[name] and ":" not in known[name]:
            # git would take a single word for the name of another remote.
            raise ValidationError(
                f"the address of {name} is not a path", "Write it with a slash, such as ./FOLDER"
            )
        folder = local_folder(known[name], self.store.root)
        if folder:
            repository.check_bare(folder)
        return name, known[name]

    def _take(self, ledger: Ledger, theirs: str, resolved: Mapping[str, str]) -> set[str]:
        """Bring the branch to where it holds both sides.

        Return the sections that both had changed.
        """
        mine = ledger.head
        if not theirs or not self._between(mine, theirs):
            return set()
        base = self._base(mine, theirs) if mine else ""
        if base == mine:
            self.store.checkout.begin()
            self._git_here(
                [
                    "update-ref",
                    ledger.branch or self.store.branch(),
                    theirs,
                    mine or "0" * len(theirs),
                ]
            )
            self._bring(mine, theirs)
            return set()
        files, both = self._merge(base, mine, theirs, resolved)
        draft = Draft(
            tuple(files.items()),
            f"Merge {len(both)} sections that both sides had written\n",
            theirs,
        )
        name = self.store.record(draft, ledger)
        if name is None:
            raise UnavailableError("the journal was written to meanwhile", "Try again")
        self._bring(mine, name)
        return both

    def _merge(
        self, base: str, mine: str, theirs: str, resolved: Mapping[str, str]
    ) -> tuple[dict[str, bytes | None], set[str]]:
        """Return the files that must change on our side.

        And the sections that both sides had changed.
        """
        ours, others = self._changed(base, mine), self._changed(base, theirs)
        files: dict[str, bytes | None] = {}
        for path in others.keys() - ours.keys():
            found = self.store.blobs(theirs, [path])[0]
            files[path] = found[1] if found else None
        both = {path for path in others.keys() & ours.keys() if is_section(path)}
        conflicts = []
        for path in sorted(both):
            texts = [self._says(commit, path) for commit in (base, theirs, mine)]
            text, overlaps = (resolved[path], 0) if path in resolved else self.merging(*texts)
            if overlaps:
                conflicts.append((path, texts, text, overlaps))
            files[path] = with_count(text, self._count(path, mine, theirs))
        if conflicts:
            raise _conflict(conflicts)
        return files, both

    def _changed(self, before: str, after: str) -> dict[str, str]:
        if not before:
            out = self._git_here(["ls-tree", "-r", "-z", "--name-only", "--full-tree"], after)
        else:
            out = self._git_here(
                ["diff-tree", "-r", "-z", "--name-only", "--no-renames"], before, after
            )
        return dict.fromkeys(out.rstrip("\0").split("\0") if out else (), "")

    def _says(self, commit: str, path: str) -> str:
        found = self.store.blobs(commit, [path])[0] if commit else None
        return overview(found[1]) + "\n" if found else ""

    def _count(self, path: str, mine: str, theirs: str) -> int:
        options = ["rev-list", "--count", "--no-merges"]
        terms = self.store.terms
        return int(git.run(self.store.root, options, [mine, theirs], paths=[path], terms=terms))

    def _bring(self, before: str, after: str) -> None:
        paths = [path for path in self._changed(before, after) if is_section(path)]
        old = self.store.blobs(before, paths) if before and paths else [None] * len(paths)
        new = self.store.blobs(after, paths) if paths else []
        moves = [
            Move(path, was[0] if was else "", now[0] if now else "", now[1] if now else b"")
            for path, was, now in zip(paths, old, new, strict=True)
        ]
        self.store.checkout.move(after, moves)

    def _between(self, before: str, after: str) -> int:
        """Count the commits that one side has and the other has not."""
        if not after:
            return 0
        options = ["rev-list", "--count", *([f"^{before}"] if before else [])]
        return int(self._git_here(options, after))

    def _base(self, mine: str, theirs: str) -> str:
        terms = replace(self.store.terms, codes=(0, 1))
        return (
            git.run(self.store.root, ["merge-base"], [mine, theirs], terms=terms).decode().strip()
        )

    def _tip(self, ref: str) -> str:
        terms = replace(self.store.terms, codes=(0, 1))
        return (
            git.run(self.store.root, ["rev-parse", "--verify", "--quiet"], [ref], terms=terms)
            .decode()
            .strip()
        )

    def _git_here(self, options: list[str], *operands: str) -> str:
        return git.run(self.store.root, options, operands, terms=self.store.terms).decode(
            errors="replace"
        )

    def _git(self, options: list[str], address: str, name: str) -> None:
        terms = replace(self.store.terms, protocols=PROTOCOLS, seconds=SECONDS)
        if local_folder(address, self.store.root):
            options = [*options, f"--upload-pack={SERVED_SAFELY} upload-pack"]
        git.run(
            self.store.root, options, [address, f"+refs/heads/*:refs/remotes/{name}/*"], terms=terms
        )

    def _push(self, address: str, branch: str) -> bool:
        """Push the branch; tell whether the other side took it, or had moved meanwhile."""
        terms = replace(self.store.terms, protocols=PROTOCOLS, seconds=SECONDS, codes=(0, 1))
        options = ["push", "--porcelain"]
        if local_folder(address, self.store.root):
            options.append(f"--receive-pack={SERVED_SAFELY} receive-pack")
        operands = [address, f"{branch}:{branch}"]
        out = git.run(self.store.root, options, operands, terms=terms).decode(errors="replace")
        if "\n!" in f"\n{out}" and "[rejected]" not in out and "stale" not in out:
            row = next(line for line in out.split("\n") if line.startswith("!"))
            raise UnavailableError(f"the remote did not take it: {row[1:].strip()[:200]}")
        return "\n!" not in f"\n{out}"


def local_folder(address: str, root: Path) -> Path | None:
    """Return the folder of a remote on this machine.

    Or nothing for one that is reached over a network.
    """
    scheme, mark, rest = address.partition("://")
    if mark and scheme == "file":
        # As git reads it: what is no path from the top is a share of another machine.
        return Path(unquote(rest if rest.startswith("/") else f"//{rest}"))
    # As git tells them apart: a colon before the first slash ends the name of a host, or of a drive
    # on Windows.
    before_slash, _, _ = address.partition("/")
    is_drive = sys.platform == "win32" and address[1:2] == ":"
    return None if ":" in before_slash and not is_drive else root / address


def _conflict(conflicts: list[tuple[str, list[str], str, int]]) -> ConflictError:
    path, (base, theirs, yours), merged, overlaps = conflicts[0]
    names = ", ".join(one[0].removesuffix(".md") for one in conflicts)
    section = path.removesuffix(".md")
    hint = f"Nothing was changed. Write what {section} is to say into a file, then `journal sync --resolve {section}=FILE`"
    error = ConflictError(f"both sides have changed {names}", hint, theirs=theirs, yours=yours)
    error.base, error.merged, error.overlaps = base, merged, overlaps
    return error
