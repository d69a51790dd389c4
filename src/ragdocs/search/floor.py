"""The floor of scores as they are shown, and how notes about it begin.

By itself, because what is listed without a question is measured by nothing.
"""

from __future__ import annotations

# Below this, unrelated questions score as much: `search/calibration.py` puts it there.
FLOOR = 0.5
# The beginning of the note of an answer without hits.
NOTHING_RELEVANT = "nothing relevant"
# The beginning of the note of an answer whose hits may all be about something else.
WEAK_MATCHES = "weak matches"
