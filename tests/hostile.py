"""Queries that no search may choke on."""

from __future__ import annotations

import string
import sys
import unicodedata
from collections import defaultdict

# What parsers of queries take for operators, wildcards, fields, ranges and paths.
ODD = [
    "*",
    "?",
    "a*",
    "*a",
    "**",
    "***",
    "a?b*",
    "[a-z]*",
    '"',
    '""',
    '"unclosed',
    "'",
    "''",
    "\\",
    "(",
    ")",
    "((((((((",
    "NOT",
    "body:x",
    "title:*",
    "row:1",
    "a^9999999",
    "a~9",
    "{a",
    "<>",
    "&&",
    "||",
    "!",
    "+-",
    "../../etc/passwd",
    "%s%n",
    "---",
    "_",
    "__",
]
PHRASES = ("a AND", "a OR OR b", "AND OR NOT", "row:[1 TO 5]", '"a b"~99999', "[a TO", "{a TO b}")
OTHERS = ("'; DROP TABLE x;--", "the a of", "", " ", " \n\t\r", "\0", "\ud800", "a\udfffb")
SHAPES = (
    *("{0}", "needle{0}", "{0}needle", "needle {0}{0} word"),
    *("{0}(needle {0}", "needle" + "{0}" * 50),
)
UNITS = (
    *("a", "needle ", "a.", '"', "[[a", "検索", "e\u0301", "(", "* ", "NOT AND OR "),
    *("the of to ", "aA", "\0", "🙂"),
)


def queries() -> dict[str, str]:
    """Spell queries of every operator and Unicode category, and megabytes of this and that."""
    named = {f"odd {text!r}": text for text in (*ODD, *PHRASES, *OTHERS)}
    categories: dict[str, str] = defaultdict(str)
    for code in range(sys.maxunicode + 1):
        category = f"category {unicodedata.category(chr(code))}"
        if len(categories[category]) < 300:
            categories[category] += chr(code)
    named |= categories
    for sign in string.punctuation:
        for number, shape in enumerate(SHAPES):
            named[f"{sign} in shape {number}"] = shape.format(sign)
    for unit in UNITS:
        named[f"a megabyte of {unit!r}"] = unit * (1_000_000 // len(unit))
    named["a megabyte of accents"] = "e" + "\u0301" * 1_000_000
    named["ten thousand words"] = " ".join(f"word{n}" for n in range(10_000))
    return named
