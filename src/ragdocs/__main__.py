"""The `ragdocs` command.

A connection to the shared server takes the short way, everything else the long one.

Everything is imported in functions, after the working directory is off the path: it may be a
stranger's repository.
"""

import os
import sys

from ragdocs import import_path

# How soon a client is missed that died while somebody else still held its end of our input open.
POLL_SECONDS = 0.5


def main() -> int:
    """Run the command that the arguments name."""
    import_path.leave_working_directory_out()
    if sys.argv[1:2] == ["mcp"]:
        import threading

        from ragdocs.serve.shared import shim

        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        if shim.run(sys.argv[2:]):
            return 0
    from ragdocs.serve.cli.app import main as run

    return run()


def _end_with(parent: int) -> None:
    import signal
    import time

    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
