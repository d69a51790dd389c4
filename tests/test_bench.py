"""The benchmarks run: on sizes that say nothing about speed.

But prove that every row can be measured.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_speed_measures_engines_search_writes_and_indexing(tmp_path: Path) -> None:
    parts = "keywords,vectors,search,writes,indexing,encoding"
    rows = json.loads(
        run(
            "speed",
            "--sizes",
            "40",
            "--repeats",
            "2",
            "--only",
            parts,
            "--work",
            str(tmp_path),
            "--json",
        )
    )
    values = {(row["name"], row["corpus"]): row["value"] for row in rows}
    assert {row["part"] for row in rows} == {"keywords", "vectors", "search", "writes", "indexing"}
    assert values["recall at 10 against exact", "generated"] == 1.0
    assert values["match, warm, cpu p50", "generated"] > 0
    assert values["rebuild of the same, texts encoded", "real"] == 0


def test_rows_of_an_earlier_run_join_a_later_one(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier.json"
    arguments = ["--repeats", "2", "--only", "vectors", "--work", str(tmp_path)]
    earlier.write_text(run("speed", "--sizes", "20", *arguments, "--json"))
    table = run("speed", "--sizes", "40", *arguments, "--add", str(earlier))
    lines = [line for line in table.splitlines() if "nearest, cpu p50" in line]
    assert [line.split("|")[4].strip() for line in lines if "generated" in line] == ["20", "40"]
    assert "vectors: " in table.splitlines()[-1]


def test_peers_measures_ragdocs_over_mcp_without_installing_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGDOCS_SERVER_SHARED")
    arguments = [
        "--peers",
        "none",
        "--documents",
        "2",
        "--queries",
        "2",
        "--scratch",
        str(tmp_path),
    ]
    table = run("peers", *arguments)
    assert table.splitlines()[2].startswith("| ragdocs ")
    assert "passages, each with its vector" in table


def label(
    folder: Path, documents: Sequence[object], questions: Sequence[object], answers: dict[str, str]
) -> None:
    folder.mkdir(parents=True)
    for name, rows in ("corpus", documents), ("queries", questions):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    with gzip.open(folder / "qrels.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(
            [
                "query-id\tcorpus-id\tscore\n",
                *(f"{one}\t{other}\t1\n" for one, other in answers.items()),
            ]
        )
    (folder / "meta.json").write_text("{}")


def test_variants_compares_encoders_on_the_same_part_of_every_labelled_set(tmp_path: Path) -> None:
    texts = [
        "Volcanoes erupt.",
        "Bread is baked.",
        "Ships sail.",
        "Cats purr.",
        "Rain falls.",
        "Clocks tick.",
    ]
    animals = [{"_id": str(number), "title": "", "text": text} for number, text in enumerate(texts)]
    questions = [
        {"_id": "q", "text": "Which sound does a cat make?"},
        {"_id": "unanswered", "text": "Why?"},
    ]
    label(tmp_path / "data" / "animals", animals, questions, {"q": "3"})
    # One of the two would come second if the whole set were searched.
    talks = [
        {"_id": group, "text": "I moved to Rome.", "metadata": {"group": group}}
        for group in ("first", "second")
    ]
    asked = [{**talk, "text": "Where do I live?"} for talk in talks]
    label(tmp_path / "data" / "talks", talks, asked, {"first": "first", "second": "second"})
    table = run(
        "variants", "--documents", "3", "--data", str(tmp_path / "data"), "--work", str(tmp_path)
    )
    rows = {
        cells[1]: cells
        for line in table.splitlines()
        if (cells := [cell.strip() for cell in line.split("|")])[1:]
    }
    assert rows["animals"][2:7] == ["3", "1", "1.0000", "1.0000", "+0.00 ± 0.00"]
    assert rows["talks"][2:7] == ["2", "2", "1.0000", "1.0000", "+0.00 ± 0.00"]
    assert (
        float(rows["reference"][3])
        > float(rows["built-in"][3])
        > float(rows["dynamic int8"][3])
        > 0.9
    )
    assert float(rows["built-in"][4]) > 0.9999


def test_variants_says_that_there_are_no_labelled_sets(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.variants", "--data", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"ABSENT: no labelled sets in {tmp_path}")


def pages_and_talks(data: Path) -> None:
    """Write a set of pages and a set of memories."""
    pages = [
        {
            "_id": "animals/cats.md",
            "title": "Cats",
            "text": "They purr when they are happy.",
            "metadata": {},
        },
        {
            "_id": "ships.md",
            "title": "Ships",
            "text": "They sail over the sea.",
            "metadata": {"links": []},
        },
    ]
    label(
        data / "pages", pages, [{"_id": "q", "text": "why do cats purr"}], {"q": "animals/cats.md"}
    )
    turns = [
        {
            "_id": f"{group}/D1:1",
            "text": "Ann: I moved to Rome.",
            "metadata": {"group": group, "session": f"{group}/1", "date": "1:56 pm on 8 May, 2023"},
        }
        for group in ("first", "second")
    ]
    asked = [
        {
            "_id": turn["_id"],
            "text": "Where does Ann live?",
            "metadata": {"group": group, "kind": "fact"},
        }
        for group, turn in zip(("first", "second"), turns, strict=True)
    ]
    label(data / "talks", turns, asked, {f"{g}/D1:1": f"{g}/D1:1" for g in ("first", "second")})


def cells(printed: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("|")][1:-1]
        for line in printed.splitlines()
        if line.startswith("|")
    ]


def test_quality_searches_every_labelled_set_as_a_project(tmp_path: Path) -> None:
    pages_and_talks(tmp_path / "data")
    printed = run("quality", "--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"))
    rows = cells(printed)
    table = {row[0]: row for row in reversed(rows)}
    assert table["pages"][1:8] == ["2", "1", *["1.0000"] * 5]
    assert table["talks"][1:8] == ["2", "2", *["1.0000"] * 5]
    assert ["talks", "fact", "2", *["1.000"] * 7] in rows
    assert "points over RRF of our own two legs on the mean of 2 sets" in printed
    assert (
        run("quality", "--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"), "--kept")
        == printed
    )


def test_chunking_cuts_the_same_texts_in_several_ways(tmp_path: Path) -> None:
    pages_and_talks(tmp_path / "data")
    sentences = " ".join(f"Ship number {number} sails over the sea." for number in range(30))
    long = [{"_id": "ships.md", "title": "Ships", "text": sentences, "metadata": {}}]
    label(
        tmp_path / "data" / "long", long, [{"_id": "q", "text": "sailing ships"}], {"q": "ships.md"}
    )
    places = ["--data", str(tmp_path / "data"), "--work", str(tmp_path / "work")]
    rows = cells(run("chunking", "--sets", "long,talks", "--variants", "5", *places))
    # A head, a line below it and five ways of cutting: for the mean, then for each set.
    means, long_ones = ({row[0]: row for row in rows[start : start + 7]} for start in (0, 7))
    assert float(long_ones["450, 0, headings"][1]) > float(long_ones["900, 0, headings"][1])
    assert means["900, 0, headings"][3:5] == ["1.0000", ""]
    assert means["900, 150, headings"][3:5] == ["1.0000", "+0.0 ± 0.0"]


def test_signals_are_switched_off_one_by_one(tmp_path: Path) -> None:
    pages_and_talks(tmp_path / "data")
    printed = run("signals", "--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"))
    rows = cells(printed)
    assert ["pages", "1", "1.0000", *["off"] * 3, "+0.0 ± 0.0", "+0.0 ± 0.0"] in rows
    assert ["talks", "2", "1.0000", *["+0.0 ± 0.0"] * 5] in rows
    assert next(row for row in rows if row[0] == "talks, asked the day after")[1:6] == [
        "recency",
        "nDCG@10",
        "2",
        "1.000",
        "1.000",
    ]
    assert printed.count(": pass") == 5


def test_scores_tells_how_often_a_first_hit_is_right_and_what_the_floor_costs(
    tmp_path: Path,
) -> None:
    pages_and_talks(tmp_path / "data")
    printed = run("scores", "--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"))
    rows = cells(printed)
    assert next(row for row in rows if row[0] == "pages")[2:4] == ["2", "0.0%"]
    assert [row[3] for row in rows if row[0] in {"documentation", "memories"}]
    assert "The expected calibration error" in printed


def test_entries_measures_every_mode_beside_the_claims_of_its_document(tmp_path: Path) -> None:
    rows = json.loads(
        run(
            "entries",
            "--entries",
            "30",
            "--repeats",
            "2",
            "--no-model",
            "--work",
            str(tmp_path),
            "--json",
        )
    )
    values = {row["name"]: (row["value"], row["goal"]) for row in rows}
    for mode, claimed in (("vector", "4 p50"), ("keyword", "1"), ("hybrid", "4 p50, 4 p95")):
        value, goal = values[f"{mode}, cpu p50"]
        assert value > 0
        assert goal == claimed
    assert values["memory_add, cpu p50"][0] > values["memory_add of what is there, cpu p50"][0]


def test_context_measures_packs_against_reading_and_counts_what_a_crowd_appends(
    tmp_path: Path,
) -> None:
    arguments = [
        "--files",
        "30",
        "--repeats",
        "1",
        "--processes",
        "2",
        "--each",
        "3",
        "--work",
        str(tmp_path),
    ]
    rows = json.loads(run("context", *arguments, "--json"))
    values = {row["name"]: row["value"] for row in rows}
    assert values["files parsed by a second look"] == 0
    assert values["files parsed after one changed"] == 1
    assert values["appended at once and there"] == 6


def test_journal_measures_writes_searches_and_indexing_beside_git_and_memories(
    tmp_path: Path,
) -> None:
    rows = json.loads(
        run("journal", "--entries", "60", "--repeats", "2", "--work", str(tmp_path), "--json")
    )
    values = {(row["part"], row["name"]): row["value"] for row in rows}
    assert {part for part, _ in values} == {"index", "search", "read", "write"}
    assert values["index", "first index, journal to memory"] > 0
    assert values["search", "journal to memory"] > 0
    assert values["write", "journal_write to git add, git commit"] > 0
