"""How the path of a heading is written."""

from __future__ import annotations

# Between the headings of a path.
STEP = " \u203a "
# Between the title of a document and a path in it: no path begins with a title that is not a
# heading.
TITLE_MARK = " · "
