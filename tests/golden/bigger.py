"""A bigger project, written by dice that always fall the same way."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import TypeVar

from tests.golden import rims
from tests.golden.still import START, date_files
from tests.golden.world import World, git, write

# Folder of documentation, tag, and the words of a topic.
TOPICS: dict[str, str] = {
    "auth": "session token password login cookie refresh revocation signature keychain account permission role",
    "billing": "invoice deposit refund tax currency receipt ledger payment discount subscription balance dunning",
    "network": "retry timeout socket proxy latency jitter backoff gateway certificate handshake packet bandwidth",
    "storage": "snapshot shard replica compaction checksum bucket archive partition journal tombstone quota segment",
    "calendar": "berth booking tide week timezone holiday reservation arrival departure schedule overlap reminder",
    "search": "index ranking passage vector keyword tokenizer synonym snippet recall precision query stemmer",
    "deploy": "pipeline rollback container migration canary release staging artifact traffic switch hotfix freeze",
    "frontend": "button layout stylesheet browser component router form keyboard contrast animation modal focus",
    "testing": "fixture assertion coverage flake mutation snapshot regression benchmark harness golden property seed",
    "monitoring": "alert dashboard metric trace histogram outage threshold pager incident sampling uptime probe",
}
VERBS = [
    "keeps", "checks", "replaces", "delays", "rejects", "writes", "measures", "repeats",
    "protects", "counts", "hides", "merges",
]  # fmt: skip
REASONS = (
    "because the old way failed under load", "when a client comes back after an outage",
    "so that nothing is lost on a restart", "unless the operator asked for something else",
    "as long as both sides agree on the version", "before the next request is answered",
    "although it costs a few milliseconds", "after three attempts without an answer",
)  # fmt: skip
HEADINGS = [
    "Overview", "Limits", "Configuration", "Notes", "Errors", "History", "Examples", "Notes",
]  # fmt: skip
AUTHORS = ("Ada <ada@example.org>", "Ben <ben@example.org>", "Chen <chen@example.org>")
KINDS = ("plan", "fact", "journal", "observation", "reflection", "insight")
CHINESE = ("索引保存每个段落的向量。", "令牌过期后客户端必须重新登录。", "潮汐表与泊位日历一致。")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Size:
    """How much of everything there is."""

    documents: int = 150
    memories: int = 120
    entries: int = 60
    commits: int = 80


class Dice:
    """Numbers that look random and are the same on every machine and in every version of Python."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._counter = count()

    def number(self, below: int) -> int:
        digest = blake2b(f"{self._seed}/{next(self._counter)}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % below

    def pick(self, values: Sequence[Value]) -> Value:
        return values[self.number(len(values))]


def sentence(dice: Dice, words: Sequence[str]) -> str:
    """Make a sentence about a topic."""
    subject, thing, other = dice.pick(words), dice.pick(words), dice.pick(words)
    number = 2 + dice.number(90)
    return f"The {subject} {dice.pick(VERBS)} the {thing} and {number} of each {other} {dice.pick(REASONS)}."


def paragraph(dice: Dice, words: Sequence[str], most: int = 5) -> str:
    return " ".join(sentence(dice, words) for _ in range(1 + dice.number(most)))


def document(number: int) -> tuple[str, str]:
    """Return the path and the text of a document."""
    dice = Dice(f"document {number}")
    topic = list(TOPICS)[number % len(TOPICS)]
    words = TOPICS[topic].split()
    title = f"{dice.pick(words)} and {dice.pick(words)}".capitalize()
    created = START - timedelta(days=dice.number(120))
    fields = f"tags: [{topic}, area{number % 4}]\ncreated_at: {created.isoformat()}"
    block = f"---\n{fields}\n---\n\n" if number % 3 == 0 else ""
    parts = [f"# {title}", paragraph(dice, words)]
    for heading in HEADINGS[: 1 + dice.number(len(HEADINGS))]:
        parts += [f"## {heading}", paragraph(dice, words, 8)]
    near = (number + 10) % 150
    parts.append(
        f"See [[docs/{list(TOPICS)[near % len(TOPICS)]}/page-{near:03}.md]] and "
        f"[[src/{topic}/main.py]]."
    )
    if number % 25 == 0:
        parts.append(CHINESE[number // 25 % len(CHINESE)])
    return f"docs/{topic}/page-{number:03}.md", block + "\n\n".join(parts) + "\n"


def memory(number: int) -> tuple[str, str]:
    """Return the path and the text of a memory."""
    dice = Dice(f"memory {number}")
    topic = dice.pick(list(TOPICS))
    words = TOPICS[topic].split()
    created = START - timedelta(days=dice.number(420), hours=dice.number(24))
    fields = [f"type: {KINDS[number % len(KINDS)]}", f"tags: [{topic}, team{number % 3}]"]
    fields.append(f"created_at: {created.isoformat()}")
    if number % 11 == 0:
        fields.append("status: archived")
    if number % 13 == 0:
        fields.append(f"expires_at: {(START + timedelta(days=dice.number(60) - 30)).isoformat()}")
    if number % 5 == 0:
        fields.append(f"importance: {1 + dice.number(10)}")
    body = [paragraph(dice, words)]
    body.append(f"Seen in [[src/{topic}/main.py]], compare [[note-{dice.number(120):03}]].")
    if number % 4 == 0:
        body += ["## Follow-up", paragraph(dice, words, 7)]
    if number % 30 == 0:
        body.append(CHINESE[number // 30 % len(CHINESE)])
    text = "---\n" + "\n".join(fields) + "\n---\n\n" + "\n\n".join(body) + "\n"
    return f".memories/{topic}/note-{number:03}.md", text


def write_history(root: Path, commits: int) -> None:
    """Write the commits of the project in one stream, a hundred times as fast."""
    stream = []
    for number in range(commits):
        dice = Dice(f"commit {number}")
        topic = dice.pick(list(TOPICS))
        words = TOPICS[topic].split()
        seconds = int(
            (START - timedelta(days=2 * (commits - number), hours=dice.number(12))).timestamp()
        )
        message = f"{topic}: {dice.pick(VERBS)} the {dice.pick(words)}\n\n{paragraph(dice, words, 3)}\n".encode()
        content = f"# {topic} {number}\n".encode()
        author = dice.pick(AUTHORS)
        people = "".join(f"{role} {author} {seconds} +0000\n" for role in ("author", "committer"))
        head = f"commit refs/heads/main\n{people}data {len(message)}\n".encode()
        file = (
            f"\nM 100644 inline src/{topic}/{dice.pick(words)}.py\ndata {len(content)}\n".encode()
        )
        stream.append(head + message + file + content + b"\n")
    command = ["git", "-C", str(root), "fast-import", "--quiet"]
    subprocess.run(command, input=b"".join(stream), check=True, capture_output=True)


def write_entries(world: World, entries: int) -> None:
    """Write the journal over MCP, each entry at its own time."""
    with rims.connect(world.project, {"docs.commits": False}) as connection:
        for number in range(entries):
            dice = Dice(f"entry {number}")
            topic = dice.pick(list(TOPICS))
            words = TOPICS[topic].split()
            world.clock.put(START - timedelta(days=3 * (entries - number), hours=dice.number(60)))
            path = f"{topic}/{dice.pick(words)}"
            connection.call("journal_read", {"id": path})
            work = f"{dice.pick(('debugging', 'designing', 'testing'))} the {dice.pick(words)}"
            arguments = {"path": path, "entry": paragraph(dice, words, 3), "work_context": work}
            answer = connection.call("journal_write", arguments)
            assert not answer.failed, answer.text
    world.clock.put(START)


def build(base: Path, size: Size | None = None) -> World:
    """Make the bigger project below a folder."""
    size = size or Size()
    world = World(base)
    for folder in (world.project, world.home):
        folder.mkdir(parents=True)
    write(
        world.project / "config.toml",
        "[docs]\ncommits = true\n[memory]\nenabled = true\n[journal]\nenabled = true\n",
    )
    git(world.project, "init", "-q", "--template=", "-b", "main")
    write_history(world.project, size.commits)
    if size.entries:
        with world.entered("entries"):
            write_entries(world, size.entries)
    documents = [document(number) for number in range(size.documents)]
    memories = [memory(number) for number in range(size.memories)]
    for number, (path, text) in enumerate((*documents, *memories)):
        write(world.project / path, text)
        date_files(world.project / path, START - timedelta(days=1 + number % 90))
    return world
