"""What a client is told before its first call: how to work here, or why that is not possible."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ragdocs.config import Config
from ragdocs.errors import RagdocsError
from ragdocs.keys import toml
from ragdocs.serve.mcp.tools import closed_lane, working
from ragdocs.serve.surface import Verb
from ragdocs.serve.surface.shapes import MARK, QUOTED

# What the toolsets are about, the most important first.
SUBJECTS = {
    "recall": "Work",
    "docs": "Documentation",
    "memory": "Memories",
    "edit": "Earlier texts",
    "entries": "Entries",
    "repo": "Repository",
    "journal": "Journal",
    "commits": "Commits",
    "quality": "Quality",
}
DOCS_ONLY = "Look here before you work: this server holds the project's documentation."
WITH_MEMORY = """\
Look here before you work, and write down what you decide: this server holds the project's \
documentation and memories."""
SWITCH_ON = (
    "write enabled = true under [memory] in the project's config.toml; if it has none, run "
    "`ragdocs init` in its folder"
)
CONFIG_FILE = "the project's config.toml"
# How a lane is turned on, where it takes more than its own section.
SWITCHES = {
    "memory": SWITCH_ON,
    "commits": f"write commits = true under [docs] in {CONFIG_FILE}",
}
# Toolsets that a lane brings along: beside which other toolset, if any.
LANE_TOOLSETS = {"journal": "", "commits": "docs"}
WITHOUT_MEMORY = f"""\
- Memory is off in this project, so no memory can be searched or written. To turn it on, \
{SWITCH_ON}; the tools of memory then appear here without a restart."""
ENDING = f"""\
Texts in answers are {QUOTED}; they may be out of date. Structured answers say so in `{MARK}`; in \
text answers they are after | or between two lines with the same mark."""


def for_project(config: Config, warning: str = "") -> str:
    """Return the instructions for what a configuration offers: one line for each toolset."""
    opening = WITH_MEMORY
    lines = _toolset_lines(working(config))
    if not config.memory.enabled:
        opening = DOCS_ONLY
        lines.append(WITHOUT_MEMORY)
    parts = [warning, opening, "\n".join(lines), ENDING]
    return "\n\n".join(filter(None, parts))


def _toolset_lines(verbs: Sequence[Verb]) -> list[str]:
    lines = []
    for toolset, subject in SUBJECTS.items():
        uses = []
        for verb in verbs:
            if verb.toolset == toolset and verb.situation:
                uses.append(f"{verb.name} for {verb.situation}")
        if uses:
            lines.append(f"- {subject}: {'; '.join(uses)}.")
    return lines


def for_failure(failure: RagdocsError, folder: Path) -> str:
    """Say why a project cannot be served and what a person can do about it."""
    command = f"ragdocs check-config --project {shlex.quote(str(folder))}"
    return (
        f"ragdocs cannot serve this project: {str(failure).rstrip('.')}. "
        f"`{command}` shows whether it is mended. A mended file is read at once and the tools "
        "then appear here; a changed environment or changed arguments need a restart of the client"
    )


def for_old_settings(failure: RagdocsError) -> str:
    """Say that the configuration was broken while the server ran."""
    return f"The settings from before are in force, because {failure}"


def not_offered(verb: Verb, config: Config) -> str:
    """Say that a tool exists, but not in this configuration, and how that is changed."""
    if not verb.tool:
        return f"{verb.name} is not a tool. On the command line it is `ragdocs {verb.command}`"
    reasons = []
    switches = []
    lane = closed_lane(verb, config)
    if lane:
        reasons.append(f"the {lane} lane is switched off for this project")
        switch = f"write enabled = true under [{lane}] in {CONFIG_FILE}"
        switches.append(SWITCHES.get(lane, switch))
    toolset = LANE_TOOLSETS.get(verb.toolset, verb.toolset)
    if toolset and toolset not in config.server.toolsets:
        reasons.append(f"the toolset {toolset} is off")
        names = toml([*config.server.toolsets, toolset])
        switches.append(f"write toolsets = {names} under [server] in {CONFIG_FILE}")
    return (
        f"{verb.name} is not offered, because {' and '.join(reasons)}. To turn it on, "
        f"{' and '.join(switches)}; the tool then appears without a restart"
    )
