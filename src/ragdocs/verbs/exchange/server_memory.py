"""The file of the MCP server-memory: entities with observations, and relations between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragdocs.text.statements import split_statements
from ragdocs.types import Document
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.exported import Exported, Names
from ragdocs.verbs.exchange.note import Note, file_name

ENTITY_TYPE = "entity_type"
RELATIONS = "## Relations"
_NO_WORD = re.compile(r"[^\w-]+")
# What a link cannot hold as its name.
_NO_LINK = re.compile(r"[#|^\[\]\n/]|\A\s|\s\Z|:")
_ITEM = re.compile(r"[-*+]\s+")
_RELATION = re.compile(r"[-*+]\s+(?:[\w-]{1,40}(?:::)?\s+)?\[\[[^\[\]\n]+\]\]\s*")
_LONGEST_KIND = 40


@dataclass(slots=True)
class _Entity:
    name: str
    kind: str = ""
    observations: list[str] = field(default_factory=list)
    # Kinds and names of others.
    relations: list[tuple[str, str]] = field(default_factory=list)


def is_one(record: dict[str, Any]) -> bool:
    """Tell whether a line of JSON is one of such a file."""
    return record.get("type") in ("entity", "relation") and ("name" in record or "from" in record)


def read(path: Path) -> Iterator[Note]:
    """Read each entity as a memory with its relations as links."""
    entities: dict[str, _Entity] = {}
    for number, record in source.json_lines(path):
        if not is_one(record):
            raise source.broken(path, number, "neither an entity nor a relation")
        if record["type"] == "entity":
            name = _text(path, number, record, "name")
            entity = entities.setdefault(name, _Entity(name))
            entity.kind = _text(path, number, record, "entityType", is_needed=False)
            entity.observations += _observations(path, number, record)
        else:
            start = _text(path, number, record, "from")
            end = _text(path, number, record, "to")
            kind = _text(path, number, record, "relationType", is_needed=False)
            entities.setdefault(start, _Entity(start)).relations.append((kind, end))
    for entity in entities.values():
        yield _note(entity)


def _text(
    path: Path, number: int, record: dict[str, Any], key: str, *, is_needed: bool = True
) -> str:
    value = record.get(key, "")
    if not isinstance(value, str) or (is_needed and not value.strip()):
        raise source.broken(path, number, f"no text in {key}")
    return value


def _observations(path: Path, number: int, record: dict[str, Any]) -> list[str]:
    observations = record.get("observations", [])
    is_list = isinstance(observations, list)
    if not is_list or not all(isinstance(text, str) for text in observations):
        raise source.broken(path, number, "observations are not a list of texts")
    return list(observations)


def _note(entity: _Entity) -> Note:
    lines = [f"# {' '.join(entity.name.split())}", ""]
    for observation in entity.observations:
        if observation.strip():
            lines.append("- " + observation.strip().replace("\n", "\n  "))
    if entity.relations:
        lines += ["", RELATIONS, ""]
        for kind, end in dict.fromkeys(entity.relations):
            lines.append(f"- {relation_word(kind)} [[{link_text(end)}]]")
    fields = {"title": entity.name}
    tags: tuple[str, ...] = ()
    if entity.kind.strip():
        fields[ENTITY_TYPE] = entity.kind
        tags = (" ".join(entity.kind.split())[:_LONGEST_KIND],)
    text = "\n".join(lines).replace("\n\n\n", "\n\n")
    return Note(
        name=file_name(entity.name), text=f"{text}\n", tags=tags, fields=fields, key=entity.name
    )


def relation_word(kind: str) -> str:
    """Return the kind of a relation as a link has it: one word in lower case."""
    word = _NO_WORD.sub("_", kind.strip()).strip("_-").lower()[:_LONGEST_KIND]
    if not word or not word[0].isalpha():
        return "related_to"
    return word


def link_text(name: str) -> str:
    """Return what stands between the brackets of a link to an entity."""
    if not _NO_LINK.search(name):
        return name
    label = re.sub(r"[\[\]|\n]+", " ", name).strip()
    return f"{file_name(name)}|{label}"


def write(memories: Iterable[Exported]) -> Iterator[tuple[str, str]]:
    """Return one file: memories as entities, their links as relations."""
    memories = list(memories)
    names = Names(memories)
    entities = []
    relations = {}
    titles = _titles(memories)
    for memory in memories:
        document = memory.document
        title = titles[document.path]
        kind = document.extra.get(ENTITY_TYPE) or document.kind
        entities.append(
            {
                "type": "entity",
                "name": title,
                "entityType": str(kind),
                "observations": _statements(memory, names, titles),
            }
        )
        for link in document.links:
            target = names.find(link.target)
            end = titles[target.path] if target else link.target
            relation = {"type": "relation", "from": title, "to": end, "relationType": link.kind}
            relations[title, end, link.kind] = relation
    lines = [json.dumps(record, ensure_ascii=False) for record in (*entities, *relations.values())]
    yield "", "\n".join(lines) + "\n"


def _titles(memories: Iterable[Exported]) -> dict[str, str]:
    """Return the names of entities by their paths; no two are the same."""
    titles: dict[str, str] = {}
    used: set[str] = set()
    for memory in memories:
        title = memory.document.title
        if title in used:
            title = f"{title} ({memory.document.path.removesuffix('.md')})"
        used.add(title)
        titles[memory.document.path] = title
    return titles


def _statements(memory: Exported, names: Names, titles: Mapping[str, str]) -> list[str]:
    """Return what a memory says, statement by statement, without its title and its relations."""

    def entity(document: Document, target: str) -> str:
        title = titles[document.path]
        return target if _NO_LINK.search(title) else title

    observations = []
    for statement in split_statements(names.rewritten(memory.body, entity)):
        if statement.startswith("#"):
            text = statement.lstrip("#").strip()
            if text != memory.document.title and statement != RELATIONS:
                observations.append(text)
        elif not _RELATION.fullmatch(statement):
            observations.append(_ITEM.sub("", statement, count=1).replace("\n  ", "\n"))
    return observations
