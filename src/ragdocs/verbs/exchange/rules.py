"""Instructions for agents, such as CLAUDE.md and the rules of Cursor, as conventions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ragdocs.errors import NotFoundError
from ragdocs.text import frontmatter
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.note import Note, file_name, moment

NAMES = (
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    ".junie/guidelines.md",
)
FOLDERS = ((".cursor/rules", ".mdc"), (".claude/rules", ".md"), (".windsurf/rules", ".md"))
_HEADING = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_LONGEST_TITLE = 200


def is_one(path: Path) -> bool:
    """Tell whether a file holds instructions for agents."""
    names = {Path(name).name for name in NAMES}
    return path.is_file() and (path.name in names or path.suffix == ".mdc")


def read(path: Path) -> Iterator[Note]:
    """Read one such file, or all of a project, each as a convention."""
    source.check_exists(path)
    for name, file in _found(path):
        text, problem = source.read_text(file)
        block, body, _ = frontmatter.split(text)
        about = _properties(block or "")
        heading = _HEADING.search(body)
        title = about.get("description") or (heading[1].strip() if heading else name)
        fields: dict[str, object] = {"title": f"{name}: {title}"[:_LONGEST_TITLE]}
        if title == name:
            fields["title"] = name
        if about.get("globs"):
            fields["globs"] = list(source.words(about["globs"]))
        yield Note(
            name=file_name(name.lstrip(".").replace("/", "-")),
            text=body,
            item="convention",
            fields=fields,
            created=moment(file.stat().st_mtime),
            key=name,
            problem=problem,
        )


def _found(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        return [(path.name, path)]
    found = []
    for name in NAMES:
        if (path / name).is_file():
            found.append((name, path / name))
    for folder, suffix in FOLDERS:
        if (path / folder).is_dir() and any((path / folder).rglob(f"*{suffix}")):
            for name, file in source.texts(path / folder, (suffix,)):
                found.append((f"{folder}/{name}", file))
    if not found:
        raise NotFoundError(
            f"{path} holds no instructions for agents", f"Known are {', '.join(NAMES)}"
        )
    return found


def _properties(block: str) -> dict[str, str]:
    """Read the properties of a rule line by line: Cursor writes globs that are no YAML."""
    properties = {}
    for line in block.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            properties[key.strip()] = value.strip().strip("\"'")
    return properties
