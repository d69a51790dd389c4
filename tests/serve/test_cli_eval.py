"""`ragdocs eval`, as a person runs it on documents of their own."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.serve.conftest import answer

from ragdocs.verbs.quality import questions as known_items

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Run

SUBJECTS = {
    "bread": "The baker kneads the sourdough slowly and leaves the loaf in a cold cellar to rise.",
    "ships": "A schooner carries barrels of tar across the northern harbour before autumn storms.",
    "bees": "Every beekeeper watches the swarm leave its hive towards blooming linden trees.",
    "clocks": "Pendulum clocks lose seconds whenever the brass rod expands on a summer afternoon.",
}


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "eval")


@pytest.fixture
def library(project: Project) -> Project:
    more = "What else is worth knowing stands further below. " * 5
    links = dict.fromkeys(SUBJECTS, "bread") | {"bread": "ships"}
    for name, sentence in SUBJECTS.items():
        link = f"See [all about {links[name]} here]({links[name]}.md)."
        text = (
            f"# All about {name}\n\n{sentence} {more}\n\n## Keeping {name} well\n\n{link} {more}\n"
        )
        project.doc(f"{name}.md", text)
    return project


def test_questions_are_made_from_headings_links_and_sentences_and_their_variants(
    library: Project,
) -> None:
    questions = known_items.make(library.open().corpus("docs"), 50)
    answers = {(question.kind, question.text): set(question.answers) for question in questions}
    assert answers["heading", "Keeping bees well"] == {"docs/bees.md"}
    assert answers["heading, typo", "Kepeing bees well"] == {"docs/bees.md"}
    assert answers["link", "all about bread here"] == {"docs/bread.md"}
    assert any(kind == "sentence" and "kneads" in text for kind, text in answers)
    assert len({question.id for question in questions}) == len(questions)
    assert questions == known_items.make(library.open().corpus("docs"), 50)
    kinds = [question.kind for question in known_items.make(library.open().corpus("docs"), 3)]
    assert kinds.count("heading") == 3


def test_words_that_keep_the_same_company_stand_for_each_other(project: Project) -> None:
    for number, letter in enumerate("abcdef"):
        sentence = list(SUBJECTS.values())[number % 4]
        for word in ("delete", "remove"):
            text = f"Commands that {word} files vanish carefully. {sentence}"
            project.doc(f"{word}{number}.md", f"# How to {word} part {letter}x\n\n{text}\n")
    questions = known_items.make(project.open().corpus("docs"), 50)
    reworded = " ".join(each.text for each in questions if each.kind == "heading, other words")
    assert "delete" in reworded.casefold()
    assert "remove" in reworded.casefold()


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
        text = f"# Copy {copy}\n\n{SUBJECTS['bread']}\n\n{SUBJECTS['bread']}\n"
        library.doc(f"copies/{copy}.md", text)
    # The questions that were kept are the ones that are compared, and the same are made of what is
    # still there.
    code, printed, _ = run()
    assert code in {0, 1}
    assert "since the baseline of" in printed


def test_two_ways_are_compared_side_by_side(library: Project, run: Run) -> None:
    def against(way: str) -> Any:
        return answer(run("--against", way, "--json"))["against"]

    other = against("meaning")
    assert other["way"] == "meaning"
    assert other["compared"] > 10
    assert {one["slice"] for one in other["slices"]} >= {"heading", "all"}
    assert against("embedding.model=none")["compared"] == other["compared"]
    assert against("0.7/0.3")["points"] == pytest.approx(0, abs=30)
    code, _, error = run("--against", "magic")
    assert code == 1
    assert "0.7/0.3" in error


def test_labels_are_read_from_files_and_counted_by_kind(library: Project, run: Run) -> None:
    judged = "query-id\tcorpus-id\tscore\nq1\tdocs/bees.md\t1\nq2\tdocs/ships.md\t2\n"
    labels = library.write("labels/qrels.tsv", judged)
    easy = {"kind": "easy", "prefix": "docs/"}
    short = {"kind": "short", "date": "2026-01-01T00:00:00+00:00"}
    questions: list[dict[str, Any]] = [
        {"_id": "q1", "text": "when does the swarm leave", "metadata": easy},
        {"_id": "q2", "text": "schooner", "metadata": short},
        {"_id": "q3", "text": "not labelled"},
    ]
    with gzip.open(labels.with_name("queries.jsonl.gz"), "wt") as file:
        file.writelines(json.dumps(question) + "\n" for question in questions)
    slices = {one["slice"]: one for one in answer(run("--qrels", str(labels), "--json"))["slices"]}
    counts = {name: one["questions"] for name, one in slices.items()}
    assert counts == {"easy": 1, "short": 1, "all": 2}
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
