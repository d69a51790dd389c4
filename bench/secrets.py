"""Measures redaction beside detect-secrets.

Secrets found, harmless strings flagged, false alarms in documentation.

python bench/secrets.py [--data ../shared/data] [--docs DIRECTORY ...] [--detect-secrets PYTHON]
[--alone]

After the table it prints recall by family of rule, and the rules with the most misses. False alarms
are counted for each source tree; "mixed documentation" is the Kubernetes pages and the trees
together.

detect-secrets runs in an environment of its own: one that has it (`--detect-secrets`), or one that
pip makes for now. The exit code is 1 if one of our figures misses its bar.
"""

import argparse
import gzip
import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import venv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ragdocs.text.redaction.redact import Redactor
from ragdocs.text.redaction.rules import FAMILIES

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
RIVAL = "detect-secrets==1.5.0"
# The scoreboard: S5 found at least, S6 flagged at most.
BARS = {
    "recall": ("S5", 0.97, 1.0),
    "harmless flagged": ("S6", 0.0, 0.19),
    "all documentation": ("S6", 0.0, 0.10),
}
BARS["mixed documentation"] = BARS["all documentation"]
MIXED = ("k8s-links", "tree ")
# Reads one JSON string a line, has it scanned as a file, as its users do, and answers with what was
# found.
RIVAL_PROGRAM = """
import json, os, sys, tempfile
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings
path = os.path.join(tempfile.mkdtemp(), "text.md")
with default_settings():
    for raw in sys.stdin:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(json.loads(raw))
        print(json.dumps([secret.secret_value for secret in scan_file(path)]))
"""


@dataclass
class Text:
    """A text and what became of it: how many findings, and what it looks like without them."""

    before: str
    after: str = ""
    found: int = 0
    rules: tuple[str, ...] = ()


@dataclass
class Side:
    """One redactor's results on a set of texts."""

    name: str
    cells: list[str] = field(default_factory=list)


def main() -> int:
    options = arguments()
    rows = labelled(options.data / "secrets" / "secrets.jsonl.gz")
    sets = dict(documentation(options.data, options.docs))
    ours, rival = Side("ragdocs"), Side(RIVAL)
    titles = []
    if rows:
        titles = ["recall", "recall, unseen rules", "recall, no formats", "harmless flagged"]
    titles += [f"false alarms/1k lines: {name}" for name in sets]
    titles += ["mixed documentation", "all documentation", "MB per processor second"]
    python = None if options.alone else rival_python(options.detect_secrets)
    measure(ours, rows, sets, redact)
    if python:
        measure(rival, rows, sets, lambda texts: scan(python, texts))
    width = max(map(len, titles))
    print(f"{'':{width}}  {ours.name:>12}  {RIVAL if python else '(detect-secrets absent)':>22}")
    for index, title in enumerate(titles):
        other = rival.cells[index] if python else "-"
        print(f"{title:{width}}  {ours.cells[index]:>12}  {other:>22}")
    if rows:
        print_families(rows, redact(row["text"] for row in rows))
    return judge(dict(zip(titles, ours.cells, strict=True)))


def print_families(rows: list[dict[str, Any]], results: list[Text]) -> None:
    """Print recall by family: that of a rule is the one that finds most of its rows."""
    hits: dict[str, list[bool]] = defaultdict(list)
    families: dict[str, Counter[str]] = defaultdict(Counter)
    for row, text in zip(rows, results, strict=True):
        if row["label"]:
            hits[row["rule"]].append(is_hit(row, text))
            families[row["rule"]].update(FAMILIES.get(rule, "own") for rule in text.rules)
    by_family: dict[str, list[bool]] = defaultdict(list)
    for rule, found in hits.items():
        ranked = families[rule].most_common(1)
        by_family[ranked[0][0] if ranked else "none"] += found
    print("recall by family of rule:")
    for family, found in sorted(by_family.items()):
        print(f"  {family:10} {share(found)}  of {len(found)}")
    misses = Counter({rule: found.count(False) for rule, found in hits.items()})
    worst = [f"{rule} {count} of {len(hits[rule])}" for rule, count in (+misses).most_common(8)]
    print(f"most misses: {', '.join(worst) or 'none'}")


def judge(figures: dict[str, str]) -> int:
    """Print each line of the scoreboard with its bar, and tell whether one is missed."""
    missed = 0
    for title, (line, low, high) in BARS.items():
        if title in figures:
            is_met = low <= float(figures[title]) <= high
            missed += not is_met
            bar = f"at least {low}" if low else f"at most {high}"
            print(f"{line} {title}: {figures[title]}, {bar}: {'met' if is_met else 'MISSED'}")
    return 1 if missed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    folders = [Path(sysconfig.get_path("purelib")), Path("/usr/share/doc")]
    parser.add_argument("--docs", type=Path, nargs="*", default=folders)
    parser.add_argument("--detect-secrets", type=Path, help="a Python that has it")
    parser.add_argument("--alone", action="store_true", help="leave detect-secrets out")
    return parser.parse_args()


def labelled(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        print(f"ABSENT: {path}: no labelled secrets, so no recall; give --data")
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def documentation(data: Path, roots: Sequence[Path]) -> Iterator[tuple[str, list[str]]]:
    for name in ("k8s-links", "aws-qa"):
        path = data / name / "corpus.jsonl.gz"
        if path.is_file():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                yield name, [json.loads(line)["text"] for line in lines]
        else:
            print(f"ABSENT: {path}")
    for archive in sorted((data / "trees").glob("*.tar.gz")):
        yield f"tree {archive.name.removesuffix('.tar.gz')}", texts_of(archive)
    for number, root in enumerate(roots, 1):
        texts = []
        for path in sorted(root.rglob("*")):
            if path.suffix in {".md", ".rst", ".txt"} and path.is_file():
                texts.append(path.read_text(encoding="utf-8", errors="replace"))
        if texts:
            yield f"folder {number}", texts
        else:
            print(f"ABSENT: no documentation in {root}")


def texts_of(archive: Path) -> list[str]:
    """Read the files of an archive without unpacking it."""
    with tarfile.open(archive) as files:
        members = [files.extractfile(member) for member in files if member.isfile()]
        return [member.read().decode("utf-8", "replace") for member in members if member]


def is_unseen(rule: str) -> bool:
    """Tell whether a rule is in the half that was not looked at before it was first measured."""
    # That was 0.985 found and 0.20 of the harmless flagged. What was learnt then is in the rules
    # now, so this line can only show that nothing was lost since.
    return hashlib.sha256(f"holdout:{rule}".encode()).digest()[0] % 2 == 1


def redact(texts: Iterable[str]) -> list[Text]:
    redactor = Redactor({})
    results = []
    for before in texts:
        redaction = redactor.redact(before)
        rules = tuple(finding.rule for finding in redaction.findings)
        results.append(Text(before, redaction.text, len(rules), rules))
    return results


def measure(side: Side, rows: list[dict[str, Any]], sets: dict[str, list[str]], run: Any) -> None:
    if rows:
        results = run([row["text"] for row in rows])
        judged = [(row, is_hit(row, text)) for row, text in zip(rows, results, strict=True)]
        with patch("ragdocs.text.redaction.forms.FORMATS", re.compile(r"(?!)")):
            bare = run([row["text"] for row in rows]) if run is redact else []
        side.cells += [
            share(hit for row, hit in judged if row["label"]),
            share(hit for row, hit in judged if row["label"] and is_unseen(row["rule"])),
            share(is_hit(row, text) for row, text in zip(rows, bare, strict=False) if row["label"]),
            share(hit for row, hit in judged if not row["label"]),
        ]
    lines = alarms = size = 0
    mixed_lines = mixed_alarms = 0
    start = time.process_time() if run is redact else time.perf_counter()
    for name, texts in sets.items():
        count = sum(text.count("\n") + 1 for text in texts)
        found = sum(text.found for text in run(texts))
        lines, alarms, size = lines + count, alarms + found, size + sum(map(len, texts))
        side.cells.append(f"{1000 * found / count:.3f}")
        if name.startswith(MIXED):
            mixed_lines, mixed_alarms = mixed_lines + count, mixed_alarms + found
    spent = (time.process_time() if run is redact else time.perf_counter()) - start
    side.cells.append(f"{1000 * mixed_alarms / max(mixed_lines, 1):.3f}")
    side.cells += [f"{1000 * alarms / max(lines, 1):.3f}", f"{size / 1e6 / spent:.2f}"]


def is_hit(row: dict[str, Any], text: Text) -> bool:
    if row["label"] and row.get("secret"):
        return row["secret"] not in text.after
    return bool(text.found)


def share(hits: Iterable[bool]) -> str:
    every = list(hits)
    return f"{sum(every) / len(every):.4f}" if every else "-"


def rival_python(given: Path | None) -> Path | None:
    if given:
        return given
    place = Path(tempfile.mkdtemp(prefix="detect-secrets-"))
    venv.create(place, with_pip=True)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", RIVAL]
    done = subprocess.run(command, check=False, capture_output=True)
    if done.returncode:
        print(f"ABSENT: {RIVAL} could not be installed; give --detect-secrets, or --alone")
        return None
    return python


def scan(python: Path, texts: list[str]) -> list[Text]:
    asked = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(
        [python, "-c", RIVAL_PROGRAM], input=asked, check=True, capture_output=True, text=True
    )
    results = []
    for before, line in zip(texts, done.stdout.splitlines(), strict=True):
        found, after = json.loads(line), before
        for value in found:
            after = after.replace(value, "[removed]") if value else after
        results.append(Text(before, after, len(found)))
    return results


if __name__ == "__main__":
    sys.exit(main())
