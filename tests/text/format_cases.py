"""A text in every format, and what a reader has to see of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A file, its title, its heading paths, the links and ids in it, and what is not read."""

    path: str
    text: str
    format: str
    title: str
    headings: Sequence[str]
    links: Sequence[str] = ()
    anchors: Sequence[str] = ()
    # Words, each with the line of the file on which a passage has to have it.
    words: Sequence[tuple[str, int]] = ()
    unread: Sequence[str] = ()
    # Code that is one block.
    code: Sequence[str] = ()


MDX_AS_MARKDOWN = """\
---
title: useThing
---

<Intro>

Keeps a thing.

</Intro>

## Reference {/*reference*/}

See <CodeStep step={1}>`first`</CodeStep> and [more](#reference).

```js
import kept from 'code';
```
"""

NUXT = """\
---
title: Pages
---

::card-group
  ::card{title="Open it" color="hiddencolor" to="other.md"}
  ---
  icon: hiddenicon
  title: Shown title
  ---
  A card.
  ::
::

## Named views :icon{name="hiddenicon"}

::note
Mind the gap.
::

Since :badge[v4.5]{color="hiddencolor" size="xs"}. :read-more{title="The rest" to="more.md"}

:button{color="hiddencolor"}
"""

MYST = """\
(nix-top)=

# Nix

Now {ref}`install it <install-nix>`, a {term}`derivation` and {command}`cowsay`.

(deep-one)=
## Deep
:::{admonition} Mind: the gap
:class: tip
Words.
:::

See {doc}`intro`, [](deep-two), [](#deep-three) and [above](#nix).

```{figure} tree.png
:name: fig:tree
```

```{toctree}
:maxdepth: 2
Start <guide/start>
```
"""

VIM = """\
*lamp.txt*\tFor Vim version 9.1.  Last change: 2026 Jan 01

\t\t  LAMP MANUAL
\t\t  Lighting a lamp

1. Start\t|lamp-setup|

==============================================================================
1. Setup\t\t\t\t*lamp-setup* *lamp-start*

Run this: >
\t:Lamp on
<
Then see |lamp-off|.

TURNING IT OFF\t\t\t*lamp-off*

\t\t\t\t\t\t*:LampOff*
:LampOff\tTurns it off.

 vim:tw=78:ft=help:
"""

RST = """\
.. _top:

=====
Guide
=====

See :ref:`the setup <setup>`, :doc:`/ref/models` and :class:`~pkg.mod.Thing`.

.. note:: Mind the
   gap.

.. _setup:

Setup
=====

Run this::

    make install

.. code-block:: python
   :linenos:

   import thing

.. toctree::
   :maxdepth: 2

   intro
   Other title <other/page>

.. include:: shared.rst

.. index:: hiddenword

Deep
----

==== ====
a    b
==== ====
cell two
==== ====
"""

ASCIIDOC = """\
= Manual
:product: Harbour
:hidden-attribute: hiddenword

Welcome to {product}, see xref:other.adoc#start[the start] and <<setup>>.

[[setup]]
== Setup

.Listing title
[source,ruby]
----
puts 'code'
== no heading
----

NOTE: Mind the gap.

[WARNING]
====
Careful.
====

include::shared/part.adoc[tag=a]

// hiddencomment

=== Deep

|===
|a |b
|===
"""

ORG = """\
#+TITLE: Notes
#+STARTUP: hiddenword

* TODO First thing :tag:
:PROPERTIES:
:CUSTOM_ID: first
:END:

See [[file:other.org][the other]] and [[https://example.org][a site]].

** Deep
#+begin_src python
* not_a_heading
#+end_src
"""

HTML = """\
<!doctype html>
<html><head><title>Page &mdash; Site</title>
<script>var hiddenword = 1;</script><style>.hiddenstyle {}</style></head>
<body>
<nav><a href="x.html">hiddennav</a></nav>
<main>
<h1 id="top">Page</h1>
<p>First &amp; <a href="other.html#part">linked</a>
words.</p>
<!-- hiddencomment -->
<h2 id="setup">Setup<a class="headerlink" href="#setup">¶</a></h2>
<ul><li>one<li>two</ul>
<pre><code>line one
  line two
</code></pre>
<table><tr><td>cell</td><td>other</td></tr></table>
</main>
<footer>hiddenfooter</footer>
</body></html>
"""

MDX = """\
---
title: Tabs
---
import Tabs from '@theme/Tabs';
import { A,
  B } from './hiddenword';

export const meta = {
  title: 'hiddenexport',

  more: 1,
};

# Tabs {#tabs}

<Tabs defaultValue="hiddenvalue">
  <TabItem value="x" label="Linux">

Use `<b>` there.

  </TabItem>
</Tabs>

<Card title="Next page" href="./next.mdx" />

:::tip Remember

Words in a tip.

:::

```js
import kept from 'code';
```

## Deep
"""

HUGO = """\
+++
title = "Pods"
tags = ["one", "two"]
+++

# Ignored title

{{< note >}}
A {{< glossary_tooltip text="container" term_id="hiddenterm" >}} runs.
{{< /note >}}

See [the page]({{< ref "other.md" >}}).

## Deep
"""

MKDOCS = """\
# Guide

!!! warning "Be careful"
    Words in a warning.

    ## Inner

=== "Linux"

    ```sh
    run it
    ```

/// note | With title

Slashes.

///

## Deep { #deep-id }
"""

README = """\
<h1 align="center">Lamp</h1>

<p align="center">
  <a href="other.md">Other page</a> of the lamp<br>in two rows.
  <img alt="A picture of it" src="hiddenfile.png">
</p>

Write `<br>` where a row ends, or List<String>.

<a id="deep-id"></a>
## Deep

    <div>indented code</div>
"""


def notebook() -> str:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Study\n", "\n", "First words."]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {"hiddenkey": ["hiddenmeta"]},
            "outputs": [
                {"name": "stdout", "output_type": "stream", "text": ["short output\n"]},
                {"data": {"image/png": "hiddenimage", "text/plain": ["<Figure size>"]}},
                {"name": "stdout", "text": ["hiddenlong\n"] * 60},
            ],
            "source": ["import numpy\n", 'print("hello")'],
        },
        {"cell_type": "markdown", "metadata": {}, "source": "## Deep\nSee [x](other.md)."},
    ]
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4}, indent=1)


NOTEBOOK = notebook()


def line_of(text: str, words: str) -> int:
    """Return the line on which some words stand."""
    return text[: text.index(words)].count("\n") + 1


CASES = (
    Case(
        "docs/topics/guide.txt",
        RST,
        "reStructuredText",
        "Guide",
        ("Guide", "Guide › Setup", "Guide › Setup › Deep"),
        links=(
            "setup",
            "docs/ref/models.txt",
            "docs/topics/intro.txt",
            "docs/topics/other/page.txt",
            "docs/topics/shared.rst",
        ),
        anchors=("top", "setup"),
        words=(("gap", 10), ("install", 19), ("`pkg.mod.Thing`", 7), ("cell two", 42)),
        unread=("hiddenword", "linenos", "maxdepth", "====", ".. "),
        code=("    make install", "   import thing"),
    ),
    Case(
        "docs/manual.adoc",
        ASCIIDOC,
        "AsciiDoc",
        "Manual",
        ("Manual", "Manual › Setup", "Manual › Setup › Deep"),
        links=("docs/other.adoc", "setup", "docs/shared/part.adoc"),
        anchors=("setup",),
        words=(("Welcome to Harbour, see the start", 5), ("Listing title", 10), ("Careful", 21)),
        unread=("hiddenword", "hiddencomment", "[source", "----"),
        code=("puts 'code'\n== no heading",),
    ),
    Case(
        "docs/notes.org",
        ORG,
        "Org",
        "Notes",
        ("First thing", "First thing › Deep"),
        links=("docs/other.org",),
        anchors=("first",),
        words=(("the other", 9),),
        unread=("hiddenword", "PROPERTIES", "TODO", "begin_src"),
        code=("* not_a_heading",),
    ),
    Case(
        "docs/page.html",
        HTML,
        "HTML",
        "Page",
        ("Page", "Page › Setup"),
        links=("docs/other.html",),
        anchors=("top", "setup"),
        words=(("First & linked\nwords.", 9), ("- two", 12), ("  line two", 14), ("cell", 16)),
        unread=(
            "hiddenword",
            "hiddenstyle",
            "hiddennav",
            "hiddencomment",
            "hiddenfooter",
            "¶",
            "<",
        ),
        code=("line one\n  line two",),
    ),
    Case(
        "docs/tabs.mdx",
        MDX,
        "Markdown",
        "Tabs",
        ("Tabs", "Tabs › Deep"),
        links=("docs/next.mdx",),
        words=(
            ("Linux", 17),
            ("`<b>`", 19),
            ("Next page", 24),
            ("tip: Remember", 26),
            ("import kept", 33),
        ),
        unread=("hiddenword", "hiddenexport", "hiddenvalue", "<Tab", ":::"),
        code=("```js\nimport kept from 'code';\n```",),
    ),
    Case(
        "docs/use-thing.md",
        MDX_AS_MARKDOWN,
        "Markdown",
        "useThing",
        ("Reference",),
        words=(("Keeps a thing.", 7), ("See `first` and", 13), ("import kept", 16)),
        unread=("<Intro", "</", "/*", "hiddenimport"),
        code=("```js\nimport kept from 'code';\n```",),
    ),
    Case(
        "docs/pages.md",
        NUXT,
        "Markdown",
        "Pages",
        ("Named views",),
        links=("docs/other.md", "docs/more.md"),
        words=(
            ("Open it", 6),
            ("A card.", 11),
            ("note:", 17),
            ("Mind the gap.", 18),
            ("Since v4.5.", 21),
        ),
        unread=("::", "hiddencolor", "hiddenicon", "---", "badge", "read-more", "button", "card:"),
    ),
    Case(
        "docs/nix.md",
        MYST,
        "Markdown",
        "Nix",
        ("Nix", "Nix › Deep"),
        words=(("install it", 5), ("Mind: the gap", 9), ("[Start]", 22)),
        code=("```{figure} tree.png\n:name: fig:tree\n```",),
        links=("install-nix", "docs/intro", "deep-two", "deep-three", "docs/guide/start"),
        anchors=("nix-top", "deep-one", "fig:tree"),
        unread=("{ref}", "{term}", ")=", ":class:", "{toctree}", ":maxdepth:"),
    ),
    Case(
        "content/pods.md",
        HUGO,
        "Markdown",
        "Pods",
        ("Ignored title", "Ignored title › Deep"),
        links=("content/other.md",),
        words=(("A container runs.", 9), ("note:", 8)),
        unread=("hiddenterm", "{{", "+++"),
    ),
    Case(
        "docs/guide.md",
        MKDOCS,
        "Markdown",
        "Guide",
        ("Guide", "Guide › Inner", "Guide › Deep"),
        words=(("warning: Be careful", 3), ("Linux", 8), ("note: With title", 14)),
        unread=("!!!", "///", "==="),
        code=("```sh\nrun it\n```",),
    ),
    Case(
        "docs/lamp.md",
        README,
        "Markdown",
        "Lamp",
        ("Lamp", "Lamp › Deep"),
        links=("docs/other.md",),
        words=(
            ("of the lamp in", 4),
            ("A picture of it", 5),
            ("Write `<br>` where a row ends, or List<String>.", 8),
        ),
        unread=("<h1", "<p ", "</p>", "<a href", "hiddenfile", "center"),
        code=("    <div>indented code</div>",),
    ),
    Case(
        "docs/settings.rst",
        ":tocdepth: 2\n\n.. _top:\n\nGuide\n=====\n\nFirst words.\n\n--------\n\nLast words.\n",
        "reStructuredText",
        "Guide",
        ("Guide",),
        anchors=("top",),
        words=(("First words.", 8), ("Last words.", 12)),
        unread=("tocdepth", "----"),
    ),
    Case(
        "docs/nav.adoc",
        "= Contents\n\n[]\n* xref:features.adoc[]\n",
        "AsciiDoc",
        "Contents",
        ("Contents",),
        links=("docs/features.adoc",),
        unread=("xref", "[]"),
    ),
    Case(
        "docs/study.ipynb",
        NOTEBOOK,
        "notebooks",
        "Study",
        ("Study", "Study › Deep"),
        links=("docs/other.md",),
        words=(
            ("First words.", line_of(NOTEBOOK, "First words")),
            ('print("hello")', line_of(NOTEBOOK, "print(")),
            ("```python cell 2", line_of(NOTEBOOK, "import numpy")),
            ("(cell 3)", line_of(NOTEBOOK, "## Deep")),
        ),
        unread=(
            "hiddenmeta",
            "hiddenimage",
            "hiddenlong",
            "Figure",
            "cell_type",
            "execution_count",
        ),
        code=(
            '```python cell 2\nimport numpy\nprint("hello")\n```',
            "```text output of cell 2\nshort output\n```",
        ),
    ),
    Case(
        "doc/lamp.txt",
        VIM,
        "Vim help",
        "Lighting a lamp",
        ("1. Setup", "1. Setup › TURNING IT OFF"),
        links=("lamp-setup", "lamp-off"),
        anchors=("lamp-setup", "lamp-start", "lamp-off", ":lampoff"),
        words=(("Then see lamp-off.", 14), (":LampOff\n", 18), ("Turns it off", 19)),
        unread=("vim:tw", "====", "|", "*lamp"),
        code=("\t:Lamp on",),
    ),
    Case(
        "docs/plain.txt",
        "A short line\n\nWords of a paragraph\nin two lines.\n\n# no heading\n",
        "plain text",
        "A short line",
        (),
        words=(("in two lines", 4), ("# no heading", 6)),
    ),
)
