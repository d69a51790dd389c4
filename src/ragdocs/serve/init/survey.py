"""A proposal as text: a table of what was found, and the part of a config.toml that it becomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ragdocs.keys import toml
from ragdocs.serve.init.proposal import (
    OFFERED,
    SHORT_NAMES,
    Glob,
    Group,
    Proposal,
    files_in_words,
    in_force,
)
from ragdocs.text.visible import line

# Widths of the columns; all of them stay within 80 characters.
FOLDER_WIDTH = 24
VERDICT_WIDTH = 26
MOST_ROWS = 40
MINUTE = 60
HOUR = 3600
KILOBYTE = 1000


class Row(NamedTuple):
    """One line of the table."""

    folder: str
    files: int
    format: str
    bytes: int
    verdict: str


def survey(proposal: Proposal) -> str:
    """Write what was found, what would be indexed, and how long that takes."""
    source = "by walking its folders"
    if proposal.listing.from_git:
        source = "from git"
    counted = files_in_words(proposal.listing.files)
    lines = [f"Documentation in {line(str(proposal.root))}", f"({source}, {counted} looked at)", ""]
    if not proposal.groups:
        lines.append("No documentation was found; what you add later is searched.")
        return "\n".join(lines)
    lines += _table(_rows(proposal.groups))
    if proposal.listing.gap:
        lines.append(f"Note: {proposal.listing.gap}")
    lines += ["", *estimate(proposal)]
    return "\n".join(lines)


def estimate(proposal: Proposal) -> list[str]:
    """Say how much would be indexed and how long that takes."""
    if not proposal.paths:
        return ["Nothing of it can be indexed."]
    amount = f"{files_in_words(len(proposal.paths))}, {size(proposal.bytes)}"
    passages = f"about {proposal.passages:,} passages"
    if proposal.passages == 1:
        passages = "one passage"
    by_words = duration(proposal.seconds_by_words)
    by_meaning = duration(proposal.seconds_by_meaning)
    return [
        f"To index: {amount}, {passages}.",
        f"Search by words works after {by_words} on one core,",
        f"search by meaning after {by_meaning}.",
    ]


def _rows(groups: Iterable[Group]) -> list[Row]:
    """Return a row for each group; the translations of one folder share a row."""
    rows = []
    families: defaultdict[tuple[str, str], list[Group]] = defaultdict(list)
    for group in groups:
        if group.verdict in OFFERED:
            families[group.verdict, group.folder.rpartition("/")[0]].append(group)
        else:
            rows.append(
                Row(group.folder, len(group.paths), group.format, group.bytes, group.verdict)
            )
    for (verdict, parent), members in families.items():
        rows.append(_family(verdict, parent, members))
    return rows


def _family(verdict: str, parent: str, members: Sequence[Group]) -> Row:
    labels = [member.label for member in members]
    folder = members[0].folder
    if len(members) > 1:
        verdict += "s"
        folder = f"{parent}/*".removeprefix("/")
    files = sum(len(member.paths) for member in members)
    total = sum(member.bytes for member in members)
    verdict = f"{verdict}: {_within(labels, VERDICT_WIDTH - len(verdict) - 2)}"
    return Row(folder, files, members[0].format, total, verdict)


def _within(labels: Sequence[str], width: int) -> str:
    """Return as many labels as fit, and how many more there are."""
    listed = ""
    for number, label in enumerate(labels):
        more = len(labels) - number
        longer = f"{listed} {label}".strip()
        if len(longer) + len(f" +{more}") > width:
            return f"{listed} +{more}".strip()
        listed = longer
    return listed


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [f"  {'folder':<{FOLDER_WIDTH}} {'files':>6}  {'format':<11} {'size':>7}  verdict"]
    for row in rows[:MOST_ROWS]:
        folder = _shortened(line(row.folder), FOLDER_WIDTH)
        kind = SHORT_NAMES.get(row.format, row.format)
        lines.append(
            f"  {folder:<{FOLDER_WIDTH}} {row.files:>6}  {kind:<11} {size(row.bytes):>7}"
            f"  {row.verdict}"
        )
    if len(rows) > MOST_ROWS:
        lines.append(f"  and {len(rows) - MOST_ROWS} more rows; --json lists them all")
    return lines


def _shortened(name: str, width: int) -> str:
    """Cut the middle out of a name: its beginning and its end tell it from others."""
    if len(name) <= width:
        return name
    half = (width - 1) // 2
    return f"{name[: width - 1 - half]}…{name[-half:]}"


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    if count < KILOBYTE:
        return f"{count} B"
    if count < KILOBYTE**2:
        return f"{count / KILOBYTE:.0f} kB"
    return f"{count / KILOBYTE**2:.1f} MB"


def duration(seconds: float) -> str:
    """Return a duration as somebody would guess it."""
    if seconds < 1:
        return "a second"
    if seconds < MINUTE:
        return _about(seconds, "second")
    if seconds < HOUR:
        return _about(seconds / MINUTE, "minute")
    return _about(seconds / HOUR, "hour")


def _about(number: float, unit: str) -> str:
    rounded = max(1, round(number))
    if rounded == 1:
        return f"about 1 {unit}"
    return f"about {rounded} {unit}s"


# --- as configuration ---


def list_setting(name: str, globs: Sequence[Glob]) -> list[str]:
    """Return the lines of a list in a config.toml, each glob below its reason.

    A list without a glob in force is not written: the default does.
    """
    if not in_force(globs):
        return []
    lines = [f"{name} = ["]
    for glob in globs:
        entry = f"{toml(glob.glob)},"
        if not glob.active:
            entry = f"# {entry}"
        lines += [f"    # {line(glob.remark)}", f"    {entry}"]
    return [*lines, "]"]
