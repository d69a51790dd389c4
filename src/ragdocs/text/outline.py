"""What a source file defines, one line for each definition.

The only module that imports tree-sitter.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
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
# Kinds of nodes, of all grammars together: those with members, those without, and those one looks
# through.
_GROUPS = frozenset(
    """
    abstract_class_declaration class class_declaration class_definition class_specifier enum_declaration impl_item
    interface_declaration internal_module mod_item module namespace_declaration namespace_definition record_declaration
    struct_declaration struct_specifier trait_declaration trait_item union_specifier
    """.split()  # noqa: SIM905 - a table reads better without quotes
)
_SINGLES = frozenset(
    """
    annotation_type_declaration constructor_declaration delegate_declaration enum_item enum_specifier
    file_scoped_namespace_declaration function_declaration function_definition function_item function_signature
    function_signature_item generator_function_declaration macro_definition method method_declaration method_definition
    method_signature abstract_method_signature singleton_method struct_item type_alias_declaration type_definition
    type_item type_spec union_item
    """.split()  # noqa: SIM905
)
_THROUGH = frozenset(
    """
    ambient_declaration block class_body body_statement compound_statement declaration_list decorated_definition
    else_clause enum_body enum_body_declarations enum_declaration_list except_clause export_statement
    expression_statement field_declaration_list if_statement interface_body lexical_declaration linkage_specification
    preproc_else preproc_if preproc_ifdef program statement_block template_declaration try_statement type_declaration
    variable_declaration
    """.split()  # noqa: SIM905
)
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


def is_generated(data: bytes) -> bool:
    """Tell whether a machine wrote a file.

    It says so at the top, or has lines that nobody reads.
    """
    return (
        bool(_GENERATED.search(data[:_HEAD]))
        or max(map(len, data[:100_000].split(b"\n"))) > _WIDEST
    )


def outline(path: str, data: bytes) -> tuple[str, ...]:
    """Return the definitions in a source file, in order, members indented.

    Nothing without a grammar for it.
    """
    language = _language(*GRAMMARS.get(PurePosixPath(path).suffix, ("", "")))
    if language is None:
        return ()
    from tree_sitter import Parser

    # One for each file: a parser is not to be used by two threads at once, and making one takes
    # microseconds.
    return tuple(_walk(Parser(language).parse(data).root_node, data, 0, 0))


def missing() -> list[str]:
    """Name the packages without which some languages are not outlined."""
    packages = sorted({f"tree_sitter_{name}" for name, _ in GRAMMARS.values()})
    return [name.replace("_", "-") for name in ("tree_sitter", *packages) if not _importable(name)]


def _importable(name: str) -> bool:
    return find_spec(name) is not None


@functools.cache
def _language(name: str, function: str) -> Language | None:
    """Load a grammar when a file of its language is first met.

    A language without one is only listed.
    """
    if not name or not _importable("tree_sitter") or not _importable(f"tree_sitter_{name}"):
        return None
    from tree_sitter import Language

    return Language(getattr(import_module(f"tree_sitter_{name}"), function)())


def _walk(node: Node, data: bytes, depth: int, level: int) -> Iterator[str]:
    for child in node.named_children if level < _DEEPEST_NODE else ():
        kind = child.type
        if kind in _GROUPS:
            if line := _line(child, data):
                yield "  " * depth + line
            body = child.child_by_field_name("body")
            if body is not None and depth < _DEEPEST:
                yield from _walk(body, data, depth + 1, level + 1)
        elif kind in _SINGLES or (kind in _DECLARATIONS and _declares_function(child)):
            if line := _line(child, data):
                yield "  " * depth + line
        elif kind == "variable_declarator":
            value = child.child_by_field_name("value")
            if value is not None and value.type in _FUNCTIONS:
                yield "  " * depth + _line(child, data)
        elif kind in _THROUGH:
            yield from _walk(child, data, depth, level + 1)


def _declares_function(node: Node) -> bool:
    declared = node.child_by_field_name("declarator")
    while declared is not None and declared.type in _DECLARATORS:
        declared = declared.child_by_field_name("declarator")
    return declared is not None and declared.type == "function_declarator"


def _line(node: Node, data: bytes) -> str:
    """Write a definition as it stands, on one line and without its body."""
    owner = node.child_by_field_name("value") if node.type == "variable_declarator" else node
    body = owner.child_by_field_name("body") if owner is not None else None
    stop = body.start_byte if body is not None else node.end_byte
    remarks = (child.start_byte for child in (owner or node).children if child.type == "comment")
    stop = next((start for start in remarks if start < stop), stop)
    text = _text(data, node.start_byte, min(stop, node.start_byte + _SIGHT))
    if body is None:
        text = text.partition("\n")[0]
    elif len(text) > _LONGEST and (parameters := _parameters(node)) is not None:
        text = f"{_text(data, node.start_byte, parameters.start_byte)}(…){_text(data, parameters.end_byte, stop)}"
    text = " ".join(text.split()).removesuffix("=>").rstrip(" {:;=")
    text = re.sub(r"\(\s+", "(", re.sub(r",?\s+\)", ")", text))
    prefix = "type " if node.type == "type_spec" else ""
    return f"{prefix}{text}" if len(text) <= 2 * _LONGEST else ""


def _parameters(node: Node) -> Node | None:
    for place in (node, node.child_by_field_name("value"), node.child_by_field_name("declarator")):
        found = place.child_by_field_name("parameters") if place is not None else None
        if found is not None:
            return found
    return None


def _text(data: bytes, start: int, stop: int) -> str:
    return data[start:stop].decode(errors="replace")
