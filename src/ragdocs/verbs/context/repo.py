"""What a repository knows about itself: conventions, decisions, notes and summaries of runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ParseError,
    StorageError,
    ValidationError,
)
from ragdocs.protocols import Summaries
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import relative_name
from ragdocs.text import frontmatter, links, times
from ragdocs.text.checks import check_content, check_tags
from ragdocs.types import AppendedSummary, Discard, Expect, Filter, Put, StepSummary, Written
from ragdocs.verbs import references
from ragdocs.verbs.context import items as repo_items
from ragdocs.verbs.context.items import FOLDERS, ID, LONGEST_TITLE, SOURCES, Item, bare
from ragdocs.verbs.context.scope import FOLDER, PER_BRANCH, Scope
from ragdocs.verbs.memories import record

MOST_PATHS = 100
LONGEST_PATH = 500
# Branches that are named where the one that was asked for has nothing.
MOST_BRANCHES = 20
# Two agents that change one item at once both succeed; this many lost races in a row mean that
# something else is wrong.
TRIES = 50
# Of a title in an id, so that both a path and a person get along with it.
_SLUG = 32


@dataclass(frozen=True, slots=True)
class _NewItem:
    """An item to write: its fields, its text, and how the caller names that text."""

    kind: str
    item_id: str
    branch_scope: str | None
    fields: dict[str, object]
    text: str
    text_name: str


class _Target(NamedTuple):
    """The item that a write changes, if there is one, and the id and path of what it writes."""

    before: Item | None
    item_id: str
    path: str


@dataclass(frozen=True, slots=True)
class SavedItem:
    """An item as it stands after a write, and what became of the write."""

    item: Item
    created: bool
    changed: bool
    location: str
    # Nothing where there was nothing to change.
    written: Written | None
    # Whether it was archived or had expired before.
    revived: bool


@dataclass(frozen=True, slots=True)
class RepoKnowledge:
    """The knowledge of one repository or branch, by kind, newest first."""

    scope: Scope
    items: Mapping[str, Sequence[Item]]
    summaries: Sequence[StepSummary]
    # How many archived or expired items are left out.
    unlisted: int


@dataclass(frozen=True, slots=True)
class DeletedItem:
    """An item that was asked to be deleted; without `moved_to`, there was none."""

    kind: str
    id: str
    moved_to: str


@dataclass(frozen=True, slots=True)
class CopiedBranch:
    """The paths that were copied from one branch to another, and those that it had already."""

    source: str
    target: str
    copied: tuple[str, ...]
    left: tuple[str, ...]
    summaries: int


@dataclass(frozen=True, slots=True)
class Repository:
    """What can be asked of a repository's knowledge.

    `scope` finds the store by a policy and perhaps a branch.
    """

    root: Path
    corpus: Corpus
    scope: Callable[[str | None, str | None], Scope]
    summaries: Callable[[Scope], Summaries]
    clock: Callable[[], datetime]

    def upsert_convention(
        self,
        title: str,
        content: str,
        tags: Sequence[str] | None = None,
        item_id: str = "",
        branch_scope: str | None = None,
    ) -> SavedItem:
        """Write a convention, or change the one with this id or title."""
        fields: dict[str, object] = {"title": _title("title", title)}
        if tags is not None:
            fields["tags"] = check_tags(tags)
        new = _NewItem("convention", item_id, branch_scope, fields, content, "content")
        return self._upsert(new)

    def upsert_decision(
        self,
        summary: str,
        rationale: str,
        impacted_paths: Sequence[str] | None = None,
        item_id: str = "",
        branch_scope: str | None = None,
    ) -> SavedItem:
        """Write a decision, or change the one with this id or summary."""
        fields: dict[str, object] = {"title": _title("summary", summary)}
        if impacted_paths is not None:
            fields["impacted_paths"] = self._paths(impacted_paths)
        new = _NewItem("decision", item_id, branch_scope, fields, rationale, "rationale")
        return self._upsert(new)

    def upsert_note(
        self,
        content: str,
        source: str = "manual",
        item_id: str = "",
        branch_scope: str | None = None,
    ) -> SavedItem:
        """Write a note, or change the one with this id; the same text again is the same note."""
        if source not in SOURCES:
            raise ValidationError(f"source is {source[:40]!r}", f"Use one of {', '.join(SOURCES)}")
        new = _NewItem("note", item_id, branch_scope, {"source": source}, content, "content")
        return self._upsert(new)

    def get(
        self,
        kind: str = "",
        item_id: str = "",
        path: str = "",
        branch_scope: str | None = None,
    ) -> RepoKnowledge:
        """Return everything, one kind, one item, or the decisions about a path."""
        _check_kind(kind, *FOLDERS, "summary", "")
        if path and kind not in {"decision", ""}:
            raise ValidationError("only decisions have paths", "Leave out kind or path")
        wanted_path = _project_path(path) if path else ""
        scope = self.scope(branch_scope, None)
        items: dict[str, list[Item]] = {}
        for name in FOLDERS:
            is_wanted = not path or name == "decision"
            if is_wanted and kind in {name, ""}:
                items[name] = self.items(scope, name)
        unlisted = 0
        if item_id:
            items = self._only(scope, items, item_id, kind)
        else:
            total = _count(items)
            items = {name: self.current(members) for name, members in items.items()}
            unlisted = total - _count(items)
        if path:
            items["decision"] = [item for item in items["decision"] if item.concerns(wanted_path)]
        summaries: Sequence[StepSummary] = ()
        if not item_id and not path and kind in {"summary", ""}:
            summaries = self.summaries(scope).newest()
        return RepoKnowledge(scope, items, summaries, unlisted)

    def delete(self, kind: str, item_id: str, branch_scope: str | None = None) -> DeletedItem:
        """Move an item to the trash, if there is one."""
        _check_kind(kind, *FOLDERS)
        scope = self.scope(branch_scope, None)
        item_id = self._item_id(scope, item_id, [kind])
        target = self._target_by_id(scope, kind, item_id)
        moved = ""
        with suppress(NotFoundError):
            moved = self.corpus.commit([Discard(target.path)], "delete")[0].moved_to
        # The id may be anything, also a secret, and clients keep answers.
        name = self.corpus.redactor.redact(item_id).text
        return DeletedItem(kind, name, moved)

    def append_summary(
        self,
        run_id: str,
        step_id: str,
        summary: str,
        tags: Sequence[str] = (),
        branch_scope: str | None = None,
    ) -> AppendedSummary:
        """Write down what a step came to."""
        check_content(summary, "summary")
        check_content(run_id, "run_id")
        check_content(step_id, "step_id")
        store = self.summaries(self.scope(branch_scope, None))
        return store.append(run_id, step_id, summary, check_tags(tags), self.clock())

    def copy(self, source: str, target: str) -> CopiedBranch:
        """Copy what one branch knows to another; what the other has already stays as it is."""
        origin = self.scope(PER_BRANCH, source)
        destination = self.scope(PER_BRANCH, target)
        if origin.folder == destination.folder:
            raise ValidationError("both are the same branch", "Name two branches")
        puts: list[Put] = []
        left: list[str] = []
        for kind in FOLDERS:
            copies, present = self._copies(origin, destination, kind)
            puts += copies
            left += present
        has_items = bool(puts or left)
        if not has_items and not self.summaries(origin).newest():
            raise self._nothing_to_copy(source)
        copied: list[str] = []
        # All of them or none: half a branch would look like a whole one.
        if puts:
            copied = [written.path for written in self.corpus.commit(puts, "create")]
        return CopiedBranch(
            source=self.corpus.redactor.redact(source).text,
            target=self.corpus.redactor.redact(target).text,
            copied=tuple(copied),
            left=tuple(left),
            summaries=self.summaries(destination).take(self.summaries(origin)),
        )

    def items(self, scope: Scope, kind: str) -> list[Item]:
        """Read all items of a kind, the last changed first.

        One that is malformed is an error and stays untouched.
        """
        folder = f"{scope.folder}/{FOLDERS[kind]}"
        scan = self.corpus.store.scan([folder])
        if scan.unreadable:
            path, reason = next(iter(scan.unreadable.items()))
            raise StorageError(f"{path} cannot be read: {reason}", "Check its permissions")
        items = [self._item(kind, path) for path in sorted(scan.stamps)]
        distinct = repo_items.with_own_ids(items)
        return sorted(distinct, key=_newest_first)

    def current(self, items: Sequence[Item]) -> list[Item]:
        """Leave out items that are archived or have expired."""
        hidden = {status.casefold() for status in self.corpus.lane.hidden}
        now = self.clock()
        current = []
        for item in items:
            is_hidden = item.document.status.casefold() in hidden
            if not is_hidden and not item.expired(now):
                current.append(item)
        return current

    def _only(
        self, scope: Scope, items: Mapping[str, Sequence[Item]], item_id: str, kind: str
    ) -> dict[str, list[Item]]:
        """Return the items with an id, which may be given by the path of its file."""
        wanted = self._item_id(scope, item_id, list(items))
        matching = {name: _with_id(members, wanted) for name, members in items.items()}
        if not _count(matching):
            raise NotFoundError(
                f"there is no {kind or 'item'} {item_id[:80]!r}",
                "<read the repository's memory> lists the ids",
            )
        return matching

    def _copies(self, origin: Scope, destination: Scope, kind: str) -> tuple[list[Put], list[str]]:
        """Return the changes that copy items of a kind, and the paths of those that are there."""
        existing = {item.id: item.path for item in self.items(destination, kind)}
        taken = set(existing.values())
        puts = []
        present = []
        for item in self.items(origin, kind):
            if item.id in existing:
                present.append(existing[item.id])
                continue
            path = _free_path(destination, kind, item.id, taken)
            taken.add(path)
            text = self.corpus.store.read(item.path).text
            puts.append(Put(path, text, Expect.ABSENT))
        return puts, present

    def _upsert(self, new: _NewItem) -> SavedItem:
        """Write an item, or change the one that is meant; others may do the same meanwhile."""
        check_content(new.text, new.text_name)
        text = bare(new.text)
        scope = self.scope(new.branch_scope, None)
        fields = dict(new.fields)
        if scope.branch:
            fields["branch"] = scope.branch
        for _ in range(TRIES):
            target = self._target(scope, new, text)
            before = target.before
            put = self._put(target, new.kind, {**fields, "id": target.item_id}, text)
            try:
                written = self._commit(put, before)
            except (ConflictError, AlreadyExistsError, NotFoundError):
                # Somebody was faster: what is there now is what this changes.
                continue
            item = self._existing(new.kind, target.path)
            if item is None:
                continue
            return SavedItem(
                item=item,
                created=before is None,
                changed=put is not None,
                location=self.corpus.store.locate(target.path),
                written=written,
                revived=before is not None and not self.current([before]),
            )
        message = f"{target.path} was changed by others {TRIES} times in a row"
        raise ConflictError(message, "Try again")

    def _commit(self, put: Put | None, before: Item | None) -> Written | None:
        """Make a change, if there is one."""
        if put is None:
            return None
        verb: Literal["update", "create"] = "update" if before else "create"
        return self.corpus.commit([put], verb)[0]

    def _put(
        self, target: _Target, kind: str, fields: Mapping[str, object], text: str
    ) -> Put | None:
        """Return the change to make, or nothing where the item says all this already."""
        before = target.before
        now = self.clock()
        updated_at = times.stamp(now)
        if before is None:
            header = {**record.fields(kind, (), now), **fields, "updated_at": updated_at}
            new_text = frontmatter.render(header, f"{text}\n")
            return Put(target.path, new_text, Expect.ABSENT)
        changes = dict(fields)
        if not self.current([before]):
            # Whoever writes an item down again wants it to count.
            changes |= {"status": record.ACTIVE, "expires_at": None}
        elif self._says(before, kind, fields, text):
            return None
        changes["updated_at"] = updated_at
        defaults = record.fields(kind, (), before.created)
        missing = {name: value for name, value in defaults.items() if name not in before.fields}
        # The lines of other fields stay as somebody wrote them.
        block = frontmatter.set_fields(before.text, {**missing, **changes})
        whole = f"{block}\n{text}\n".replace("\r\n", "\n")
        end = frontmatter.newline(before.text)
        return Put(target.path, whole.replace("\n", end), before.version)

    def _says(self, item: Item, kind: str, fields: Mapping[str, object], text: str) -> bool:
        """Tell whether an item has this text and these fields already."""
        if item.body != self.corpus.redactor.redact(text).text:
            return False
        existing = {**record.fields(kind, (), item.created), **item.fields}
        for name, value in fields.items():
            # An id is written with the next change; an item without one is named by its file
            # until then.
            if name != "id" and existing.get(name) != value:
                return False
        return True

    def _target(self, scope: Scope, new: _NewItem, text: str) -> _Target:
        """Return what a write is to change."""
        if new.item_id:
            item_id = self._item_id(scope, new.item_id, [new.kind])
            return self._target_by_id(scope, new.kind, item_id)
        # A secret in a title must not become the name of a file.
        name = str(new.fields.get("title") or text)
        clean_name = self.corpus.redactor.redact(name).text
        return self._target_by_name(scope, new.kind, clean_name)

    def _target_by_id(self, scope: Scope, kind: str, item_id: str) -> _Target:
        """Find an item by its id, whatever its file is called, or by the name of its file."""
        path = _item_path(scope, kind, _checked_id(item_id))
        usual = self._existing(kind, path)
        if usual is not None and usual.id == item_id:
            return _Target(usual, usual.id, usual.path)
        for item in self._readable(scope, kind):
            if item.id == item_id:
                return _Target(item, item_id, item.path)
        if usual is not None:
            return _Target(usual, usual.id, usual.path)
        return _Target(None, item_id, path)

    def _target_by_name(self, scope: Scope, kind: str, name: str) -> _Target:
        """Find an item by its title, or a note by its text; else return a free id and path."""
        own_id = _own_id(kind, name)
        path = _item_path(scope, kind, own_id)
        usual = self._existing(kind, path)
        if usual is not None and _name(usual) == _folded(name):
            return _Target(usual, usual.id, path)
        items = self._readable(scope, kind)
        for item in items:
            if _name(item) == _folded(name):
                return _Target(item, item.id, item.path)
        ids = {item.id for item in items}
        paths = {item.path for item in items}
        for candidate in _numbered(own_id):
            path = _item_path(scope, kind, candidate)
            if candidate not in ids and path not in paths:
                return _Target(None, candidate, path)
        raise AssertionError  # the candidates do not end

    def _readable(self, scope: Scope, kind: str) -> list[Item]:
        """Read all items of a kind but the malformed ones.

        They must not keep others from being written.
        """
        items = []
        for path in sorted(self.corpus.store.scan([f"{scope.folder}/{FOLDERS[kind]}"]).stamps):
            with suppress(ParseError, NotFoundError):
                items.append(self._item(kind, path))
        return repo_items.with_own_ids(items)

    def _nothing_to_copy(self, branch: str) -> NotFoundError:
        """Return the error for a branch that has no items, with the names of those that do."""
        branches = set()
        for document in self.corpus.documents(Filter(prefix=f"{FOLDER}/")):
            name = document.extra.get("branch")
            if not isinstance(name, str):
                continue
            folder = self.scope(PER_BRANCH, name).folder
            if document.path.startswith(f"{folder}/"):
                branches.add(name)
        clean_name = self.corpus.redactor.redact(branch).text[:80]
        existing = ", ".join(sorted(branches)[:MOST_BRANCHES]) or "none"
        return NotFoundError(
            f"branch {clean_name!r} has no items and no summaries",
            f"Branches with items: {existing}",
        )

    def _item_id(self, scope: Scope, reference: str, kinds: Sequence[str]) -> str:
        """Return the id of an item that may be given by any path of its file."""
        folders = [f"{scope.folder}/{FOLDERS[kind]}" for kind in kinds]
        return references.item_id(self.corpus, reference, folders)

    def _existing(self, kind: str, path: str) -> Item | None:
        try:
            return self._item(kind, path)
        except NotFoundError:
            return None

    def _item(self, kind: str, path: str) -> Item:
        store = self.corpus.store
        source = store.read(path)
        return repo_items.read(kind, source, self.corpus.lane, store.locate(path))

    def _paths(self, paths: Sequence[str]) -> list[str]:
        if len(paths) > MOST_PATHS:
            raise ValidationError(
                f"impacted_paths has more than {MOST_PATHS} entries", "Name folders, such as src/"
            )
        cleaned = []
        for path in paths:
            clean = _project_path(path)
            looks_like_folder = path.rstrip().endswith(("/", "\\"))
            if looks_like_folder or (self.root / clean).is_dir():
                clean += "/"
            cleaned.append(clean)
        return list(dict.fromkeys(cleaned))


def _newest_first(item: Item) -> tuple[float, str]:
    return -item.updated.timestamp(), item.path


def _count(items: Mapping[str, Sequence[Item]]) -> int:
    return sum(len(members) for members in items.values())


def _item_path(scope: Scope, kind: str, item_id: str) -> str:
    return relative_name(f"{scope.folder}/{FOLDERS[kind]}/{item_id}.md")


def _with_id(items: Sequence[Item], item_id: str) -> list[Item]:
    """Return the items with this id, or else those whose file has this name."""
    exact = [item for item in items if item.id == item_id]
    if exact:
        return exact
    return [item for item in items if item.file_id == item_id]


def _free_path(scope: Scope, kind: str, item_id: str, taken: Container[str]) -> str:
    """Return the path of an id, or the next one where another item's file has that name."""
    for name in _numbered(item_id):
        path = _item_path(scope, kind, name)
        if path not in taken:
            return path
    raise AssertionError  # the names do not end


def _numbered(item_id: str) -> Iterator[str]:
    """Yield an id, and then the same with numbers behind it."""
    yield item_id
    for number in count(2):
        yield f"{item_id}-{number}"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _name(item: Item) -> str:
    """Return what tells an item from others of its kind: the title, or the text of a note."""
    if item.kind == "note":
        return _folded(item.body)
    return _folded(item.title)


def _own_id(kind: str, text: str) -> str:
    """Return an id made of a title, or of a note's text: readable, and the same for the same."""
    folded = _folded(text)
    slug = ""
    if kind != "note":
        slug = "-".join(re.findall("[a-z0-9]+", folded))
    if len(slug) > _SLUG:
        slug = slug[: _SLUG + 1].rpartition("-")[0] or slug[:_SLUG]
    digest = hashlib.blake2b(folded.encode(errors="replace"), digest_size=4).hexdigest()
    return f"{slug or kind}-{digest}"


def _checked_id(item_id: str) -> str:
    if not ID.fullmatch(item_id):
        hint = "An id has letters, digits, dashes and dots; leave it out to have one made"
        raise ValidationError(f"{item_id[:80]!r} cannot be an id", hint)
    return item_id


def _check_kind(kind: str, *kinds: str) -> None:
    if kind not in kinds:
        raise ValidationError(
            f"{kind[:40]!r} is not a kind", f"Use one of {', '.join(filter(None, kinds))}"
        )


def _title(name: str, text: str) -> str:
    check_content(text, name)
    title = " ".join(text.split())
    if len(title) > LONGEST_TITLE:
        raise ValidationError(
            f"{name} is longer than {LONGEST_TITLE} characters",
            "Put the rest into the text below it",
        )
    return title


def _project_path(path: str) -> str:
    """Return a path of the project as links name it, or refuse it."""
    text = path.strip()
    clean = links.clean_target(text.replace("\\", "/").removeprefix("./"))
    leads_out = text.startswith(("/", "\\", "~"))
    if not clean or leads_out or "\n" in path or len(clean) > LONGEST_PATH:
        raise ValidationError(
            f"{path[:80]!r} is not a path in this project", "Give it as src/auth.py or src/"
        )
    return clean
