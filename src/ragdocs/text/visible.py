"""Answers are data: what a reader cannot see is shown or taken out where an answer leaves.

Files stay as they are.

Line feeds and tabs are text. Other control characters become their pictures (␛), line separators ␤.
Marks that only change how text is laid out are kept one at a time where a script or an emoji needs
them: joiners and spaces without width after a letter of a script that uses them, direction marks
near right-to-left letters, a variation selector after the sign or ideograph it selects for, a
joiner between two parts of an emoji, the tags of the three flags that have them. Elsewhere a single
such mark is dropped, because words copied from web pages are full of them. Everything else that is
invisible, and any run of such marks, could carry a message of its own: one � stands for all of it.
No text grows by this.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ragdocs.system.patterns import later

# Control characters but line feed and tab, marks of layout and direction, fillers, selectors, tags,
# half characters. A carriage return is one where it is not the first half of a line's end.
_MARKS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff"
)
_HIDDEN = later(f"(?:[{_MARKS}]|\r(?!\n))+")
# Most texts hold none of these; asking that first takes a third of the time.
_SUSPECT = later(f"[\r{_MARKS}]")
_CONTROLS = later("[\x00-\x1f\x7f\x85\u2028\u2029]+")
# Unicode has a picture for each control character below the space.
_PICTURES = dict(enumerate(range(0x2400, 0x2420)))
_PICTURES[0x7F] = 0x2421
_PICTURES |= dict.fromkeys((0x85, 0x2028, 0x2029), 0x2424)
# What ordinary text holds by accident.
_ACCIDENTS = later(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0100-\U000e01ef]"
)
_SELECTORS = later("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Scripts between Hebrew and the extensions of Vedic, and their like: their letters join, stack or
# wrap by such marks.
_JOINING = later("[\u0590-\u1cff\ua800-\uabff\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff]")
_IDEOGRAPH = later("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_DIRECTIONS = frozenset("\u200e\u200f\u061c")
_JOINTS = frozenset({"\u200d", "\ufe0f\u200d"})
_WIDTHLESS = frozenset("\u200b\u200c\u200d\u180b\u180c\u180d\u180e\u180f")
# The flags of England, Scotland and Wales are written with tags, one for each letter of a name.
_FLAGS = {
    "\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # gbeng
    "\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # gbsct
    "\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",  # gbwls
}
# A direction mark stands behind a sign at the end of what it holds together.
_NEAR = 8
_BLACK_FLAG = "\U0001f3f4"
_INFORMATION = "\u2139"  # an emoji, though Unicode calls it a letter


def visible(text: str) -> str:
    """Return a text with nothing hidden in it."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    if not _SUSPECT.search(text):
        return text
    return _HIDDEN.sub(_visible_run, text)


def framed(value: Any) -> Any:
    """Return an answer of any structure with nothing hidden in its texts and names."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list | tuple):
        return [framed(item) for item in value]
    if not isinstance(value, dict):
        return value
    answer = {}
    for key, item in value.items():
        name = visible(key) if isinstance(key, str) else key
        answer[name] = framed(item)
    return answer


def line(text: str) -> str:
    """Return a text on one line, so that a name cannot pose as a line of the answer around it."""
    if "\n" not in text:
        return text
    return text.replace("\r\n", "\u2424").replace("\n", "\u2424")


def _visible_run(match: re.Match[str]) -> str:
    """Return what stands in the answer for a run of marks that nobody sees."""
    run = match[0]
    text = match.string
    before = text[max(0, match.start() - _NEAR) : match.start()]
    after = text[match.end() : match.end() + _NEAR]
    if before and _is_needed(run, before, after):
        return run
    if _CONTROLS.fullmatch(run):
        return run.translate(_PICTURES)
    if _ACCIDENTS.fullmatch(run):
        return ""
    return "\ufffd"


def _is_needed(run: str, before: str, after: str) -> bool:
    """Tell whether writing needs this mark between these neighbours."""
    last = before[-1]
    if last == _BLACK_FLAG and run in _FLAGS:
        return True
    if run in _JOINTS and _may_be_emoji(last) and after and _may_be_emoji(after[0]):
        return True
    if _SELECTORS.fullmatch(run):
        return _has_variants(last, run)
    if run in _DIRECTIONS:
        return any(map(_is_right_to_left, before + after))
    is_letter = unicodedata.category(last)[0] in "LM"
    return run in _WIDTHLESS and is_letter and bool(_JOINING.match(last))


def _may_be_emoji(character: str) -> bool:
    # Emoji younger than this Python are not assigned (Cn).
    return unicodedata.category(character)[0] in "SC"


def _has_variants(character: str, selector: str) -> bool:
    """Tell whether this selector may choose a variant of a character."""
    if _IDEOGRAPH.match(character):
        return True
    if selector > "\uffff":
        return False
    category = unicodedata.category(character)
    is_sign = category[0] in "SNP" or category == "Cn" or character == _INFORMATION
    return is_sign or bool(_JOINING.match(character))


def _is_right_to_left(character: str) -> bool:
    return unicodedata.bidirectional(character) in {"R", "AL"}
