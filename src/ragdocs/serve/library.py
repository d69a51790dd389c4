"""A project as an object with the declared verbs as methods, for scripts and notebooks."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from ragdocs.errors import LockAcquisitionError, RagdocsError, UnavailableError
from ragdocs.serve.source import load_config
from ragdocs.serve.surface import (
    VERBS,
    Ask,
    call,
    care,
    context,
    docs,
    entries,
    finding,
    journal,
    listing,
    living,
    memories,
    quality,
    recall,
    texts,
    upkeep,
)
from ragdocs.serve.surface.checking import checked
from ragdocs.text.visible import framed

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

# A script reads all of an answer; only agents have a budget.
ROOM = 1_000_000


class _Method(Generic[Arguments, Answer]):
    """A verb as a method: it takes what the declared function takes after the first parameter."""

    def __init__(self, run: Callable[Concatenate[Ask, Arguments], Answer]) -> None:
        self.run = run
        self.__doc__ = run.__doc__

    def __get__(self, project: Project | None, owner: type[Project]) -> Callable[Arguments, Answer]:
        run = self.run

        def method(*values: Arguments.args, **named: Arguments.kwargs) -> Answer:
            if project is None:
                raise TypeError(f"{run.__name__} is a method of an open project")
            return project.call(run, *values, **named)

        # Notebooks show both when a person asks for help.
        signature = inspect.signature(run)
        given = list(signature.parameters.values())[1:]
        method.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        method.__name__ = run.__name__
        method.__qualname__ = f"{owner.__name__}.{run.__name__}"
        method.__doc__ = run.__doc__
        return method


class Project:
    """An open project; every call brings the index up to the files first."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace: Workspace | None = workspace

    @property
    def workspace(self) -> Workspace:
        """What the project is made of, for those who look into it."""
        if self._workspace is None:
            raise UnavailableError("the project is closed", "Open it again")
        return self._workspace

    def call(
        self,
        run: Callable[Concatenate[Ask, Arguments], Answer],
        *values: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Answer:
        """Return the answer of a declared verb."""
        verb = VERBS[run.__name__]
        workspace = self.workspace
        given = inspect.signature(run).bind(None, *values, **named).arguments
        _, *names = given
        arguments = {name: given[name] for name in names}
        arguments = checked(verb, workspace.config, arguments, "all")
        for lane in verb.lanes_for(arguments):
            open_lane = workspace.open_lanes.get(lane)
            if open_lane is not None and verb.current:
                open_lane.corpus.sync()
            if open_lane is not None and verb.meaning:
                open_lane.corpus.embed()
        answer: Answer = framed(call.answer(verb, Ask(workspace=workspace), arguments))
        return answer

    def close(self) -> None:
        """Keep the index for the next time, and let go of files; texts are on disk already."""
        workspace = self._workspace
        self._workspace = None
        if workspace is None:
            return
        try:
            # Whoever holds the lock saves the index.
            with workspace, suppress(LockAcquisitionError):
                workspace.save()
        except RagdocsError as error:
            warnings.warn(f"the index was not saved: {error}", RuntimeWarning, stacklevel=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # One line a verb: parameters, results and documentation are those of the declaration.
    search_docs = _Method(docs.search_docs)
    read_doc = _Method(docs.read_doc)
    list_sources = _Method(docs.list_sources)
    search_commits = _Method(docs.search_commits)
    search = _Method(finding.search)
    index_status = _Method(upkeep.index_status)
    create_memory = _Method(memories.create_memory)
    update_memory = _Method(memories.update_memory)
    append_memory = _Method(memories.append_memory)
    edit_memory = _Method(memories.edit_memory)
    delete_memory = _Method(memories.delete_memory)
    read_memory = _Method(memories.read_memory)
    search_memories = _Method(memories.search_memories)
    search_linked_memories = _Method(memories.search_linked_memories)
    get_memory_stats = _Method(memories.get_memory_stats)
    merge_memories = _Method(memories.merge_memories)
    suggest_memory_merges = _Method(memories.suggest_memory_merges)
    memory_history = _Method(memories.memory_history)
    restore_memory = _Method(memories.restore_memory)
    rename_memory = _Method(memories.rename_memory)
    diff_memory = _Method(memories.diff_memory)
    undo_memory_change = _Method(memories.undo_memory_change)
    expire_memories = _Method(memories.expire_memories)
    review_memories = _Method(memories.review_memories)
    list_memories = _Method(listing.list_memories)
    show_text = _Method(texts.show_text)
    text_links = _Method(texts.text_links)
    draft_links = _Method(texts.draft_links)
    check_secrets = _Method(texts.check_secrets)
    compare_texts = _Method(texts.compare_texts)
    remember = _Method(recall.remember)
    recall = _Method(recall.recall)
    memory_add = _Method(entries.memory_add)
    memory_search = _Method(entries.memory_search)
    memory_get = _Method(entries.memory_get)
    memory_stats = _Method(entries.memory_stats)
    memory_delete = _Method(entries.memory_delete)
    upsert_convention = _Method(context.upsert_convention)
    upsert_decision = _Method(context.upsert_decision)
    upsert_note = _Method(context.upsert_note)
    append_summary = _Method(context.append_summary)
    get_repo_memory = _Method(context.get_repo_memory)
    delete_repo_memory = _Method(context.delete_repo_memory)
    copy_repo_memory = _Method(context.copy_repo_memory)
    build_context = _Method(context.build_context)
    journal_search = _Method(journal.journal_search)
    journal_read = _Method(journal.journal_read)
    journal_toc = _Method(journal.journal_toc)
    journal_list_entries = _Method(journal.journal_list_entries)
    journal_write = _Method(journal.journal_write)
    journal_sync = _Method(journal.journal_sync)
    journal_synthesize_conflict = _Method(journal.journal_synthesize_conflict)
    explain_search = _Method(quality.explain_search)
    lint_texts = _Method(quality.lint_texts)
    verify_index = _Method(quality.verify_index)
    verify_memory = _Method(living.verify_memory)
    update_links = _Method(living.update_links)
    review_drift = _Method(living.review_drift)
    affected_texts = _Method(living.affected_texts)
    link_graph = _Method(care.link_graph)
    review_links = _Method(care.review_links)
    documentation_gaps = _Method(care.documentation_gaps)
    review_conflicts = _Method(care.review_conflicts)
    suggest_docs_changes = _Method(care.suggest_docs_changes)
    write_handover = _Method(care.write_handover)
    draft_memory_merge = _Method(care.draft_memory_merge)
    memory_timeline = _Method(care.memory_timeline)
    connected_clients = _Method(care.connected_clients)


def open_project(
    folder: str | Path | None = None, settings: Mapping[str, Any] | None = None
) -> Project:
    """Open the project of a folder, or of the working directory.

    `settings` override its configuration: {"embedding.model": "none"}.
    """
    from ragdocs.workspace import Workspace

    workspace = Workspace(load_config(folder, (), settings), room=ROOM)
    workspace.load()
    return Project(workspace)
