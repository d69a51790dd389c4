"""The benchmarks run: on sizes that say nothing about speed, but prove that every row can be measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_speed_measures_engines_search_writes_and_indexing(tmp_path: Path) -> None:
    parts = "keywords,vectors,search,writes,indexing,encoding"
    rows = json.loads(
        run("speed", "--sizes", "40", "--repeats", "2", "--only", parts, "--work", str(tmp_path), "--json")
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
    arguments = ["--peers", "none", "--documents", "2", "--queries", "2", "--scratch", str(tmp_path)]
    table = run("peers", *arguments)
    assert table.splitlines()[2].startswith("| ragdocs ")
    assert "passages, each with its vector" in table
