"""Answers are data: what a reader cannot see is shown or taken out where an answer leaves.

And files stay as they are.

The rule. Line feeds and tabs are text. Other control characters become their pictures (␛), line
separators ␤. Marks that only change how text is laid out are kept one at a time where a script or
an emoji needs them: joiners and spaces without width after a letter of a script that uses them,
direction marks near right-to-left letters, a variation selector after the sign or ideograph it
selects for, a joiner between two parts of an emoji, the tags of the three flags that have them.
Elsewhere a single such mark is dropped, because words copied from web pages are full of them.
Everything else that is invisible, and any run of such marks, could carry a message of its own: one
� stands for all of it. No text grows by this.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

# Control characters but line feed and tab, marks of layout and direction, fillers, selectors, tags,
# half characters. A carriage return is one where it is not the first half of a line's end.
_MARKS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff"
)
_HIDDEN = re.compile(f"(?:[{_MARKS}]|\r(?!\n))+")
# Most texts hold none of these; asking that first takes a third of the time.
_SUSPECT = re.compile(f"[\r{_MARKS}]")
_CONTROLS = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]+")
_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {
    0x7F: 0x2421,
    0x85: 0x2424,
    0x2028: 0x2424,
    0x2029: 0x2424,
}
# What ordinary text holds by accident.
_ACCIDENTS = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0100-\U000e01ef]"
)
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Scripts between Hebrew and the extensions of Vedic, and their like: their letters join, stack or
# wrap by such marks.
_JOINING = re.compile("[\u0590-\u1cff\ua800-\uabff\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff]")
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_DIRECTIONS = frozenset("\u200e\u200f\u061c")
_JOINTS = frozenset({"\u200d", "\ufe0f\u200d"})
_WIDTHLESS = frozenset("\u200b\u200c\u200d\u180b\u180c\u180d\u180e\u180f")
_FLAGS = {
    "".join(chr(0xE0000 + ord(letter)) for letter in name) + "\U000e007f"
    for name in ("gbeng", "gbsct", "gbwls")
}
# A direction mark stands behind a sign at the end of what it holds together.
_NEAR = 8
_BLACK_FLAG = "\U0001f3f4"
_INFORMATION = "\u2139"  # an emoji, though Unicode calls it a letter


def visible(text: str) -> str:
    """Return a text with nothing hidden in it."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _HIDDEN.sub(_shown, text) if _SUSPECT.search(text) else text


def framed(value: Any) -> Any:
    """Return an answer of any structure with nothing hidden in its texts and names."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {
            visible(key) if isinstance(key, str) else key: framed(item)
            for key, item in value.items()
        }
    return [framed(item) for item in value] if isinstance(value, list | tuple) else value


def line(text: str) -> str:
    """Return a text on one line, so that a name cannot pose as a line of the answer around it."""
    return text.replace("\r\n", "\u2424").replace("\n", "\u2424") if "\n" in text else text


def _shown(match: re.Match[str]) -> str:
    run, text = match[0], match.string
    before, after = (
        text[max(0, match.start() - _NEAR) : match.start()],
        text[match.end() : match.end() + _NEAR],
    )
    if before and _is_needed(run, before, after):
        return run
    if _CONTROLS.fullmatch(run):
        return run.translate(_PICTURES)
    return "" if _ACCIDENTS.fullmatch(run) else "\ufffd"


def _is_needed(run: str, before: str, after: str) -> bool:
    """Tell whether writing needs this mark between these neighbours."""
    last, sign = before[-1], unicodedata.category(before[-1])
    if last == _BLACK_FLAG and run in _FLAGS:
        return True
    # Emoji younger than this Python are not assigned (Cn).
    if run in _JOINTS and sign[0] in "SC" and after and unicodedata.category(after[0])[0] in "SC":
        return True
    if _SELECTORS.fullmatch(run):
        is_sign = sign[0] in "SNP" or sign == "Cn" or last == _INFORMATION
        return bool(_IDEOGRAPH.match(last)) or (
            run <= "\uffff" and (is_sign or bool(_JOINING.match(last)))
        )
    if run in _DIRECTIONS:
        return any(unicodedata.bidirectional(letter) in {"R", "AL"} for letter in before + after)
    return run in _WIDTHLESS and sign[0] in "LM" and bool(_JOINING.match(last))
