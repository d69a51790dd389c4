"""The shapes in which projects keep documentation, as small trees of files."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

PAGE = "# A page\n\nSome words about the matter.\n"
RST = "A page\n======\n\n.. note:: A remark.\n\nSome words.\n"
NOTEBOOK = '{"cells": [], "nbformat": 4}\n'

# Each shape: its files by path, or how many files a pattern with {} stands for.
OBSIDIAN = {
    ".obsidian/app.json": "{}",
    "Start here.md": PAGE,
    **{f"Plugins/Plugin {number}.md": PAGE for number in range(9)},
    **{f"Editing/Page {number}.md": PAGE for number in range(6)},
    "Attachments/figure.svg": "<svg/>",
}
NEXT = {
    "readme.md": PAGE,
    "package.json": "{}",
    **{f"docs/01-app/0{number}-guide/page.mdx": PAGE for number in range(1, 9)},
    **{f"docs/02-pages/0{number}-api/page.mdx": PAGE for number in range(1, 6)},
    "test/fixtures/app/README.md": PAGE,
    "packages/next/README.md": PAGE,
}
ASCIIDOCTOR = {
    "README.adoc": "= Title\n\nWords.\n",
    **{f"docs/modules/ROOT/pages/page{number}.adoc": "= P\n\nWords.\n" for number in range(7)},
    "lib/main.rb": "puts 1\n",
}
LANGCHAIN = {
    "README.md": PAGE,
    **{f"docs/docs/how_to/guide{number}.ipynb": NOTEBOOK for number in range(6)},
    **{f"docs/docs/concepts/page{number}.mdx": PAGE for number in range(5)},
    "docs/api_reference/index.html": "<p>",
}
ASTRO = {
    "README.md": PAGE,
    **{f"src/content/docs/en/guide{number}.mdx": PAGE for number in range(8)},
    **{f"src/content/docs/fr/guide{number}.mdx": PAGE for number in range(7)},
    **{f"src/content/docs/pt-br/guide{number}.mdx": PAGE for number in range(6)},
    "src/components/Card.astro": "<div/>",
}
VUE = {
    "README.md": PAGE,
    "CONTRIBUTING.md": PAGE,
    **{f"src/guide/essentials/page{number}.md": PAGE for number in range(6)},
    **{f"src/api/page{number}.md": PAGE for number in range(4)},
    "src/public/logo.svg": "<svg/>",
}
DJANGO = {
    "README.rst": RST,
    **{f"docs/topics/page{number}.txt": RST for number in range(8)},
    "docs/requirements.txt": "sphinx\n",
    "django/conf/locale/words.txt": "a b c\n",
    "requirements.txt": "asgiref\n",
}
PACKAGE = {"README.md": PAGE, "src/shop/__init__.py": "", "pyproject.toml": ""}
MONOREPO = {
    "README.md": PAGE,
    "CHANGELOG.md": PAGE,
    **{f"packages/p{number}/docs/guide.md": PAGE for number in range(5)},
    **{f"packages/p{number}/README.md": PAGE for number in range(5)},
    **{f"packages/p{number}/CHANGELOG.md": PAGE for number in range(5)},
    "packages/p0/test/fixtures/page.md": PAGE,
    "packages/p1/vendor/thing/README.md": PAGE,
}
DOCUSAURUS = {
    "docs/intro.md": PAGE,
    "docs/guide.md": PAGE,
    "versioned_docs/version-1.0/intro.md": PAGE,
    "versioned_docs/version-2.0/intro.md": PAGE,
    "i18n/fr/docusaurus-plugin-content-docs/current/intro.md": PAGE,
    "README.md": PAGE,
    "README.ja.md": PAGE,
    "README_CN.md": PAGE,
}


def plant(root: Path, shape: Mapping[str, str], *, git: bool = True) -> Path:
    """Write a tree of files, and let git track all of it."""
    for path, text in shape.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if git:
        subprocess.run(["git", "init", "-q", "--template=", str(root)], check=True)
        subprocess.run(["git", "-C", str(root), "add", "-A", "--force"], check=True)
    return root
