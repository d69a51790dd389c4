"""Links that lead somewhere on a site are not called dead, and those that lead nowhere are."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.asking import ask
from tests.conftest import Project

from ragdocs.verbs.quality.dead_links import dead_links

# Files of a site, with a link in the first of them.
ALIVE: Mapping[str, Mapping[str, str]] = {
    "a page of mdBook": {"a.md": "[b](b.html#one)", "b.md": "# B\n\n## One\n"},
    "a page of a folder": {
        "a.md": "[b](./b/) [c](c/index.html)",
        "b/index.mdx": "# B",
        "c/README.md": "# C",
    },
    "a page with a folder of its own": {"part/a.md": "[b](../b/)", "part/b.md": "# B"},
    "a page with an address": {"a.md": "[b](b-c)", "x.md": "---\nslug: b-c\n---\n# B"},
    "a number that sorts": {"a.md": "[b](./start)", "01-start.md": "# B"},
    "the top of a site": {"a.md": "[b](@site/docs/b.md) ![c](@/img/c.png)", "b.md": "# B"},
    "a template": {"a.md": "[b]: {{ site.url }}/b\n\n[b] [c](${base}/c.md)", "b.md": "# B"},
    "a shortcode": {"a.md": '[b]({{< relref "b.md#one" >}})', "b.md": "# B\n\n## One\n"},
    "a label of MyST": {
        "a.md": "{ref}`b <some-b>` [](some-b) [x](#some-b) [](fig:b)",
        "b.md": "(some-b)=\n# B\n\n```{figure} b.png\n:name: fig:b\n```\n",
    },
    "a label above a paragraph": {"a.md": "(here)=\nWords.\n\n[x](#here)", "b.md": "# B"},
    "an option in a comment": {"a.md": "# <!-- md:setting a.b -->\n\n[x](#a.b) [y](#+a.b)"},
    "a term of a definition": {"a.md": "Some `term`\n: What it is.\n\n[x](#some-term)"},
    "a footnote": {"a.md": "Words[^1].\n\n[x](#fn:1)\n\n[^1]: Note."},
    "a heading of a part": {"a.md": '{{< include "_b.md" >}}\n\n[x](#in-b)', "_b.md": "# In b"},
    "a heading of the whole": {"_parts/a.md": "[x](#in-b)", "b.md": "# In b"},
    "a quoted heading": {"a.md": "> ## In a quote\n\n[x](#in-a-quote)"},
}
DEAD: Mapping[str, Mapping[str, str]] = {
    "a file in another folder": {"part/a.md": "[b](b.md)", "b.md": "# B"},
    "a heading of another page": {"a.md": "[b](b.html#two)", "b.md": "# B\n\n## One\n"},
    "a label that nothing has": {"a.md": "{note}`x` [](#nothing)\n\n(here)=\nWords."},
    "a bare word": {"a.md": "[b](nothing)"},
}


def found(project: Project, files: Mapping[str, str]) -> list[str]:
    for name, text in files.items():
        project.doc(name, f"{text}\n")
    workspace = project.open()
    ask(workspace, "search_docs", query="b")
    corpus = workspace.open_lanes["docs"].corpus
    reasons = []
    for links in dead_links(project.root, corpus, [corpus]).values():
        reasons += [link.reason for link in links]
    return reasons


@pytest.mark.parametrize("files", ALIVE.values(), ids=ALIVE)
def test_a_link_that_leads_somewhere_on_the_site_is_not_dead(
    project: Project, files: Mapping[str, str]
) -> None:
    assert found(project, files) == []


@pytest.mark.parametrize("files", DEAD.values(), ids=DEAD)
def test_a_link_that_leads_nowhere_is_dead(project: Project, files: Mapping[str, str]) -> None:
    assert len(found(project, files)) == 1


def test_a_word_that_many_pages_have_for_a_destination_is_a_notation(project: Project) -> None:
    files = {f"{number}.md": "[word](g)" for number in range(10)}
    assert found(project, files) == []
