"""The `ragdocs` command: a connection to the shared server takes the short way, everything else the long one."""

import sys

from ragdocs.serve import shim


def main() -> int:
    """Run the command that the arguments name."""
    if sys.argv[1:2] == ["mcp"] and shim.run(sys.argv[2:]):
        return 0
    from ragdocs.serve.cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
