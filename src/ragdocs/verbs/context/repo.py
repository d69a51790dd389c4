"""What a repository knows about itself.

Conventions, decisions and notes as memories, and summaries of runs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import cast

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
from ragdocs.text import frontmatter as metadata
from ragdocs.text import links, times
from ragdocs.text.checks import check_content, check_tags
from ragdocs.types import Discard, Expect, Filter, Put
from ragdocs.verbs import page as answers
from ragdocs.verbs import references
from ragdocs.verbs.context import items as repo_items
from ragdocs.verbs.context.items import FOLDERS, ID, LONGEST_TITLE, SOURCES, Item, bare, iso
from ragdocs.verbs.context.scope import FOLDER, PER_BRANCH, Scope
from ragdocs.verbs.context.shapes import (
    Appended,
    Copied,
    RepoDeleted,
    RepoMemory,
    SavedConvention,
    SavedDecision,
    SavedNote,
)

MOST_PATHS = 100
# Two agents that change one item at once both succeed; this many lost races in a row mean that
# something else is wrong.
TRIES = 50
# Of a title in an id, so that both a path and a person get along with it.
_SLUG = 32


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
    budget: int

    def upsert_convention(
        self,
        title: str,
        content: str,
        tags: Sequence[str] | None = None,
        item_id: str = "",
        branch_scope: str | None = None,
    ) -> SavedConvention:
        """Write a convention, or change the one with this id or title."""
        fields: dict[str, object] = {"title": _title("title", title)}
        fields |= {} if tags is None else {"tags": check_tags(tags)}
        item, saved = self._upsert(
            ("convention", item_id, branch_scope), fields, content, "content"
        )
        return cast("SavedConvention", {**repo_items.convention(item, self.budget // 2), **saved})

    def upsert_decision(
        self,
        summary: str,
        rationale: str,
        impacted_paths: Sequence[str] | None = None,
        item_id: str = "",
        branch_scope: str | None = None,
    ) -> SavedDecision:
        """Write a decision, or change the one with this id or summary."""
        fields: dict[str, object] = {"title": _title("summary", summary)}
        fields |= {} if impacted_paths is None else {"impacted_paths": self._paths(impacted_paths)}
        item, saved = self._upsert(
            ("decision", item_id, branch_scope), fields, rationale, "rationale"
        )
        return cast("SavedDecision", {**repo_items.decision(item, self.budget // 2), **saved})

    def upsert_note(
        self,
        content: str,
        source: str = "manual",
        item_id: str = "",
        branch_scope: str | None = None,
    ) -> SavedNote:
        """Write a note, or change the one with this id; the same text again is the same note."""
        if source not in SOURCES:
            raise ValidationError(f"source is {source[:40]!r}", f"Use one of {', '.join(SOURCES)}")
        item, saved = self._upsert(
            ("note", item_id, branch_scope), {"source": source}, content, "content"
        )
        return cast("SavedNote", {**repo_items.note(item, self.budget // 2), **saved})

    def get(
        self, kind: str = "", item_id: str = "", path: str = "", branch_scope: str | None = None
    ) -> RepoMemory:
        """Return everything, one kind, one item, or the decisions about a path.

        Newest first, cut to the budget.
        """
        _check_kind(kind, *FOLDERS, "summary", "")
        wanted = _clean(path) if path else ""
        scope = self.scope(branch_scope, None)
        kinds = [
            name for name in FOLDERS if kind in {name, ""} and (not path or name == "decision")
        ]
        found = {name: self.items(scope, name) for name in kinds}
        archived = 0
        if item_id:
            wanted_id = self._item_id(scope, item_id, kinds)
            found = {name: _with_id(items, wanted_id) for name, items in found.items()}
            if not any(found.values()):
                raise NotFoundError(
                    f"there is no {kind or 'item'} {item_id[:80]!r}",
                    "get_repo_memory lists the ids",
                )
        else:
            every = sum(map(len, found.values()))
            found = {name: self.current(items) for name, items in found.items()}
            archived = every - sum(map(len, found.values()))
        if path:
            found["decision"] = [item for item in found["decision"] if item.concerns(wanted)]
        asked = not item_id and not path and kind in {"summary", ""}
        told = self.summaries(scope).newest() if asked else []
        view = repo_items.view(scope, found, told, self.budget)
        if archived:
            view["remarks"].append(
                f"{archived} archived or expired items are not listed; their ids still show them"
            )
        return view

    def delete(self, kind: str, item_id: str, branch_scope: str | None = None) -> RepoDeleted:
        """Move an item to the trash, if there is one."""
        _check_kind(kind, *FOLDERS)
        scope = self.scope(branch_scope, None)
        item_id = self._item_id(scope, item_id, [kind])
        path = self._path_of(scope, kind, _checked_id(item_id))
        moved = ""
        with suppress(NotFoundError):
            moved = self.corpus.commit([Discard(path)], "delete")[0].moved_to
        # What was asked for may be anything, and answers are kept by clients.
        name = self.corpus.redactor.redact(item_id).text
        return RepoDeleted(kind=kind, id=name, deleted=bool(moved), movedTo=moved)

    def append_summary(
        self,
        run_id: str,
        step_id: str,
        summary: str,
        tags: Sequence[str] = (),
        branch_scope: str | None = None,
    ) -> Appended:
        """Write down what a step came to."""
        check_content(summary, "summary")
        check_content(run_id, "run_id")
        check_content(step_id, "step_id")
        store = self.summaries(self.scope(branch_scope, None))
        appended = store.append(run_id, step_id, summary, check_tags(tags), self.clock())
        return repo_items.appended(appended)

    def copy(self, source: str, target: str) -> Copied:
        """Copy what one branch knows to another; what the other has already stays as it is."""
        one, other = (self.scope(PER_BRANCH, branch) for branch in (source, target))
        if one.folder == other.folder:
            raise ValidationError("both are the same branch", "Name two branches")
        puts, left, sources = [], [], 0
        for kind in FOLDERS:
            existing = {item.id: item.path for item in self.items(other, kind)}
            taken = set(existing.values())
            for item in self.items(one, kind):
                sources += 1
                if item.id in existing:
                    left.append(existing[item.id])
                    continue
                path = _free_place(other, kind, item.id, taken)
                taken.add(path)
                puts.append(Put(path, self.corpus.store.read(item.path).text, Expect.ABSENT))
        if not sources and not self.summaries(one).newest():
            raise self._nothing_to_copy(source)
        # All of them or none: half a branch would look like a whole one.
        copied = [written.path for written in self.corpus.commit(puts, "create")] if puts else []
        told = self.summaries(other).take(self.summaries(one))
        names = [self.corpus.redactor.redact(name).text for name in (source, target)]
        return Copied(source=names[0], target=names[1], copied=copied, left=left, summaries=told)

    def items(self, scope: Scope, kind: str) -> list[Item]:
        """Read all items of a kind, the last changed first.

        One that is malformed is an error and stays untouched.
        """
        folder = f"{scope.folder}/{FOLDERS[kind]}"
        scan = self.corpus.store.scan([folder])
        if scan.unreadable:
            path, reason = next(iter(scan.unreadable.items()))
            raise StorageError(f"{path} cannot be read: {reason}", "Check its permissions")
        found = repo_items.with_own_ids([self._item(kind, path) for path in sorted(scan.stamps)])
        return sorted(found, key=lambda item: (-item.updated.timestamp(), item.path))

    def current(self, items: Sequence[Item]) -> list[Item]:
        """Leave out items that are archived or have expired."""
        hidden = {status.casefold() for status in self.corpus.lane.hidden}
        now = self.clock()
        return [
            item
            for item in items
            if item.document.status.casefold() not in hidden and not item.expired(now)
        ]

    def _upsert(
        self, where: tuple[str, str, str | None], fields: Mapping[str, object], text: str, name: str
    ) -> tuple[Item, dict[str, object]]:
        kind, item_id, branch_scope = where
        check_content(text, name)
        text = bare(text)
        scope = self.scope(branch_scope, None)
        # A secret in a title must not become the name of a file.
        name_text = self.corpus.redactor.redact(str(fields.get("title") or text)).text
        fields = {**fields, **({"branch": scope.branch} if scope.branch else {})}
        if item_id:
            item_id = self._item_id(scope, item_id, [kind])
        for _ in range(TRIES):
            if item_id:
                before = self._by_id(scope, kind, _checked_id(item_id))
                path = before.path if before else _place(scope, kind, item_id)
                own_id = item_id
            else:
                before, own_id, path = self._by_name(scope, kind, name_text)
            put = self._put(
                path, kind, before, {**fields, "id": before.id if before else own_id}, text
            )
            warnings: list[str] = []
            if put is not None:
                try:
                    warnings = answers.removed(
                        self.corpus.commit([put], "update" if before else "create")[0]
                    )
                except (ConflictError, AlreadyExistsError, NotFoundError):
                    continue  # somebody was faster: what is there now is what this changes
            item = self._known(kind, path)
            if item is not None:
                if before and not self.current([before]):
                    warnings.append("it was archived or had expired; it is active again")
                place = self.corpus.store.locate(path)
                changed = put is not None
                return item, {
                    "created": not before,
                    "changed": changed,
                    "path": place,
                    "warnings": warnings,
                }
        raise ConflictError(f"{path} was changed by others {TRIES} times in a row", "Try again")

    def _put(
        self, path: str, kind: str, before: Item | None, fields: Mapping[str, object], text: str
    ) -> Put | None:
        """Return the change to make, or nothing where the item says all this already."""
        now = times.stamp(self.clock())
        kept = {
            "type": kind,
            "status": "active",
            "tags": [],
            "created_at": iso(before.created) if before else now,
        }
        kept |= before.fields if before else {}
        cleaned = self.corpus.redactor.redact(text).text
        # An id is written with the next change; an item without one is known by its file's name
        # until then.
        compared = {name: value for name, value in fields.items() if name != "id"}
        unchanged = (
            before
            and before.body == cleaned
            and all(kept.get(k) == value for k, value in compared.items())
        )
        if before and not self.current([before]):
            # Whoever writes an item down again wants it to count.
            unchanged = False
            fields = {**fields, "status": "active", "expires_at": None}
        if unchanged:
            return None
        fields = {**fields, "updated_at": now}
        if before is None:
            return Put(path, metadata.render({**kept, **fields}, f"{text}\n"), Expect.ABSENT)
        # The lines of other fields stay as somebody wrote them.
        missing = {name: value for name, value in kept.items() if name not in before.fields}
        header = metadata.set_fields(before.text, {**missing, **fields})
        end = metadata.newline(before.text)
        return Put(
            path, f"{header}\n{text}\n".replace("\r\n", "\n").replace("\n", end), before.version
        )

    def _by_id(self, scope: Scope, kind: str, item_id: str) -> Item | None:
        """Find an item by its id, whatever its file is called, or by the name of its file."""
        usual = self._known(kind, _place(scope, kind, item_id))
        if usual is not None and usual.id == item_id:
            return usual
        items = self._readable(scope, kind)
        return next((item for item in items if item.id == item_id), usual)

    def _by_name(self, scope: Scope, kind: str, name: str) -> tuple[Item | None, str, str]:
        """Find an item by its title, or a note by its text.

        Where there is none, return a free id and path.
        """
        own_id = _own_id(kind, name)
        path = _place(scope, kind, own_id)
        usual = self._known(kind, path)
        if usual is not None and _name(usual) == _folded(name):
            return usual, usual.id, path
        items = self._readable(scope, kind)
        for item in items:
            if _name(item) == _folded(name):
                return item, item.id, item.path
        ids = {item.id for item in items}
        paths = {item.path for item in items}
        for candidate in _numbered(own_id):
            path = _place(scope, kind, candidate)
            if candidate not in ids and path not in paths:
                return None, candidate, path
        raise AssertionError  # the candidates do not end

    def _path_of(self, scope: Scope, kind: str, item_id: str) -> str:
        item = self._by_id(scope, kind, item_id)
        return item.path if item else _place(scope, kind, item_id)

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
        named = set()
        for document in self.corpus.index.documents(Filter(prefix=f"{FOLDER}/")):
            name = document.extra.get("branch")
            if isinstance(name, str) and document.path.startswith(
                f"{self.scope(PER_BRANCH, name).folder}/"
            ):
                named.add(name)
        name = self.corpus.redactor.redact(branch).text[:80]
        known = ", ".join(sorted(named)[:20]) or "none"
        return NotFoundError(
            f"branch {name!r} has no items and no summaries", f"Branches with items: {known}"
        )

    def _item_id(self, scope: Scope, reference: str, kinds: Sequence[str]) -> str:
        """Return the id of an item that may be given by any path of its file."""
        folders = [f"{scope.folder}/{FOLDERS[kind]}" for kind in kinds]
        return references.item_id(self.corpus, reference, folders)

    def _known(self, kind: str, path: str) -> Item | None:
        try:
            return self._item(kind, path)
        except NotFoundError:
            return None

    def _item(self, kind: str, path: str) -> Item:
        store = self.corpus.store
        return repo_items.read(kind, store.read(path), self.corpus.lane, store.locate(path))

    def _paths(self, paths: Sequence[str]) -> list[str]:
        if len(paths) > MOST_PATHS:
            raise ValidationError(
                f"impacted_paths has more than {MOST_PATHS} entries", "Name folders, such as src/"
            )
        found = []
        for path in paths:
            clean = _clean(path)
            is_folder = path.rstrip().endswith(("/", "\\")) or (self.root / clean).is_dir()
            found.append(f"{clean}/" if is_folder else clean)
        return list(dict.fromkeys(found))


def _place(scope: Scope, kind: str, item_id: str) -> str:
    return relative_name(f"{scope.folder}/{FOLDERS[kind]}/{item_id}.md")


def _with_id(items: Sequence[Item], item_id: str) -> list[Item]:
    """Return the items with this id, or else those whose file has this name."""
    exact = [item for item in items if item.id == item_id]
    return exact or [item for item in items if item.file_id == item_id]


def _free_place(scope: Scope, kind: str, item_id: str, taken: Container[str]) -> str:
    """Return a path for an item.

    That of its id, or the next one where another item's file has that name.
    """
    places = (_place(scope, kind, name) for name in _numbered(item_id))
    return next(path for path in places if path not in taken)


def _numbered(item_id: str) -> Iterator[str]:
    """Yield an id, and then the same with numbers behind it."""
    yield item_id
    for number in count(2):
        yield f"{item_id}-{number}"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _name(item: Item) -> str:
    """Return what tells an item from others of its kind: the title, or the text of a note."""
    return _folded(item.body if item.kind == "note" else item.title)


def _own_id(kind: str, text: str) -> str:
    """Return the id of what was given none.

    Readable, and the same for the same title, or for the same text.
    """
    folded = _folded(text)
    slug = "" if kind == "note" else "-".join(re.findall("[a-z0-9]+", folded))
    if len(slug) > _SLUG:
        slug = slug[: _SLUG + 1].rpartition("-")[0] or slug[:_SLUG]
    digest = hashlib.blake2b(folded.encode(errors="replace"), digest_size=4).hexdigest()
    return f"{slug or kind}-{digest}"


def _checked_id(item_id: str) -> str:
    if not ID.fullmatch(item_id):
        hint = "An id has letters, digits, dashes and dots; leave it out to have one made"
        raise ValidationError(f"{item_id[:80]!r} cannot be an id", hint)
    return item_id


def _check_kind(kind: str, *known: str) -> None:
    if kind not in known:
        raise ValidationError(
            f"{kind[:40]!r} is not a kind", f"Use one of {', '.join(filter(None, known))}"
        )


def _title(name: str, text: str) -> str:
    check_content(text, name)
    said = " ".join(text.split())
    if len(said) > LONGEST_TITLE:
        raise ValidationError(
            f"{name} is longer than {LONGEST_TITLE} characters",
            "Put the rest into the text below it",
        )
    return said


def _clean(path: str) -> str:
    """Return a path of the project as links name it, or refuse it."""
    clean = links.clean_target(path.strip().replace("\\", "/").removeprefix("./"))
    if not clean or path.strip().startswith(("/", "\\", "~")) or "\n" in path or len(clean) > 500:  # noqa: PLR2004 - a path
        raise ValidationError(
            f"{path[:80]!r} is not a path in this project", "Give it as src/auth.py or src/"
        )
    return clean
