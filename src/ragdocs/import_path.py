"""Where modules are imported from: the installation, never the folder in which a command is run.

That folder may be a stranger's repository, and a file `json.py` in it would be run by any `import
json`. This module imports only what the interpreter has loaded before it looks at any path, which
leaves out even `__future__`.
"""

import os
import sys

# For every interpreter that is started with -m: without it, the working directory comes first on
# the path.
SAFE_PATH = "-P"


def leave_working_directory_out() -> None:
    """Remove entries that depend on the working directory, before anything else is imported."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    started_by_name = spec is not None and spec.name.startswith("ragdocs.")
    if started_by_name and not sys.flags.safe_path:
        # `python -m ragdocs` has put it there.
        del sys.path[0]
    unwanted = {"", *map(os.path.abspath, _relative_entries())}
    sys.path[:] = [entry for entry in sys.path if entry not in unwanted]


def server_command(module: str) -> list[str]:
    """Return the command that runs a module as this process was run."""
    flags = [SAFE_PATH]
    if sys.flags.ignore_environment:
        flags.append("-E")
    if sys.flags.no_user_site:
        flags.append("-s")
    return [sys.executable, *flags, "-m", module]


def server_environment() -> dict[str, str]:
    """Return the environment without the relative entries of PYTHONPATH."""
    environ = dict(os.environ)
    if _relative_entries():
        entries = environ.pop("PYTHONPATH").split(os.pathsep)
        absolute = os.pathsep.join(filter(os.path.isabs, entries))
        if absolute:
            environ["PYTHONPATH"] = absolute
    return environ


def _relative_entries() -> list[str]:
    variable = os.environ.get("PYTHONPATH", "")
    if not variable or sys.flags.ignore_environment:
        return []
    entries = []
    for entry in variable.split(os.pathsep):
        # An empty entry, as in `PYTHONPATH=$PYTHONPATH:/opt/lib`, means the working directory.
        if not os.path.isabs(entry):
            entries.append(entry)
    return entries
