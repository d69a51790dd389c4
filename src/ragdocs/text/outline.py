"""The definitions in a source file, one line each; the only module that imports tree-sitter."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

# A new one makes every outline that was kept a stranger.
OUTLINER = "1"
# By ending: the package with the grammar, and the function in it. C++ reads the headers of C as
# well.
GRAMMARS = {
    ".py": ("python", "language"),
    ".pyi": ("python", "language"),
    ".js": ("javascript", "language"),
    ".cjs": ("javascript", "language"),
    ".mjs": ("javascript", "language"),
    ".jsx": ("javascript", "language"),
    ".ts": ("typescript", "language_typescript"),
    ".cts": ("typescript", "language_typescript"),
    ".mts": ("typescript", "language_typescript"),
    ".tsx": ("typescript", "language_tsx"),
    ".go": ("go", "language"),
    ".rs": ("rust", "language"),
    ".java": ("java", "language"),
    ".c": ("c", "language"),
    ".h": ("cpp", "language"),
    ".cc": ("cpp", "language"),
    ".cpp": ("cpp", "language"),
    ".cxx": ("cpp", "language"),
    ".hh": ("cpp", "language"),
    ".hpp": ("cpp", "language"),
    ".cs": ("c_sharp", "language"),
    ".rb": ("ruby", "language"),
    ".php": ("php", "language_php"),
}


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Kinds of nodes, of all grammars together: those with members, those without, and those one looks
# through.
_GROUPS = _set("""
    abstract_class_declaration class class_declaration class_definition class_specifier
    enum_declaration impl_item interface_declaration internal_module mod_item module
    namespace_declaration namespace_definition record_declaration struct_declaration
    struct_specifier trait_declaration trait_item union_specifier
""")
_SINGLES = _set("""
    annotation_type_declaration constructor_declaration delegate_declaration enum_item
    enum_specifier file_scoped_namespace_declaration function_declaration function_definition
    function_item function_signature function_signature_item generator_function_declaration
    macro_definition method method_declaration method_definition method_signature
    abstract_method_signature singleton_method struct_item type_alias_declaration
    type_definition type_item type_spec union_item
""")
_THROUGH = _set("""
    ambient_declaration block class_body body_statement compound_statement declaration_list
    decorated_definition else_clause enum_body enum_body_declarations enum_declaration_list
    except_clause export_statement expression_statement field_declaration_list if_statement
    interface_body lexical_declaration linkage_specification preproc_else preproc_if
    preproc_ifdef program statement_block template_declaration try_statement type_declaration
    variable_declaration
""")
# These are definitions only if what they declare is a function.
_DECLARATIONS = frozenset({"declaration", "field_declaration"})
_DECLARATORS = frozenset({"pointer_declarator", "reference_declarator"})
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function", "class"})
# Deeper than people nest what others should know of; and of nodes, of which a chain of `else if`
# makes many.
_DEEPEST = 6
_DEEPEST_NODE = 40
# A longer line has its parameters left out, as a whole.
_LONGEST = 160
# No signature is longer; what is, is left out.
_SIGHT = 4_000
# Of a file's beginning, where machines say that they wrote it.
_HEAD = 600
_GENERATED = re.compile(
    rb"(?i)@generated\b|\bdo not (?:edit|modify)\b|"
    rb"\bauto(?:matically |-)?generated\b|\b(?:file|code)(?: is| was)? generated\b"
)
# No person writes such lines; a bundler does.
_WIDEST = 2_000
# Of a file's beginning, where the lines are measured.
_WIDTH_SAMPLE = 100_000


def is_generated(data: bytes) -> bool:
    """Tell whether a machine wrote a file: it says so at the top, or has too long lines."""
    if _GENERATED.search(data[:_HEAD]):
        return True
    lines = data[:_WIDTH_SAMPLE].split(b"\n")
    return max(map(len, lines)) > _WIDEST


def outline(path: str, data: bytes) -> tuple[str, ...]:
    """Return the definitions in a source file, in order, members indented.

    A file without a grammar has none.
    """
    suffix = PurePosixPath(path).suffix
    language = _language(*GRAMMARS.get(suffix, ("", "")))
    if language is None:
        return ()
    from tree_sitter import Parser

    # One for each file: a parser is not to be used by two threads at once, and making one takes
    # microseconds.
    tree = Parser(language).parse(data)
    return tuple(_walk(tree.root_node, data, 0, 0))


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition by its name, those of its owners before it, and where it stands in the file."""

    name: str
    start: int
    stop: int


def symbols(path: str, data: bytes) -> list[Symbol]:
    """Return the named definitions of a source file, in order; members as Owner.member."""
    suffix = PurePosixPath(path).suffix
    language = _language(*GRAMMARS.get(suffix, ("", "")))
    if language is None:
        return []
    from tree_sitter import Parser

    tree = Parser(language).parse(data)
    return list(_named(tree.root_node, data, "", 0))


def missing() -> list[str]:
    """Name the packages without which some languages are not outlined."""
    packages = {"tree_sitter"}
    for name, _ in GRAMMARS.values():
        packages.add(f"tree_sitter_{name}")
    absent = []
    for package in sorted(packages):
        if not _importable(package):
            absent.append(package.replace("_", "-"))
    return absent


def _importable(name: str) -> bool:
    return find_spec(name) is not None


@functools.cache
def _language(name: str, function: str) -> Language | None:
    """Load a grammar when a file of its language is first met; None if it is not installed."""
    package = f"tree_sitter_{name}"
    if not name or not _importable("tree_sitter") or not _importable(package):
        return None
    from tree_sitter import Language

    grammar = getattr(import_module(package), function)
    return Language(grammar())


def _walk(node: Node, data: bytes, depth: int, level: int) -> Iterator[str]:
    """Yield the definitions below a node; `depth` counts definitions, `level` nodes."""
    if level >= _DEEPEST_NODE:
        return
    indent = "  " * depth
    for child in node.named_children:
        kind = child.type
        if kind in _THROUGH:
            yield from _walk(child, data, depth, level + 1)
            continue
        is_group = kind in _GROUPS
        if is_group or _is_definition(child):
            line = _line(child, data)
            if line:
                yield indent + line
        if is_group and depth < _DEEPEST:
            body = child.child_by_field_name("body")
            if body is not None:
                yield from _walk(body, data, depth + 1, level + 1)


def _named(node: Node, data: bytes, owner: str, level: int) -> Iterator[Symbol]:
    """Yield the named definitions below a node."""
    if level >= _DEEPEST_NODE:
        return
    for child in node.named_children:
        if child.type in _THROUGH:
            yield from _named(child, data, owner, level + 1)
            continue
        is_group = child.type in _GROUPS
        if not is_group and not _is_definition(child):
            continue
        name = _name(child, data)
        if not name:
            continue
        qualified = f"{owner}.{name}".removeprefix(".")
        yield Symbol(qualified, child.start_byte, child.end_byte)
        body = child.child_by_field_name("body")
        if is_group and body is not None:
            yield from _named(body, data, qualified, level + 1)


def _name(node: Node, data: bytes) -> str:
    """Return the name of a definition, wherever its grammar puts it."""
    for field in ("name", "type"):
        named = node.child_by_field_name(field)
        # The type of a function in C is that of its result.
        if named is not None and (field == "name" or node.type == "impl_item"):
            return _text(data, named.start_byte, named.end_byte)
    declared = node.child_by_field_name("declarator")
    while declared is not None:
        inner = declared.child_by_field_name("declarator")
        if inner is None:
            return _text(data, declared.start_byte, declared.end_byte).rpartition("::")[2]
        declared = inner
    return ""


def _is_definition(node: Node) -> bool:
    """Tell whether a node without members defines something."""
    kind = node.type
    if kind in _DECLARATIONS:
        return _declares_function(node)
    if kind == "variable_declarator":
        value = node.child_by_field_name("value")
        return value is not None and value.type in _FUNCTIONS
    return kind in _SINGLES


def _declares_function(node: Node) -> bool:
    declared = node.child_by_field_name("declarator")
    while declared is not None and declared.type in _DECLARATORS:
        declared = declared.child_by_field_name("declarator")
    return declared is not None and declared.type == "function_declarator"


def _line(node: Node, data: bytes) -> str:
    """Write a definition as it stands, on one line and without its body."""
    owner = node
    if node.type == "variable_declarator":
        owner = node.child_by_field_name("value") or node
    body = owner.child_by_field_name("body")
    stop = _signature_stop(owner, body, node.end_byte)
    text = _text(data, node.start_byte, min(stop, node.start_byte + _SIGHT))
    if body is None:
        text = text.partition("\n")[0]
    elif len(text) > _LONGEST:
        text = _without_parameters(node, data, stop) or text
    text = " ".join(text.split()).removesuffix("=>").rstrip(" {:;=")
    text = re.sub(r",?\s+\)", ")", text)
    text = re.sub(r"\(\s+", "(", text)
    if len(text) > 2 * _LONGEST:
        return ""
    if node.type == "type_spec":
        return f"type {text}"
    return text


def _signature_stop(owner: Node, body: Node | None, end: int) -> int:
    """Return where a signature ends: at the first comment, or else where its body begins."""
    stop = end
    if body is not None:
        stop = body.start_byte
    for child in owner.children:
        if child.type == "comment" and child.start_byte < stop:
            return child.start_byte
    return stop


def _without_parameters(node: Node, data: bytes, stop: int) -> str:
    """Write a signature with an ellipsis for its parameters; empty if it has none."""
    parameters = _parameters(node)
    if parameters is None:
        return ""
    name = _text(data, node.start_byte, parameters.start_byte)
    result = _text(data, parameters.end_byte, stop)
    return f"{name}(…){result}"


def _parameters(node: Node) -> Node | None:
    """Return the parameters of a function, wherever its grammar puts them."""
    value = node.child_by_field_name("value")
    declarator = node.child_by_field_name("declarator")
    for owner in (node, value, declarator):
        if owner is None:
            continue
        parameters = owner.child_by_field_name("parameters")
        if parameters is not None:
            return parameters
    return None


def _text(data: bytes, start: int, stop: int) -> str:
    return data[start:stop].decode(errors="replace")
