"""The benchmarks start: on sizes that say nothing about speed, but prove that rows are measured."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHES = sorted(path.stem for path in (ROOT / "bench").glob("[!_]*.py"))


def run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", f"bench.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", BENCHES)
def test_every_bench_says_what_it_measures(name: str) -> None:
    assert "--help" in run(name, "--help")


def test_speed_measures_search_and_writes(tmp_path: Path) -> None:
    parts = "search,writes"
    sizes = ["--sizes", "20", "--repeats", "1", "--only", parts]
    rows = json.loads(run("speed", *sizes, "--work", str(tmp_path), "--json"))
    assert {row["part"] for row in rows} == set(parts.split(","))
    values = {(row["name"], row["corpus"]): row["value"] for row in rows}
    assert values["verb, warm, cpu p50", "generated"] > 0


def test_speed_is_compared_with_checkouts_only(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.speed", "--against", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no src/ragdocs in it" in done.stderr


def label(folder: Path, documents: list[object], question: str, answer: str) -> None:
    """Write a labelled set of one question."""
    folder.mkdir(parents=True)
    queries: list[object] = [{"_id": "q", "text": question}]
    rows = {"corpus": documents, "queries": queries}
    for name, items in rows.items():
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(item) + "\n" for item in items)
    with gzip.open(folder / "qrels.tsv.gz", "wt", encoding="utf-8") as file:
        file.write(f"query-id\tcorpus-id\tscore\nq\t{answer}\t1\n")
    (folder / "meta.json").write_text("{}")


def test_quality_searches_every_labelled_set_as_a_project(tmp_path: Path) -> None:
    cats = {"_id": "animals/cats.md", "title": "Cats", "text": "They purr when they are happy."}
    ships = {"_id": "ships.md", "title": "Ships", "text": "They sail over the sea."}
    label(tmp_path / "data/pages", [cats, ships], "why do cats purr", "animals/cats.md")
    said = {"session": "1", "date": "1:56 pm on 8 May, 2023"}
    turn = {"_id": "D1:1", "text": "Ann: I moved to Rome.", "metadata": said}
    label(tmp_path / "data/talks", [turn], "Where does Ann live?", "D1:1")
    printed = run("quality", "--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"))
    lines = [line.split("|") for line in printed.splitlines() if line.startswith("|")]
    cells = {line[1].strip(): [cell.strip() for cell in line[2:8]] for line in reversed(lines)}
    assert cells["pages"] == ["2", "1", *["1.0000"] * 4]
    assert cells["talks"] == ["1", "1", *["1.0000"] * 4]
    printed = run("silence", "--data", str(tmp_path / "data"), "--work", str(tmp_path / "work"))
    rows = [line.split("|") for line in printed.splitlines() if line.startswith("| pages")]
    with_answer, right_first, without = (cell.strip() for cell in rows[0][3:6])
    assert (with_answer, right_first) == ("0.0%", "0.0%")
    assert without == "100.0%"
