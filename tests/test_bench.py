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


def test_languages_makes_its_questions_from_the_pages(tmp_path: Path) -> None:
    pages = {
        "de/lampen.md": "# Lampen\n\n## Grüne Lampen kaufen\n\nDie grünen Lampen sind im Laden.\n",
        "de/schiffe.md": "# Schiffe\n\n## Segel und Ruder\n\nSie fahren über das Meer.\n",
        "zh/令牌.md": "# 令牌\n\n## 更新会话令牌\n\n会话的令牌保存在内存中。\n",
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    printed = run("languages", "--pages", str(tmp_path))
    rows = [line for line in printed.splitlines() if line.startswith("| de")]
    assert len(rows) == 2
    assert "words alone" in printed
    assert " 1.0000 " in rows[0] or " 0.5000 " in rows[0]


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
    right_first, floor, everyday, refused, refused_right, without = (
        cell.strip() for cell in rows[0][3:9]
    )
    assert right_first == "100.0%"
    # Two of the everyday questions are about cats.
    assert (floor, everyday) == ("0.36", "1.7%")
    assert (refused, refused_right) == ("0.0%", "0.0%")
    assert without == "100.0%"
