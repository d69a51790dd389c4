"""One page for whoever takes over."""

from __future__ import annotations

import pytest
from tests.asking import ask
from tests.conftest import Project
from tests.plain_git import plain_git

from ragdocs.errors import ValidationError


@pytest.fixture
def busy(project: Project) -> Project:
    plan = "- [x] read\n- [ ] write the parser\n- [ ] test\n"
    head = "---\ntype: {}\ncreated_at: 2026-11-{}\n---\n"
    project.memory("plan.md", f"{head.format('plan', '01')}# Parser\n\n{plan}")
    project.memory("done.md", f"{head.format('plan', '02')}# Finished\n\n- [x] all\n")
    project.memory("choice.md", f"{head.format('decision', '14')}# Use PEG\n\nBecause.\n")
    project.memory("old-choice.md", f"{head.format('decision', '01')}# Use LALR\n\nOnce.\n")
    journal = "# Day\n\nDone a lot.\n\nNext: measure the parser\n\nOpen question: is it fast?\n"
    journal += "\n## Next steps\n\n- ask Ada\n- [x] ask Bob\n\n## Later\n\n- a list\n"
    project.memory("day.md", f"{head.format('journal', '15')}{journal}")
    old = "Next: something of long ago\n"
    project.memory("long-ago.md", f"{head.format('journal', '01')}{old}")
    plain_git(project.root, "init")
    project.doc("parser.md", "# The parser\n\nText.\n")
    plain_git(project.root, "add", "docs")
    moments = {
        "GIT_AUTHOR_DATE": "2026-11-13T10:00:00Z",
        "GIT_COMMITTER_DATE": "2026-11-13T10:00:00Z",
    }
    plain_git(project.root, "commit", "-m", "docs: say how the parser works", **moments)  # type: ignore[arg-type]
    return project


PAGE = """\
# Hand-over of project since 2026-11-09

## Open plans

- Parser (2 of 3 steps open) · 2026-11-01 · .memories/plan.md

## Decisions

- Use PEG · 2026-11-14 · .memories/choice.md

## Documentation that changed

- The parser ({commit} docs: say how the parser works) · 2026-11-13 · docs/parser.md

## Unanswered questions

- is it fast? · 2026-11-15 · .memories/day.md:11

## Next steps

- measure the parser · 2026-11-15 · .memories/day.md:9
- ask Ada · 2026-11-15 · .memories/day.md:15
- write the parser · 2026-11-01 · .memories/plan.md:8
- test · 2026-11-01 · .memories/plan.md:9
"""


def test_the_page_has_what_is_open_and_what_happened_with_sources(busy: Project) -> None:
    commit = plain_git(busy.root, "rev-parse", "HEAD")[:10]
    page = ask(busy.open(), "write_handover", since="2026-11-09")["page"]
    assert page == PAGE.format(commit=commit)
    # Another process, another index: the same bytes.
    assert ask(busy.open(), "write_handover", since="2026-11-09")["page"] == page


def test_a_decision_says_what_became_of_the_files_that_it_is_about(busy: Project) -> None:
    busy.write("src/parser.py", "RULES = 1\n")
    workspace = busy.open()
    decision = "---\ntype: decision\n---\n# Keep rules apart\n\nIn [[src/parser.py]].\n"
    ask(workspace, "create_memory", filename="rules.md", content=decision, tags=[])
    busy.write("src/parser.py", "RULES = 1\nMORE = 2\n")
    page = ask(workspace, "write_handover", since="2026-11-09")["page"]
    assert "- Keep rules apart (src/parser.py changed) · 2026-11-16 · .memories/rules.md" in page


def test_the_page_stays_within_its_budget_and_counts_the_rest(busy: Project) -> None:
    steps = "".join(f"- [ ] step number {number} of many\n" for number in range(300))
    busy.memory("many.md", f"---\ntype: plan\ncreated_at: 2026-11-15\n---\n{steps}")
    workspace = busy.open()
    for size in (500, 1500, 6000):
        answer = ask(workspace, "write_handover", since="2026-11-09", max_chars=size)
        assert len(answer["page"]) <= size
        steps_left = answer["chapters"][-1]
        assert len(steps_left["lines"]) + steps_left["omitted"] == 304
        assert f"{steps_left['omitted']} more are not listed" in answer["page"]
    with pytest.raises(ValidationError, match="max_chars"):
        ask(workspace, "write_handover", max_chars=10)
