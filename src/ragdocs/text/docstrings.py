"""The reference that the docstrings of a Python module make, as markdown; nothing is run."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import PurePosixPath

# Bytes of a module; longer ones are data or machine-made.
LARGEST_MODULE = 1_000_000
_INIT = "__init__"
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def module_name(path: str) -> str:
    """Return the dotted name of a public module, or nothing for any other file."""
    parts = PurePosixPath(path).with_suffix("").parts
    if not path.endswith(".py") or path.startswith((".", "/")):
        return ""
    if parts[-1] == _INIT:
        parts = parts[:-1]
    for part in parts:
        if part.startswith("_") or part in {"tests", "test"} or not part.isidentifier():
            return ""
    return ".".join(parts)


def reference(name: str, source: str) -> str:
    """Return headings, signatures and docstrings of a module's public definitions.

    Raises ValueError where the source is no Python.
    """
    try:
        return _reference(name, ast.parse(source))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a module of Python: {type(error).__name__}") from error


def _reference(name: str, tree: ast.Module) -> str:
    blocks = [f"# {name}", _docstring(tree)]
    for node in _public(tree.body):
        blocks += _definition(node, name, "##")
        if isinstance(node, ast.ClassDef):
            for member in _public(node.body):
                blocks += _definition(member, node.name, "###")
    return "\n\n".join(filter(None, blocks)) + "\n"


def _public(body: list[ast.stmt]) -> Iterator[_Definition]:
    for node in body:
        if isinstance(node, _Definition) and not node.name.startswith("_"):
            yield node


def _definition(node: _Definition, owner: str, mark: str) -> list[str]:
    return [f"{mark} {owner}.{node.name}", f"```python\n{_signature(node)}\n```", _docstring(node)]


def _signature(node: _Definition) -> str:
    if isinstance(node, ast.ClassDef):
        if not node.bases:
            return f"class {node.name}"
        return f"class {node.name}({', '.join(map(ast.unparse, node.bases))})"
    word = "def"
    if isinstance(node, ast.AsyncFunctionDef):
        word = "async def"
    returns = ""
    if node.returns is not None:
        returns = f" -> {ast.unparse(node.returns)}"
    return f"{word} {node.name}({ast.unparse(node.args)}){returns}"


def _docstring(node: ast.Module | _Definition) -> str:
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")
