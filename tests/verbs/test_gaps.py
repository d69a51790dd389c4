"""What the documentation lacks, and questions that found nothing."""

from __future__ import annotations

from datetime import timedelta

from tests.asking import ask
from tests.conftest import NOW, Project

from ragdocs.serve.surface.present import care as present_care
from ragdocs.stores import questions
from ragdocs.stores.questions import QuestionLog

# In two parts, so that no scanner takes it for a real one.
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LONG = "Install the package with pip, then run the command once in the folder of the project."


def test_gaps_are_targets_pages_without_links_and_repeated_sections(project: Project) -> None:
    project.write("src/billing.py", "")
    project.doc("index.md", "# Start\n\nSee [guide](guide.md).\n")
    project.doc("guide.md", f"# Guide\n\n## Install\n\n{LONG}\n\n## Use\n\nSomething else.\n")
    project.doc("lost.md", f"# Lost\n\n## Install\n\n{LONG} Done.\n\n## Use\n\nOther words.\n")
    for day in (1, 2, 3):
        head = f"---\ncreated_at: 2026-01-0{day}\n---\n"
        project.memory(f"{day}.md", f"{head}Note {day} on [[src/billing.py]].\n")
    workspace = project.open()
    gaps = ask(workspace, "documentation_gaps")
    (target,) = gaps["targets"]
    assert (target["target"], target["memory_count"]) == ("src/billing.py", 3)
    assert target["oldest"] == "2026-01-01T00:00:00Z"
    assert target["newest"] == "2026-01-03T00:00:00Z"
    assert [text["path"] for text in gaps["unlinked"]] == ["docs/lost.md"]
    (group,) = gaps["repeated"]
    assert group["heading"] == "Install"
    assert {section["path"] for section in group["sections"]} == {"docs/guide.md", "docs/lost.md"}
    assert gaps["questions"] == []
    text = present_care.gaps(gaps)
    assert "3 memories (2026-01-01 to 2026-01-03) explain src/billing.py, no document does" in text
    assert "keep_questions" in text
    target["newest"] = target["oldest"]
    assert "3 memories (2026-01-01) explain" in present_care.gaps(gaps)


def test_questions_are_kept_only_where_that_is_switched_on(project: Project) -> None:
    for number in range(60):
        project.doc(f"{number}.md", f"# Page {number}\n\nWords about gardens, number {number}.\n")
    question = {"query": f"zygote quasar {SECRET}"}
    off = project.open()
    ask(off, "search_docs", **question)
    kept = project.open(**{"server.keep_questions": True})
    assert ask(kept, "documentation_gaps")["questions"] == []
    for verb in ("search_docs", "search"):
        ask(kept, verb, **question)
    ask(kept, "search_docs", query="words about gardens, number 7")
    (row,) = ask(kept, "documentation_gaps")["questions"]
    assert row["count"] == 2
    assert "zygote quasar" in row["question"]
    assert SECRET.casefold() not in row["question"]


def test_the_log_is_bounded_and_forgets_what_is_found(project: Project) -> None:
    path = project.root / "state" / "questions.sqlite"
    log = QuestionLog(path, "here", lambda text: text)
    for number in range(questions.MOST_QUESTIONS + 5):
        log.note(f"Question {number}", NOW + timedelta(seconds=number), found=False)
    log.note("question   7", NOW, found=True)
    texts = [question.text for question in log.unanswered()]
    assert len(texts) == questions.MOST_QUESTIONS - 1
    assert "question 0" not in texts
    assert "question 7" not in texts
    assert QuestionLog(path, "elsewhere", lambda text: text).unanswered() == []
    assert path.stat().st_mode & 0o077 == 0
