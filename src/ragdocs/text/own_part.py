"""The part of a text that ragdocs wrote into a file of the user, between two marks."""

from __future__ import annotations

import re

OWN_PART = re.compile(
    r"<!-- ragdocs: begin\b[^\n]*-->.*?<!-- ragdocs: end -->(?:\r?\n)?", re.DOTALL
)
