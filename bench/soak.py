"""An hour of work in some minutes: mixed calls against servers while files change underneath.

Ends with code 1 when a bar is missed: no error that is not the client's fault, nothing lost, memory
flat, index true.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.faults import conclude, open_yard
from tests.faults import soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000, help="how many calls in all")
    parser.add_argument("--servers", type=int, default=1, help="servers on the one project")
    parser.add_argument("--model", default="hash", help="the embedding model of the servers")
    parser.add_argument("--work", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")
    options = parser.parse_args()
    with open_yard(options.work) as yard:
        rows = list(soak.soak(yard, options.servers, options.calls, options.model))
    for row in rows:
        print(*row.problems, sep="\n", file=sys.stderr)
    return conclude(rows, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
