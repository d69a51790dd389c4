"""Problems of texts in the formats of other programs: code scanning and continuous integration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragdocs import __version__

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# The rules that a problem may break, and what each of them says.
RULES = {
    "text": "A text cannot be read as its author meant it.",
    "dead-link": "A link leads to no file or to no heading.",
    "contradiction": "Two memories contradict each other; a person decides which holds.",
    "secret": "A secret is written down.",
    "renamed-file": "A link has the name that a file had before.",
    "relative-link": "A wikilink is relative to its file.",
    "tag-spelling": "A tag is spelled in several ways.",
    "missing-date": "A memory does not say when it was written.",
}


def sarif(answer: Mapping[str, Any]) -> str:
    """Write problems as SARIF 2.1.0, which code scanning reads."""
    results = []
    for row in _rows(answer):
        region = {"startLine": row["line"] or 1}
        location = {
            "physicalLocation": {
                "artifactLocation": {"uri": _relative(row["path"])},
                "region": region,
            }
        }
        results.append(
            {
                "ruleId": row["rule"],
                "level": row["level"],
                "message": {"text": row["problem"]},
                "locations": [location],
            }
        )
    rules = []
    for name, about in RULES.items():
        rules.append({"id": name, "shortDescription": {"text": about}})
    driver = {"name": "ragdocs", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False)


def github(answer: Mapping[str, Any]) -> str:
    """Write problems as commands of a GitHub workflow, which shows them beside the lines."""
    lines = []
    for row in _rows(answer):
        level = "notice" if row["level"] == "note" else "warning"
        fields = f"file={_property(_relative(row['path']))},line={row['line'] or 1}"
        title = _property(f"ragdocs {row['rule']}")
        lines.append(f"::{level} {fields},title={title}::{_message(row['problem'])}")
    return "\n".join(lines)


def _rows(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the problems, and what would be repaired."""
    rows = list(answer["result"])
    if not answer.get("is_repaired"):
        rows += answer.get("repairs", ())
    return rows


def _relative(path: str) -> str:
    """Return a path as seen from the folder in which the command runs, as those programs want."""
    if not Path(path).is_absolute():
        return path
    relative = os.path.relpath(path)
    if relative.startswith(".."):
        return Path(path).as_uri()
    return Path(relative).as_posix()


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
