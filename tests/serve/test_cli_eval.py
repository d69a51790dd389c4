"""`ragdocs eval`, as a person runs it on documents of their own."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.serve.cli import app as cli
from ragdocs.verbs.quality import questions as known_items

if TYPE_CHECKING:
    from tests.conftest import Project

Run = Callable[..., tuple[int, str, str]]
SUBJECTS = {
    "bread": "The baker kneads the sourdough slowly and leaves the loaf overnight in a cold cellar to rise.",
    "ships": "A schooner carries barrels of tar across the northern harbour before autumn storms arrive again.",
    "bees": "Every beekeeper watches the swarm leave its hive towards blooming linden trees around midsummer.",
    "clocks": "Pendulum clocks lose seconds whenever the brass rod expands under the heat of a summer afternoon.",
}


@pytest.fixture
def run(project: Project, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(
            ["eval", *arguments, "--project", str(project.root), "--set", "embedding.model=hash"]
        )
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def library(project: Project) -> Project:
    for name, sentence in SUBJECTS.items():
        other = next(one for one in SUBJECTS if one != name)
        link = f"See [all about {other} here]({other}.md)."
        more = "What else is worth knowing stands further below. " * 5
        project.doc(
            f"{name}.md",
            f"# All about {name}\n\n{sentence} {more}\n\n## Keeping {name} well\n\n{link} {more}\n",
        )
    return project


def answer(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result[2]
    return json.loads(result[1])


def test_questions_are_made_from_headings_links_and_sentences_and_their_variants(
    library: Project,
) -> None:
    questions = known_items.make(library.open().corpus("docs"), 50)
    asked = {(question.kind, question.text): set(question.answers) for question in questions}
    assert asked["heading", "Keeping bees well"] == {"docs/bees.md"}
    assert asked["heading, typo", "Kepeing bees well"] == {"docs/bees.md"}
    assert asked["link", "all about bread here"] == {"docs/bread.md"}
    sentences = [text for kind, text in asked if kind == "sentence"]
    assert any("kneads" in text for text in sentences)
    assert len({question.id for question in questions}) == len(questions)
    assert questions == known_items.make(library.open().corpus("docs"), 50)
    assert (
        sum(
            question.kind == "heading"
            for question in known_items.make(library.open().corpus("docs"), 3)
        )
        == 3
    )


def test_words_that_keep_the_same_company_stand_for_each_other(project: Project) -> None:
    for number in range(6):
        for word in ("delete", "remove"):
            text = f"Commands that {word} files vanish carefully. {list(SUBJECTS.values())[number % 4]}"
            project.doc(
                f"{word}{number}.md", f"# How to {word} part {'abcdef'[number]}x\n\n{text}\n"
            )
    asked = known_items.make(project.open().corpus("docs"), 50)
    reworded = [
        question.text.casefold() for question in asked if question.kind == "heading, other words"
    ]
    assert any("delete" in text for text in reworded)
    assert any("remove" in text for text in reworded)


def test_an_unlabelled_project_is_measured_by_slices_and_stages(library: Project, run: Run) -> None:
    found = answer(run("--json"))
    slices = {one["slice"]: one for one in found["slices"]}
    assert slices["sentence"]["recall_10"] == 1.0
    assert {"heading", "heading, typo", "link", "all"} <= slices.keys()
    assert set(found["milliseconds"]) == {"encode", "words", "meaning", "ranking", "all"}
    assert "since" not in found
    assert "nDCG@10" in run()[1]


def test_a_baseline_is_kept_and_later_runs_name_what_got_worse(library: Project, run: Run) -> None:
    assert "kept as the baseline" in run("--keep")[1]
    same = answer(run("--json"))["since"]
    assert (same["points"], same["better"], same["worse"]) == (0.0, 0, 0)
    for copy in range(12):
        library.doc(
            f"copies/{copy}.md", f"# Copy {copy}\n\n{SUBJECTS['bread']}\n\n{SUBJECTS['bread']}\n"
        )
    # The questions that were kept are the ones that are compared, and the same are made of what is
    # still there.
    code, printed, _ = run()
    assert code in {0, 1}
    assert "since the baseline of" in printed


def test_two_ways_are_compared_side_by_side(library: Project, run: Run) -> None:
    other = answer(run("--against", "meaning", "--json"))["against"]
    assert other["way"] == "meaning"
    assert other["compared"] > 10
    assert {one["slice"] for one in other["slices"]} >= {"heading", "all"}
    assert (
        answer(run("--against", "embedding.model=none", "--json"))["against"]["compared"]
        == other["compared"]
    )
    assert answer(run("--against", "0.7/0.3", "--json"))["against"]["points"] == pytest.approx(
        0, abs=30
    )
    code, _, error = run("--against", "magic")
    assert code == 1
    assert "0.7/0.3" in error


def test_labels_are_read_from_files_and_counted_by_kind(library: Project, run: Run) -> None:
    labels = library.write(
        "labels/qrels.tsv",
        "query-id\tcorpus-id\tscore\nq1\tdocs/bees.md\t1\nq2\tdocs/ships.md\t2\n",
    )
    questions = [
        {
            "_id": "q1",
            "text": "when does the swarm leave",
            "metadata": {"kind": "easy", "prefix": "docs/"},
        },
        {
            "_id": "q2",
            "text": "schooner",
            "metadata": {"kind": "short", "date": "2026-01-01T00:00:00+00:00"},
        },
        {"_id": "q3", "text": "not labelled"},
    ]
    with gzip.open(labels.with_name("queries.jsonl.gz"), "wt") as file:
        file.writelines(json.dumps(question) + "\n" for question in questions)
    slices = {one["slice"]: one for one in answer(run("--qrels", str(labels), "--json"))["slices"]}
    assert {name: one["questions"] for name, one in slices.items()} == {
        "easy": 1,
        "short": 1,
        "all": 2,
    }
    assert slices["all"]["ndcg_10"] == 1.0


def test_labels_that_cannot_be_read_are_named(library: Project, run: Run) -> None:
    labels = library.write("labels/qrels.tsv", "q1\tdocs/bees.md\tgood\n")
    assert "is not a label" in run("--qrels", str(labels))[2]
    labels.write_text("q1\tdocs/bees.md\t1\n")
    assert "queries.jsonl cannot be read" in run("--qrels", str(labels))[2]
    labels.with_name("queries.jsonl").write_text('{"text": 1}\n')
    assert "is not a question" in run("--qrels", str(labels))[2]


def test_an_empty_project_says_that_there_is_nothing_to_ask(run: Run) -> None:
    code, _, error = run()
    assert code == 1
    assert "nothing to ask" in error
