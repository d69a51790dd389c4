"""All declared verbs, and which of them a configuration offers to agents."""

from __future__ import annotations

from collections.abc import Iterator

from ragdocs.config import Config
from ragdocs.serve.surface import (
    VERBS,
    Verb,
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

# The order in which agents and the documentation see them.
NOUNS = (
    docs,
    finding,
    upkeep,
    memories,
    listing,
    texts,
    recall,
    entries,
    context,
    journal,
    quality,
    living,
    care,
)


def every() -> Iterator[Verb]:
    """Return all verbs, noun by noun, in the order of their declarations."""
    for noun in NOUNS:
        for verb in VERBS.values():
            if verb.run.__module__ == noun.__name__:
                yield verb


def toolsets(config: Config) -> tuple[str, ...]:
    """Return the groups of tools that are on: those that are named, and those that a lane brings
    along.
    """
    names: list[str] = []
    for name in config.server.toolsets:
        names.append(name)
        if name == "docs" and config.docs.commits:
            names.append("commits")
    if config.journal.enabled:
        names.append("journal")
    return tuple(dict.fromkeys(names))


def offered(config: Config) -> list[Verb]:
    """Return the verbs that an agent has as tools, by toolset as they are configured."""
    verbs: dict[str, Verb] = {}
    for toolset in toolsets(config):
        for verb in every():
            if verb.tool and toolset in (verb.toolset, *verb.also_in):
                verbs.setdefault(verb.name, verb)
    return list(verbs.values())
