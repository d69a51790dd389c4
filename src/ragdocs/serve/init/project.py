"""The `ragdocs init` command: it gives a project its configuration and its memory directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ragdocs import config as configuration
from ragdocs.config import KEYS, Config
from ragdocs.keys import FILE_NAME, toml
from ragdocs.lanes import DOCS, MEMORY
from ragdocs.project import folders, layout
from ragdocs.serve.init import survey
from ragdocs.serve.init.proposal import Proposal, files_in_words, in_force, propose, rules_of
from ragdocs.serve.install import command
from ragdocs.serve.outside import count_outside
from ragdocs.stores.files.globs import Rules
from ragdocs.system import files
from ragdocs.text import jsonc

# The two sections a newcomer changes; the defaults of all others are meant to stay.
_SECTIONS = ("docs", "memory")
_TITLE = "# Settings of ragdocs for this project; `ragdocs check-config` shows what is in force."


def look(directory: Path, environ: Mapping[str, str] | None = None) -> Proposal:
    """Return what there is to index in a directory, if it may be a project."""
    root = folders.checked_root(folders.settled(directory), environ)
    return propose(root)


def has_configuration(proposal: Proposal) -> bool:
    """Tell whether there is a file already, which is never overwritten."""
    return os.path.lexists(proposal.root / FILE_NAME)


def init(
    directory: Path,
    environ: Mapping[str, str] | None = None,
    proposal: Proposal | None = None,
) -> list[str]:
    """Prepare a directory as a project, change nothing that exists, and say what was done."""
    proposal = proposal or look(directory, environ)
    root = proposal.root
    file = root / FILE_NAME
    lines = [_write_new(file, template(proposal))]
    config = configuration.load(root, environ=environ, project=root)
    lines += config.problems
    lines += missing_globs(proposal, config)
    if config.memory.enabled:
        ignore_file = layout.index_root(config, MEMORY, environ) / ".gitignore"
        # The index is a cache of this machine, which git should not see.
        lines.append(_write_new(ignore_file, "*\n"))
    else:
        lines.append(_how_to_switch_on(config, file))
    lines += [
        "Next: `ragdocs install` writes this into the settings of your MCP client.",
        "Or paste it there and restart the client:",
    ]
    return [*lines, client_configuration(root)]


def preview(proposal: Proposal, environ: Mapping[str, str] | None = None) -> list[str]:
    """Say what `init` would write, and write nothing."""
    file = proposal.root / FILE_NAME
    if has_configuration(proposal):
        config = configuration.load(proposal.root, environ=environ, project=proposal.root)
        return [f"{file} exists and would be kept", *missing_globs(proposal, config)]
    return [f"{file} would be:", "", template(proposal).rstrip("\n")]


def missing_globs(proposal: Proposal, config: Config) -> list[str]:
    """Say which globs would add the documents that the configuration does not choose."""
    globs = layout.docs_globs(config)
    lane = replace(DOCS, include=globs.include, exclude=globs.exclude)
    outside = count_outside(proposal.root, lane, proposal.listing)
    if not outside.originals:
        return []
    rules = Rules(lane)
    unchosen = [path for path in proposal.paths if not rules.lists(path)]
    additions = []
    for glob in in_force(proposal.include):
        if any(map(rules_of([glob]).lists, unchosen)):
            additions.append(glob)
    files = files_in_words(outside.originals)
    lie = "lie"
    if outside.originals == 1:
        lie = "lies"
    notes = [f"{files} of documentation {lie} outside the configured globs"]
    if additions:
        origin = config.origin("docs.include")
        named = f"to search them, add to docs.include ({origin})"
        notes.append("\n".join([f"{named}:", *map(_list_entry, additions)]))
    return notes


def _list_entry(glob: str) -> str:
    return f"  {toml(glob)},"


def _how_to_switch_on(config: Config, file: Path) -> str:
    for problem in config.problems:
        # The file belongs to another program.
        if problem.startswith(str(file)):
            return (
                "Memory is off; to turn it on, give the server "
                "RAGDOCS_MEMORY_ENABLED=true in its environment"
            )
    return f"Memory is off; to turn it on, write into {file}:\n[memory]\nenabled = true"


def client_configuration(root: Path) -> str:
    """Return the configuration with which an MCP client starts the server.

    It names everything, since clients pass on little.
    """
    program, *arguments = command.server(command.interpreter(), str(root))
    server = {"command": program, "args": arguments}
    return jsonc.dumps({"mcpServers": {"ragdocs": server}})


def _write_new(path: Path, text: str) -> str:
    files.make_directories(path.parent)
    if files.create(path, text.encode()):
        return f"Wrote {path}"
    return f"Kept {path}"


def template(proposal: Proposal) -> str:
    """Return the config.toml that chooses the documents as proposed and turns memory on."""
    chosen = {
        "docs.include": survey.list_setting("include", proposal.include),
        "docs.exclude": survey.list_setting("exclude", proposal.exclude),
        "memory.enabled": ["enabled = true"],
    }
    lines = [_TITLE, ""]
    for section in _SECTIONS:
        lines.append(f"[{section}]")
        for key in KEYS.values():
            # A project's file may only repeat the default of such a key: that would be a trap.
            may_choose = not key.project_choices and not key.personal
            if key.section == section and may_choose:
                default = [f"# {key.name} = {toml(key.default)}"]
                lines += [f"# {key.about}", *(chosen.get(key.full_name) or default)]
        lines.append("")
    return "\n".join(lines)
