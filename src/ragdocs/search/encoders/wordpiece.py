"""Texts as the numbers of word pieces that the built-in model was trained on.

The package `tokenizers` does the same and brings 29 MB along, most of it for downloading models.
Both agree on characters whose category is the same in Unicode 3.2 and in this Python; tests compare
those. A few hundred rare characters, most of them newer, are classified differently.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

UNKNOWN = "[UNK]"
FIRST = "[CLS]"
LAST = "[SEP]"
# In a text they mean what they mean to the model.
SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")
INSIDE_A_WORD = "##"
LONGEST_WORD = 100
# Words whose pieces are remembered; texts use few words often.
MOST_REMEMBERED = 20_000
# Control, format, private and surrogate; characters that are not assigned are left alone.
REMOVED = frozenset({"Cc", "Cf", "Co", "Cs"})
# Each of these characters is a word to the model.
IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B820),
    range(0x2B920, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


class _Characters(dict[int, str]):
    """A table for `str.translate` that is filled with the characters that occur."""

    def __init__(self, replace: Callable[[str], str]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str:
        replacement = self._replace(chr(code))
        self[code] = replacement
        return replacement


def _clean(character: str) -> str:
    """Return a character without what is invisible, and an ideograph as a word."""
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in REMOVED:
        return ""
    if character.isspace():
        return " "
    code = ord(character)
    for ideographs in IDEOGRAPHS:
        if code in ideographs:
            return f" {character} "
    return character


def _fold(character: str) -> str:
    """Return a character of a decomposed text in lower case; punctuation is a word."""
    category = unicodedata.category(character)
    if category == "Mn":
        return ""
    is_ascii_symbol = character.isascii() and character.isprintable() and not character.isalnum()
    if category.startswith("P") or is_ascii_symbol:
        return f" {character} "
    return character.lower()


class WordPiece:
    """The vocabulary of the model, and how texts are cut into its pieces."""

    def __init__(self, vocabulary: Iterable[str], most: int) -> None:
        """Take the pieces in their order; a text has at most so many, the first and last too."""
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self._most = most - 2
        self._longest_piece = max(map(len, self._numbers))
        self._clean = _Characters(_clean)
        self._fold = _Characters(_fold)
        self._remembered: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a text, cut to the length that the model reads."""
        numbers: list[int] = []
        for part in SPECIAL.split(text):
            if SPECIAL.fullmatch(part):
                numbers.append(self._numbers[part])
            else:
                self._add_words(part, numbers)
            if len(numbers) >= self._most:
                break
        return [self._numbers[FIRST], *numbers[: self._most], self._numbers[LAST]]

    def _add_words(self, text: str, numbers: list[int]) -> None:
        decomposed = unicodedata.normalize("NFD", text.translate(self._clean))
        for word in decomposed.translate(self._fold).split():
            pieces = self._remembered.get(word)
            if pieces is None:
                pieces = self._pieces(word)
                if len(self._remembered) >= MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[word] = pieces
            numbers += pieces
            if len(numbers) >= self._most:
                return

    def _pieces(self, word: str) -> list[int]:
        """Cut a word into the longest pieces there are, from its beginning on."""
        unknown = [self._numbers[UNKNOWN]]
        if len(word) > LONGEST_WORD:
            return unknown
        pieces: list[int] = []
        rest = word
        prefix = ""
        while rest:
            length = min(len(rest), self._longest_piece)
            while length and prefix + rest[:length] not in self._numbers:
                length -= 1
            if not length:
                return unknown
            pieces.append(self._numbers[prefix + rest[:length]])
            rest = rest[length:]
            prefix = INSIDE_A_WORD
        return pieces
