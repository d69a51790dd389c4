"""A user's own patterns: compiled if they are bounded and leave ordinary text alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ragdocs.errors import ConfigError

# The most steps that a pattern may take at one offset of a text.
_MOST_STEPS = 1_000
_LONGEST_PATTERN = 500
# More repetitions of a choice make no difference: the steps are too many by then.
_MOST_CHOICES = 64
_UNBOUNDED = float("inf")
# What people and agents write every day. A pattern that takes more than this share of it would take
# everything.
_ORDINARY_TEXT = """\
---
type: plan
status: active
tags: [auth, sessions]
created_at: 2026-02-04T14:30:52Z
---

# Sessions instead of tokens

We chose sessions over JWT because they can be revoked at once; \
see [[src/auth/login.py]] and docs/auth-plan.md.
The old code kept 3 retries and a timeout of 250 ms, which was too short on slow networks:

- `refresh_token(user_id, 3600)` returned None after the 2nd call
- commit 3f2a9b8c7d6e changed MAX_RETRIES = 5 in config.toml

Ask Ada <ada@example.org> before 2026-05-01. \
Next: write the migration, then remove `legacy_auth.py` (issue #4711).
Die Größe der Tabelle ist noch offen. 次の手順を確認する。
"""
_LARGEST_SHARE = 0.25

_SINGLE_CHARACTERS = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY", "AT", "CATEGORY"})
_GROUPS = frozenset({"SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"})
_REPETITIONS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})

# The most steps that a pattern may take from one offset, and the ways in which it may match there.
_Cost = tuple[float, float]


def compiled(pattern: str, name: str) -> re.Pattern[str]:
    """Compile a pattern; refuse one that is wrong, matches too much or could be slow."""
    if len(pattern) > _LONGEST_PATTERN:
        raise ConfigError(f"{name} is too long", f"Use at most {_LONGEST_PATTERN} characters.")
    try:
        expression = re.compile(pattern)
        tree = import_module("re._parser").parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        message = f"{name} is not a regular expression: {error}"
        raise ConfigError(message, "Check it with Python's re.compile.") from None
    if expression.search(""):
        message = f"{name} matches the empty text"
        raise ConfigError(message, "Make it demand at least one character.")
    steps, _ = _cost_of_sequence(list(tree), is_last=True)
    if steps > _MOST_STEPS:
        hint = "Bound its repetitions, as in {1,40}; only the last may be open."
        raise ConfigError(f"{name} could take too long on some text", hint)
    share = _share_of_ordinary_text(expression)
    if share > _LARGEST_SHARE:
        hint = "Make it match the secret alone, as in ACME-[0-9]{6}."
        raise ConfigError(f"{name} matches {share:.0%} of an ordinary text", hint)
    return expression


def _share_of_ordinary_text(expression: re.Pattern[str]) -> float:
    length = 0
    for match in expression.finditer(_ORDINARY_TEXT):
        length += len(match[0])
    return length / len(_ORDINARY_TEXT)


def _cost_of_sequence(items: Sequence[tuple[Any, Any]], *, is_last: bool) -> _Cost:
    """Return the cost of the parts of a pattern one after the other."""
    steps = 1.0
    ways = 1.0
    last_index = len(items) - 1
    for index, (operator, argument) in enumerate(items):
        ends_pattern = is_last and index == last_index
        cost, choices = _cost(str(operator), argument, is_last=ends_pattern)
        steps += ways * cost
        ways *= choices
    return steps, ways


def _cost(operator: str, argument: Any, *, is_last: bool) -> _Cost:
    """Return the cost of one part of a pattern."""
    if operator in _SINGLE_CHARACTERS:
        return 1, 1
    if operator in _GROUPS:
        return _cost_of_group(operator, argument, is_last=is_last)
    if operator in _REPETITIONS:
        return _cost_of_repetition(operator, argument, is_last=is_last)
    if operator != "BRANCH":
        # A reference back to a group, or a condition: no bound is known.
        return _UNBOUNDED, 1
    steps = 0.0
    ways = 0.0
    for branch in argument[1]:
        branch_steps, branch_ways = _cost_of_sequence(list(branch), is_last=is_last)
        steps += branch_steps
        ways += branch_ways
    return steps, ways


def _cost_of_group(operator: str, argument: Any, *, is_last: bool) -> _Cost:
    """Return the cost of a group; only a plain one may match in more than one way."""
    if operator == "SUBPATTERN":
        return _cost_of_sequence(list(argument[-1]), is_last=is_last)
    inside = argument[-1]
    if operator == "ATOMIC_GROUP":
        inside = argument
    steps, _ = _cost_of_sequence(list(inside), is_last=False)
    return steps, 1


def _cost_of_repetition(operator: str, argument: Any, *, is_last: bool) -> _Cost:
    """Return the cost of a repetition; only one at the very end, which cannot fail, may be open."""
    least, most, inside = argument
    steps, ways = _cost_of_sequence(list(inside), is_last=False)
    times = most
    if is_last:
        times = least + 1
    times = min(times, _MOST_STEPS)
    paths = ways ** min(times, _MOST_CHOICES)
    cost = times * steps * paths
    if is_last or operator == "POSSESSIVE_REPEAT":
        return cost, 1
    return cost, (times - least + 1) * paths
