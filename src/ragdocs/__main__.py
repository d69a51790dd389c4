"""The `ragdocs` command.

`ragdocs mcp`, `ragdocs --help` and commands that the shared server answers take few imports; the
others import the command line. All imports are in functions, after the working directory is off the
path: it may be a stranger's repository.
"""

import gc
import os
import sys

from ragdocs import import_path

# Objects that are made between two looks for garbage, where Python's own number is 700.
SELDOM = 50_000


def main() -> int:
    """Run the command that the arguments name."""
    import_path.leave_working_directory_out()
    if sys.argv[1:2] == ["mcp"]:
        from ragdocs.serve.shared import shim
        from ragdocs.system import processes

        processes.end_with_parent()
        if shim.run(sys.argv[2:]) or _serve_alone(sys.argv[2:]):
            return 0
    else:
        from ragdocs.serve.cli import listed
        from ragdocs.system import console

        console.print_anything()
        code = listed.show(sys.argv[1:])
        if code is not None:
            return code
        from ragdocs.serve.shared import client

        code = client.run(sys.argv[1:])
        if code is not None:
            return code
        # What a command imports stays: looking for garbage among it takes a tenth of its time.
        gc.set_threshold(SELDOM)
        # Threads of numpy's algebra cost a command more to start than they ever save it.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from ragdocs.serve.cli.app import main as run

    return run()


def _serve_alone(arguments: list[str]) -> bool:
    """Serve a client without the command line, which costs a tenth of the start.

    Whatever a person may have typed is left to the command line: it says more.
    """
    if sys.stdin.isatty() or "--help" in arguments:
        return False
    from ragdocs.serve.source import server_source

    source = server_source(arguments)
    if source is None:
        return False
    from ragdocs.serve.mcp.stdio import serve

    serve(source)
    return True


if __name__ == "__main__":
    sys.exit(main())
