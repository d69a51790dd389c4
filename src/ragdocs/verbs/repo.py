"""What a repository knows about itself: conventions, decisions and notes as memories, and summaries of runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import cast

from ragdocs.errors import AlreadyExistsError, ConflictError, NotFoundError, StorageError, ValidationError
from ragdocs.names import relative_name
from ragdocs.pipeline import links, metadata, times
from ragdocs.pipeline.corpus import Corpus
from ragdocs.types import Discard, Expect, Put
from ragdocs.verbs import answers, references, repo_items
from ragdocs.verbs.memories import check_content, check_tags
from ragdocs.verbs.repo_items import FOLDERS, LONGEST_TITLE, SOURCES, Item, bare, iso
from ragdocs.verbs.repo_shapes import (
    Appended,
    Copied,
    RepoDeleted,
    RepoMemory,
    SavedConvention,
    SavedDecision,
    SavedNote,
)
from ragdocs.verbs.scope import Scope
from ragdocs.verbs.summaries import Summaries

MOST_PATHS = 100
# Two agents that change one item at once both succeed; this many lost races in a row mean that something else is wrong.
TRIES = 50
_ID = re.compile(r"\w(?:[\w.-]{0,98}\w)?")
# Of a title in an id, so that both a path and a person get along with it.
_SLUG = 32


@dataclass(frozen=True, slots=True)
class Repository:
    """What can be asked of a repository's knowledge; `scope` finds the store by a policy and perhaps a branch."""

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
        item, saved = self._upsert(("convention", item_id, branch_scope), fields, content, "content")
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
        item, saved = self._upsert(("decision", item_id, branch_scope), fields, rationale, "rationale")
        return cast("SavedDecision", {**repo_items.decision(item, self.budget // 2), **saved})

    def upsert_note(
        self, content: str, source: str = "manual", item_id: str = "", branch_scope: str | None = None
    ) -> SavedNote:
        """Write a note, or change the one with this id; the same text again is the same note."""
        if source not in SOURCES:
            raise ValidationError(f"source is {source[:40]!r}", f"Use one of {', '.join(SOURCES)}")
        item, saved = self._upsert(("note", item_id, branch_scope), {"source": source}, content, "content")
        return cast("SavedNote", {**repo_items.note(item, self.budget // 2), **saved})

    def get(self, kind: str = "", item_id: str = "", path: str = "", branch_scope: str | None = None) -> RepoMemory:
        """Return everything, one kind, one item, or the decisions about a path; newest first, cut to the budget."""
        _check_kind(kind, *FOLDERS, "summary", "")
        wanted = _clean(path) if path else ""
        scope = self.scope(branch_scope, None)
        kinds = [name for name in FOLDERS if kind in {name, ""} and (not path or name == "decision")]
        found = {name: self.items(scope, name) for name in kinds}
        if item_id:
            wanted_id = self._item_id(scope, item_id, kinds)
            found = {name: [item for item in items if item.id == wanted_id] for name, items in found.items()}
            if not any(found.values()):
                raise NotFoundError(f"there is no {kind or 'item'} {item_id[:80]!r}", "get_repo_memory lists the ids")
        if path:
            found["decision"] = [item for item in found["decision"] if item.concerns(wanted)]
        asked = not item_id and not path and kind in {"summary", ""}
        told = self.summaries(scope).newest() if asked else []
        return repo_items.view(scope, found, told, self.budget)

    def delete(self, kind: str, item_id: str, branch_scope: str | None = None) -> RepoDeleted:
        """Move an item to the trash, if there is one."""
        _check_kind(kind, *FOLDERS)
        scope = self.scope(branch_scope, None)
        item_id = self._item_id(scope, item_id, [kind])
        path = _place(scope, kind, _checked_id(item_id))
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
        store = self.summaries(self.scope(branch_scope, None))
        return store.append(run_id, step_id, summary, tags, self.clock())

    def copy(self, source: str, target: str) -> Copied:
        """Copy what one branch knows to another; what the other has already stays as it is."""
        one, other = (self.scope("perBranch", branch) for branch in (source, target))
        if one.folder == other.folder:
            raise ValidationError("both are the same branch", "Name two branches")
        puts, left = [], []
        for kind in FOLDERS:
            there = {item.id for item in self.items(other, kind)}
            for item in self.items(one, kind):
                path = _place(other, kind, item.id)
                if item.id in there:
                    left.append(path)
                else:
                    puts.append(Put(path, self.corpus.store.read(item.path).text, Expect.ABSENT))
        # All of them or none: half a branch would look like a whole one.
        copied = [written.path for written in self.corpus.commit(puts, "create")] if puts else []
        told = self.summaries(other).take(self.summaries(one))
        names = [self.corpus.redactor.redact(name).text for name in (source, target)]
        return Copied(source=names[0], target=names[1], copied=copied, left=left, summaries=told)

    def items(self, scope: Scope, kind: str) -> list[Item]:
        """Read all items of a kind, the last changed first; one that is malformed is an error and stays untouched."""
        folder = f"{scope.folder}/{FOLDERS[kind]}"
        scan = self.corpus.store.scan([folder])
        if scan.unreadable:
            path, reason = next(iter(scan.unreadable.items()))
            raise StorageError(f"{path} cannot be read: {reason}", "Check its permissions")
        found = [self._item(kind, path) for path in scan.stamps]
        return sorted(found, key=lambda item: (-item.updated.timestamp(), item.path))

    def _upsert(
        self, where: tuple[str, str, str | None], fields: Mapping[str, object], text: str, name: str
    ) -> tuple[Item, dict[str, object]]:
        kind, item_id, branch_scope = where
        check_content(text, name)
        text = bare(text)
        scope = self.scope(branch_scope, None)
        # A secret in a title must not become the name of a file.
        named = self.corpus.redactor.redact(str(fields.get("title") or text)).text
        item_id = _checked_id(self._item_id(scope, item_id, [kind])) if item_id else _own_id(kind, named)
        path = _place(scope, kind, item_id)
        for _ in range(TRIES):
            before = self._known(kind, path)
            put = self._put(path, kind, before, {**fields, **({"branch": scope.branch} if scope.branch else {})}, text)
            warnings: list[str] = []
            if put is not None:
                try:
                    warnings = answers.removed(self.corpus.commit([put], "update" if before else "create")[0])
                except (ConflictError, AlreadyExistsError, NotFoundError):
                    continue  # somebody was faster: what is there now is what this changes
            item = self._known(kind, path)
            if item is not None:
                place = self.corpus.store.locate(path)
                changed = put is not None
                return item, {"created": not before, "changed": changed, "path": place, "warnings": warnings}
        raise ConflictError(f"{path} was changed by others {TRIES} times in a row", "Try again")

    def _put(self, path: str, kind: str, before: Item | None, fields: Mapping[str, object], text: str) -> Put | None:
        """Return the change to make, or nothing where the item says all this already."""
        now = times.stamp(self.clock())
        kept = {"type": kind, "status": "active", "tags": [], "created_at": iso(before.created) if before else now}
        kept |= before.fields if before else {}
        cleaned = self.corpus.redactor.redact(text).text
        if before and before.body == cleaned and all(kept.get(name) == value for name, value in fields.items()):
            return None
        written = metadata.render({**kept, **fields, "updated_at": now}, f"{text}\n")
        return Put(path, written, before.version if before else Expect.ABSENT)

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
            raise ValidationError(f"impacted_paths has more than {MOST_PATHS} entries", "Name folders, such as src/")
        found = []
        for path in paths:
            clean = _clean(path)
            is_folder = path.rstrip().endswith(("/", "\\")) or (self.root / clean).is_dir()
            found.append(f"{clean}/" if is_folder else clean)
        return list(dict.fromkeys(found))


def _place(scope: Scope, kind: str, item_id: str) -> str:
    return relative_name(f"{scope.folder}/{FOLDERS[kind]}/{item_id}.md")


def _own_id(kind: str, text: str) -> str:
    """Return the id of what was given none: readable, and the same for the same title, or for the same text."""
    folded = " ".join(text.casefold().split())
    slug = "" if kind == "note" else "-".join(re.findall("[a-z0-9]+", folded))
    if len(slug) > _SLUG:
        slug = slug[: _SLUG + 1].rpartition("-")[0] or slug[:_SLUG]
    digest = hashlib.blake2b(folded.encode(errors="replace"), digest_size=4).hexdigest()
    return f"{slug or kind}-{digest}"


def _checked_id(item_id: str) -> str:
    if not _ID.fullmatch(item_id):
        hint = "An id has letters, digits, dashes and dots; leave it out to have one made"
        raise ValidationError(f"{item_id[:80]!r} cannot be an id", hint)
    return item_id


def _check_kind(kind: str, *known: str) -> None:
    if kind not in known:
        raise ValidationError(f"{kind[:40]!r} is not a kind", f"Use one of {', '.join(filter(None, known))}")


def _title(name: str, text: str) -> str:
    check_content(text, name)
    said = " ".join(text.split())
    if len(said) > LONGEST_TITLE:
        raise ValidationError(
            f"{name} is longer than {LONGEST_TITLE} characters", "Put the rest into the text below it"
        )
    return said


def _clean(path: str) -> str:
    """Return a path of the project as links name it, or refuse it."""
    clean = links.clean_target(path.strip().replace("\\", "/").removeprefix("./"))
    if not clean or path.strip().startswith(("/", "\\", "~")) or "\n" in path or len(clean) > 500:  # noqa: PLR2004 - a path
        raise ValidationError(f"{path[:80]!r} is not a path in this project", "Give it as src/auth.py or src/")
    return clean
