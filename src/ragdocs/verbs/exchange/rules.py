"""Instructions for agents, such as CLAUDE.md and the rules of Cursor, as conventions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ragdocs.errors import NotFoundError
from ragdocs.text import frontmatter
from ragdocs.text.own_part import OWN_PART
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
FOLDERS = (
    (".cursor/rules", ".mdc"),
    (".claude/rules", ".md"),
    (".windsurf/rules", ".md"),
    (".github/instructions", ".md"),
    (".clinerules", ".md"),
)
# The files that a rule is about, as Cursor, Copilot and Claude Code call them.
GLOBS = ("globs", "applyTo", "paths")
_HEADING = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_LONGEST_TITLE = 200


def is_one(path: Path) -> bool:
    """Tell whether a file holds instructions for agents."""
    names = {Path(name).name for name in NAMES}
    return path.is_file() and (path.name in names or path.suffix == ".mdc")


def read(path: Path) -> Iterator[Note]:
    """Read one such file, or all of a project, each as a convention."""
    source.check_exists(path)
    for name, file in _rule_files(path):
        text, problem = source.read_text(file)
        block, body, _ = frontmatter.split(text)
        own = OWN_PART.search(body)
        if own:
            # It says when to call tools of ours, which is no convention of the project.
            body = body.replace(own[0], "").strip() + "\n"
            if not body.strip():
                continue
        about = _properties(block or "")
        heading = _HEADING.search(body)
        title = about.get("description") or (heading[1].strip() if heading else name)
        fields: dict[str, object] = {"title": f"{name}: {title}"[:_LONGEST_TITLE]}
        if title == name:
            fields["title"] = name
        for key in GLOBS:
            if about.get(key):
                fields["globs"] = list(source.words(about[key]))
        yield Note(
            name=file_name(name.lstrip(".").replace("/", "-")),
            text=body,
            item="convention",
            fields=fields,
            created=moment(file.stat().st_mtime),
            key=name,
            problem=problem,
        )


def _rule_files(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        return [(path.name, path)]
    rules = []
    for name in NAMES:
        file = path / name
        # A link is a second name for a file that is read by its first one.
        if file.is_file() and not file.is_symlink():
            rules.append((name, file))
    for folder, suffix in FOLDERS:
        if (path / folder).is_dir() and any((path / folder).rglob(f"*{suffix}")):
            for name, file in source.texts(path / folder, (suffix,)):
                rules.append((f"{folder}/{name}", file))
    if not rules:
        raise NotFoundError(
            f"{path} holds no instructions for agents", f"Known are {', '.join(NAMES)}"
        )
    return rules


def _properties(block: str) -> dict[str, str]:
    """Read the properties of a rule line by line: Cursor writes globs that are no YAML."""
    properties = {}
    for line in block.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            properties[key.strip()] = value.strip().strip("\"'")
    return properties
