"""Corpora to measure on: generated ones that are like English, and copies of real folders."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs import config
from ragdocs.open_lanes import OpenLane
from ragdocs.protocols import Vectors
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.types import Chunk, Document
from ragdocs.workspace import Workspace

COMMON = """
the of and to a in is that for it as with be on by are this from or an at which not can if when has
have will all use file each one other more server value name default should set must data you your
config option request only its new between user path example type also using version string list
time same run command first key service may than into any then there where return called error after
object index field before such because about
"""
ONSETS = "b c d f g h l m n p r s t v st tr pl gr ch sh"
# English texts of this size use about this many different words.
WORDS = 40_000
# Zipf and Mandelbrot's fit of English: frequency of the word at rank r is 1 / (r + 2.7) ** 1.07.
OFFSET, EXPONENT = 2.7, 1.07
# A document returns to its own subject: this share of its words are drawn from a few of its own.
TOPICAL, OWN_WORDS = 0.2, 60
WORDS_IN_A_SECTION = 130
SECTIONS = {"docs": 10, "memory": 4}
MODULES = 200
# Characters of a document, so many that all its passages are among them.
WHOLE = 10**9


class StandIn:
    """Vectors at no cost in place of the built-in model's, as clustered as real ones."""

    identity = OnnxEncoder.identity
    dim = OnnxEncoder.dim
    latin_only = OnnxEncoder.latin_only
    _LATENT, _CLUSTERS = 32, 300

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self._centres = rng.normal(size=(self._CLUSTERS, self._LATENT)).astype(np.float32)
        self._spread = rng.normal(size=(self._LATENT, self.dim)).astype(np.float32)

    def rest(self, _: float, /) -> bool:
        return False

    def prepare(self) -> None:
        pass

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = np.empty((len(texts), self._LATENT), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
            noise = np.random.default_rng(seed).normal(scale=0.6, size=self._LATENT)
            row[:] = self._centres[seed % self._CLUSTERS] + noise
        vectors = rows @ self._spread
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


class Writer:
    """Writes documents of made-up words that are as frequent and as long as those of English."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)
        common = COMMON.split()
        self._words = np.array([*common, *_invented(WORDS - len(common))], dtype=object)
        weights = 1.0 / (np.arange(len(self._words)) + OFFSET) ** EXPONENT
        self._cumulative = np.cumsum(weights / weights.sum())

    def document(self, lane: str, number: int, documents: int) -> str:
        own = self.draw(OWN_WORDS * 4)[-OWN_WORDS:]
        head = f"# {self._title(own)} {number}\n"
        if lane == "memory":
            kind = ("journal", "plan", "fact", "observation")[number % 4]
            day = f"2025-{number % 12 + 1:02}-{number % 28 + 1:02}T10:00:00Z"
            tags = f"[{own[0]}, area{number % 50}]"
            head = f"---\ntype: {kind}\ntags: {tags}\ncreated_at: {day}\n---\n{head}"
        parts = [head]
        for section in range(SECTIONS[lane]):
            if section:
                parts.append(f"## {self._title(own)}\n")
            parts.append(self._prose(own, self._link(lane, number + section, documents)))
        return "\n".join(parts)

    def _link(self, lane: str, number: int, documents: int) -> str:
        if lane == "memory":
            return f"[[src/module_{number * 7 % MODULES}.py]]"
        return f"[there](page-{number * 13 % documents:05}.md)" if number % 3 == 0 else ""

    def draw(self, count: int) -> npt.NDArray[Any]:
        """Draw words as often as English has them."""
        ranks = np.searchsorted(self._cumulative, self._rng.random(count))
        return np.asarray(self._words[ranks])

    def _title(self, own: npt.NDArray[Any]) -> str:
        return " ".join(self._rng.choice(own, 3)).capitalize()

    def _prose(self, own: npt.NDArray[Any], link: str) -> str:
        words = self.draw(WORDS_IN_A_SECTION)
        topical = self._rng.random(len(words)) < TOPICAL
        words[topical] = self._rng.choice(own, int(topical.sum()))
        text = [str(word) for word in words]
        for start in range(0, len(text), 13):
            text[start] = text[start].capitalize()
            text[min(start + 12, len(text) - 1)] += "."
        return f"{' '.join(text)} {link}\n"


def _invented(count: int) -> list[str]:
    rng = random.Random(11)
    onsets = ONSETS.split()
    ends = ["", "n", "r", "s", "t", "l", "nd", "ck"]
    made: dict[str, None] = {}
    while len(made) < count:
        # Rare words are longer.
        syllables = 2 + (len(made) > 2_000) + rng.randrange(2)
        parts = [rng.choice(onsets) + rng.choice("aeiou") for _ in range(syllables)]
        word = "".join(parts) + rng.choice(ends)
        made.setdefault(word + rng.choice(["", "", "", "ing", "ed", "s", "tion"]))
    return list(made)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A project on disk with an index that is built and saved."""

    name: str
    root: Path
    workspace: Workspace
    open_lane: OpenLane
    built: dict[str, float]

    @property
    def chunks(self) -> int:
        return self.open_lane.corpus.counts()["chunks"]

    def passages(self) -> list[tuple[Document, Chunk]]:
        """Return every passage with its document."""
        documents = self.open_lane.corpus.documents()
        held = self.open_lane.corpus.passages([document.id for document in documents], WHOLE)
        return [(document, chunk) for document in documents for chunk in held[document.id]]

    def queries(self, count: int, seed: int = 5) -> list[str]:
        """Return pieces of sentences that stand in the corpus, as people half remember them."""
        rng = random.Random(seed)
        passages = self.passages()
        found: list[str] = []
        while len(found) < count:
            _, chunk = rng.choice(passages)
            words = re.findall(r"[A-Za-z]{2,}", chunk.text)
            if len(words) >= 8:
                start = rng.randrange(len(words) - 7)
                found.append(" ".join(words[start : start + rng.randrange(5, 9)]).lower())
        return found


def enter(work: Path) -> None:
    """Keep caches, keys, sockets and settings of whoever runs this out of it."""
    for variable in ("CACHE", "STATE", "DATA", "CONFIG"):
        os.environ[f"XDG_{variable}_HOME"] = str(work / variable.lower())
    runtime = work / "run"
    runtime.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    for variable in [name for name in os.environ if name.startswith("RAGDOCS_")]:
        del os.environ[variable]


def generate(work: Path, lane: str, chunks: int) -> Corpus:
    """Write a project with about this many chunks in one lane, unless it is there, and index it."""
    root = work / f"{lane}-{chunks}"
    if not (root / "config.toml").exists():
        write(root, lane, chunks)
        configure(root, lane)
    return index("generated", root, lane)


def write(root: Path, lane: str, chunks: int) -> None:
    """Write the files of a lane with about this many chunks."""
    writer = Writer()
    documents = max(1, chunks // SECTIONS[lane])
    folder = root / (".memories" if lane == "memory" else "docs")
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(documents):
        text = writer.document(lane, number, documents)
        (folder / f"page-{number:05}.md").write_text(text, encoding="utf-8")


def copy(work: Path, source: Path) -> Corpus:
    """Copy the Markdown of a real folder into a project and index it."""
    root = work / "real"
    shutil.rmtree(root, ignore_errors=True)
    for file in sorted(source.rglob("*.md")):
        target = root / "docs" / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    configure(root, "docs")
    return index("real", root, "docs")


def configure(root: Path, lane: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    memory, docs = str(lane == "memory").lower(), str(lane == "docs").lower()
    config_text = f"[memory]\nenabled = {memory}\n[docs]\nenabled = {docs}\n"
    (root / "config.toml").write_text(config_text)


def index(name: str, root: Path, lane: str) -> Corpus:
    """Open a project with vectors from the stand-in; what is already saved is not built again."""
    workspace = Workspace(config.load(root, project=root))
    workspace.encoder = StandIn()
    open_lane = workspace.open_lanes[lane]
    open_lane.corpus.encoder = workspace.encoder
    workspace.load()
    cpu = time.process_time()
    report = open_lane.corpus.sync()
    cpu = time.process_time() - cpu
    open_lane.corpus.embed()
    # Made-up words and vectors are as like each other as unrelated ones are: here the least floor
    # there is counts.
    info = open_lane.index.info()
    counts = {"chunks": info.passages, "vectors": info.vectors}
    open_lane.index.calibrate({"middle": 0.0, "spread": 0.02, **counts})
    workspace.save()
    files = report.added + report.changed
    return Corpus(name, root, workspace, open_lane, {"files": files, "cpu": cpu})
