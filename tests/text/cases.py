"""Tables of cases out of `tests/text/data`, and secrets that are made at run time.

So that no secret stands in the repository.
"""

from __future__ import annotations

import random
import re
import string
import tomllib
from pathlib import Path
from typing import Any

ALPHABETS = {
    "any": string.ascii_letters + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "upper": string.ascii_uppercase + string.digits,
    "digit": string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "letter": string.ascii_lowercase[:12],
    "base64": string.ascii_letters + string.digits + "+/",
}
GAP = re.compile(rf"<({'|'.join(ALPHABETS)}) (\d+)>")


def table(name: str) -> dict[str, Any]:
    """Read a table of cases."""
    path = Path(__file__).parent / "data" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def noise(length: int, alphabet: str = "any", seed: int = 7) -> str:
    """Make a run that mixes letters and digits like a token does."""
    chosen = random.Random(seed)
    return "".join(chosen.choice(ALPHABETS[alphabet]) for _ in range(length))


def filled(text: str) -> str:
    """Replace each gap such as `<any 24>` by random characters, and join what `<>` parts."""
    return GAP.sub(lambda gap: noise(int(gap[2]), gap[1]), text).replace("<>", "")
