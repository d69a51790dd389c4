"""Definitions of source files, one line each, in the common languages."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from ragdocs.text.outline import GRAMMARS, is_generated, missing, outline

SOURCES = {
    "a.py": (
        """
        import os
        @decorator
        class A(Base):
            x: int = 1
            def f(self, a: int) -> str:  # why
                def inner(): pass
            async def g(self): ...
        try:
            import x
        except ImportError:
            def fallback(): pass
        def long(
            a: int,
            b: str = "x",
        ) -> None:
            # a remark
            pass
        """,
        [
            "class A(Base)",
            "  def f(self, a: int) -> str",
            "  async def g(self)",
            "def fallback()",
            'def long(a: int, b: str = "x") -> None',
        ],
    ),
    "a.js": (
        """
        export default class A extends B { m(a) {} get x() { return 1 } }
        export function f(a, b) { function inner() {} }
        export const g = async (x) => { return x };
        const h = function () {}, data = 3;
        """,
        [
            "class A extends B",
            "  m(a)",
            "  get x()",
            "function f(a, b)",
            "g = async (x)",
            "h = function ()",
        ],
    ),
    "a.ts": (
        """
        export interface I<T> { a: string; m(x: number): void }
        export type T = string | number;
        export abstract class C<T> implements I { constructor(private x: string) {} }
        namespace N { export function q() {} }
        """,
        [
            "interface I<T>",
            "  m(x: number): void",
            "type T = string | number",
            "abstract class C<T> implements I",
            "  constructor(private x: string)",
            "namespace N",
            "  function q()",
        ],
    ),
    "a.tsx": ("export const View = (p: P) => <div>{p.x}</div>;", ["View = (p: P)"]),
    "a.go": (
        """
        package a
        type S struct {
            A int
        }
        func (s *S) M(a int) error { return nil }
        func F() {}
        """,
        ["type S struct", "func (s *S) M(a int) error", "func F()"],
    ),
    "a.rs": (
        """
        pub struct S { a: i32 }
        impl T for S { fn m(&self) { } }
        mod inner { pub fn f() {} }
        """,
        ["pub struct S", "impl T for S", "  fn m(&self)", "mod inner", "  pub fn f()"],
    ),
    "A.java": (
        "public class A<T> extends B { int x; public A(int a) {} void m(String s) throws E {} enum K { X } }",
        [
            "public class A<T> extends B",
            "  public A(int a)",
            "  void m(String s) throws E",
            "  enum K",
        ],
    ),
    "a.c": (
        "struct S { int a; };\nstatic int f(int a, char *b) { return 1; }\nint g(void);\nint x;\nchar *h(void) {}\n",
        ["struct S", "static int f(int a, char *b)", "int g(void)", "char *h(void)"],
    ),
    "a.hpp": (
        "namespace n { class A : public B { public: void m(int a); int x; }; template <class T> T f(T a) {} }",
        ["namespace n", "  class A : public B", "    void m(int a)", "  T f(T a)"],
    ),
    "A.cs": (
        "namespace N { public class A : B { public void M(int a) {} } record R(int A); }",
        ["namespace N", "  public class A : B", "    public void M(int a)", "  record R(int A)"],
    ),
    "a.rb": (
        "module M\n  class A < B\n    def m(a, b = 1)\n      1\n    end\n  end\nend\n",
        ["module M", "  class A < B", "    def m(a, b = 1)"],
    ),
    "a.php": (
        "<?php\nclass A extends B { public function m(int $a): string { return 1; } }\nfunction f($a) {}\n",
        ["class A extends B", "  public function m(int $a): string", "function f($a)"],
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_definitions_are_found_in_order_with_their_members(name: str) -> None:
    source, lines = SOURCES[name]
    assert list(outline(name, textwrap.dedent(source).encode())) == lines


def test_every_grammar_is_installed_and_works_offline() -> None:
    assert missing() == []
    for suffix in GRAMMARS:
        outline(f"a{suffix}", b"x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"def (((",
        b"class " * 5000,
        b"(" * 20_000,
        "ä = 1\ndef ö(): pass".encode(),
    ],
)
def test_no_text_is_too_odd(data: bytes) -> None:
    for suffix in GRAMMARS:
        assert all("\n" not in line for line in outline(f"a{suffix}", data))


def test_a_long_signature_has_its_parameters_left_out_as_a_whole() -> None:
    parameters = ", ".join(f"parameter_{number}: int" for number in range(20))
    assert outline("a.py", f"def f({parameters}) -> str:\n    pass\n".encode()) == (
        "def f(…) -> str",
    )


def test_a_function_whose_line_is_too_long_leaves_no_blank_line() -> None:
    members = "; ".join(f"member{number}: number" for number in range(40))
    source = f"const f = (a): {{ {members} }} => {{ return a }}\nfunction g() {{}}\n"
    assert outline("a.ts", source.encode()) == ("function g()",)


def test_a_file_of_another_kind_has_no_outline() -> None:
    assert outline("a.md", b"# A\n") == ()


@pytest.mark.parametrize(
    ("data", "generated"),
    [
        (b"# Code generated by protoc. DO NOT EDIT.\nx = 1\n", True),
        (b"/* @generated */\nx = 1\n", True),
        (b"var a=1;" * 1000, True),
        (b"def generate(): pass\n", False),
        (b'"""A tree can be generated by passing a flag."""\n', False),
        (b"x = 1\n" * 1000, False),
    ],
)
def test_a_file_that_a_machine_wrote_is_told(data: bytes, generated: bool) -> None:
    assert is_generated(data) is generated


def test_without_the_parser_there_are_no_definitions_and_no_failure() -> None:
    script = (
        "import sys\nfor name in ('tree_sitter', 'tree_sitter_python'): sys.modules[name] = None\n"
        "from ragdocs.text import outline\n"
        "print(outline.outline('a.py', b'def f(): pass'), 'tree-sitter' in outline.missing())"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout
    assert told == "() True\n"
