"""A Logseq graph: pages and journals made of blocks, with properties on their first lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from ragdocs.errors import NotFoundError
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.note import Note, moment, usable_path

PAGES = "pages"
JOURNALS = "journals"
_DAY = re.compile(r"(\d{4})[_-](\d{2})[_-](\d{2})")
_PROPERTY = re.compile(r"(?:-\s+)?([A-Za-z][\w-]*)::[ \t]*(.*)")
_BRACKETS = re.compile(r"\[\[|\]\]|#")


def is_one(path: Path) -> bool:
    """Tell whether a folder is a graph: a folder `logseq` alone may hold imported memories."""
    folders = [name for name in ("logseq", PAGES, JOURNALS) if (path / name).is_dir()]
    return len(folders) > 1


def read(path: Path) -> Iterator[Note]:
    """Read pages and journals; the settings of Logseq, assets and backups are left out."""
    source.check_exists(path)
    folders = [folder for folder in (PAGES, JOURNALS) if any((path / folder).glob("*.md"))]
    if not folders:
        raise NotFoundError(f"{path} has no pages/ or journals/ with texts", "Name another folder")
    for folder in folders:
        for name, file in source.texts(path / folder):
            yield _note(folder, name, file)


def _note(folder: str, name: str, file: Path) -> Note:
    text, problem = source.read_text(file)
    properties, body = _properties(text)
    # A namespace is written as three underscores, by older versions as %2F.
    title = unquote(name.removesuffix(".md").replace("___", "/"))
    created = moment(file.stat().st_mtime)
    kind = "fact"
    path = usable_path(title)
    if folder == JOURNALS:
        kind = "journal"
        day = _DAY.fullmatch(title)
        if day:
            title = "-".join(day.groups())
            created = moment(title) or created
        path = usable_path(f"{JOURNALS}/{title}")
    fields: dict[str, object] = {"title": properties.pop("title", "") or title}
    aliases = source.words(_BRACKETS.sub("", properties.pop("alias", "")))
    if aliases:
        fields["aliases"] = list(aliases)
    tags = source.words(_BRACKETS.sub("", properties.pop("tags", "")))
    if properties:
        fields["properties"] = dict(properties)
    return Note(
        name=path,
        text=body,
        kind=kind,
        tags=tags,
        fields=fields,
        created=created,
        key=f"{folder}/{name}",
        problem=problem,
    )


def _properties(text: str) -> tuple[dict[str, str], str]:
    """Return the properties on the first lines, and what follows them."""
    properties = {}
    lines = text.splitlines(keepends=True)
    count = 0
    for line in lines:
        match = _PROPERTY.fullmatch(line.strip())
        if not match:
            break
        properties[match[1].lower()] = match[2].strip()
        count += 1
    return properties, "".join(lines[count:]).lstrip("\n")
