"""`ragdocs eval`: how well this project's own texts are found, with labels or without."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragdocs.errors import NotFoundError, ParseError, ValidationError
from ragdocs.project import folders
from ragdocs.serve.cli import eval_answer
from ragdocs.serve.cli.commands import VerbCommand, common_options
from ragdocs.serve.cli.output import print_answer
from ragdocs.serve.cli.progress import Progress
from ragdocs.serve.cli.project import catch_up, open_workspace
from ragdocs.serve.source import load_config
from ragdocs.system import files

if TYPE_CHECKING:
    from ragdocs.search.corpus import Corpus
    from ragdocs.verbs.quality.evaluation import Outcome, Question, Weights

EXAMPLES = """\
examples:
  ragdocs eval                             questions made from headings, links and sentences
  ragdocs eval --lane memory --keep        the same of the memories; keep it as the baseline
  ragdocs eval                             ... and later see what got better and worse since
  ragdocs eval --against words             or: meaning, 0.7/0.3, embedding.model=none
  ragdocs eval --qrels labels/qrels.tsv    with labels: query-id, path, grade

queries.jsonl, beside the labels, has one question a line:
  {"_id": ..., "text": ..., "metadata": {"kind": slice, "prefix": folder, "date": ISO 8601}}
exit codes: 0 done, 1 failed or surely worse than the baseline (p < 0.05), 2 wrong usage
"""
ALONE: dict[str, Weights] = {"words": (0.0, 1.0), "meaning": (1.0, 0.0), "": None}
# Of a label: query, path, grade.
CELLS = 3


@dataclass(frozen=True, slots=True)
class Options:
    """What is to be measured, and beside what."""

    project: str | None
    settings: tuple[str, ...]
    lane: str
    qrels: Path | None
    queries: Path | None
    most: int
    against: str | None
    keep: bool


def _eval(as_json: bool, **given: Any) -> int:
    from ragdocs.verbs.quality import evaluation

    options = Options(**given)
    workspace = open_workspace(options.project, options.settings, lanes=(options.lane,))
    catch_up(workspace)
    corpus = workspace.corpus(options.lane)
    now = workspace.clock()
    questions = _questions(options, corpus)
    with Progress() as progress:
        outcomes = evaluation.run(corpus, questions, now, progress=progress.show)
        answer: dict[str, Any] = {
            "lane": options.lane,
            "labels": str(options.qrels) if options.qrels else "made from the texts",
            **eval_answer.summary(evaluation.summary(outcomes)),
            "notes": list(corpus.notes()),
        }
        if options.against:
            others = _otherwise(options, options.against, questions, progress)
            gains = evaluation.against(outcomes, evaluation.as_saved(others))
            answer["against"] = {
                "way": options.against,
                **eval_answer.summary(evaluation.summary(others)),
                **eval_answer.gains(gains),
            }
    file = _baseline_file(workspace.config.root, options)
    earlier = _baseline(file)
    is_worse = False
    if earlier:
        since = eval_answer.gains(evaluation.against(outcomes, earlier["questions"]))
        answer["since"] = {"at": earlier["at"], **since}
        is_worse = since["points"] < 0 and since["chance"] < eval_answer.SURE
    if options.keep:
        moment = now.isoformat(timespec="seconds")
        _keep(file, {"at": moment, "questions": evaluation.as_saved(outcomes)})
        answer["kept"] = str(file)
    print_answer(answer, eval_answer.text, as_json=as_json)
    return int(is_worse)


def _questions(options: Options, corpus: Corpus) -> list[Question]:
    from ragdocs.verbs.quality.questions import make

    if options.qrels:
        questions = list(_labelled(options.qrels, options.queries))
    else:
        questions = list(make(corpus, options.most))
    if not questions:
        raise ValidationError(
            "there is nothing to ask", "A few documents with headings or whole sentences are needed"
        )
    return questions


def _keep(file: Path, baseline: Mapping[str, Any]) -> None:
    files.make_directories(file.parent, 0o700)
    written = json.dumps(baseline, ensure_ascii=False)
    files.write_atomic(file, written.encode("utf-8", "surrogatepass"))


def _otherwise(
    options: Options, way: str, questions: Sequence[Question], progress: Progress
) -> list[Outcome]:
    """Ask the same questions another way.

    With other weights, or with other settings in a workspace of its own.
    """
    from ragdocs.verbs.quality import evaluation
    from ragdocs.workspace import Workspace

    settings = list(options.settings)
    weights = None
    if "=" in way:
        settings.append(way)
    else:
        weights = _weights(way)
    workspace = Workspace(load_config(options.project, settings), lanes=(options.lane,))
    workspace.load()
    workspace.sync(progress.show)
    workspace.embed(progress.show)
    corpus = workspace.corpus(options.lane)
    return evaluation.run(corpus, questions, workspace.clock(), weights, progress.show)


def _weights(way: str) -> Weights:
    if way in ALONE:
        return ALONE[way]
    vector, slash, keyword = way.partition("/")
    try:
        weights = float(vector), float(keyword)
    except ValueError:
        weights = -1.0, -1.0
    if not slash or min(weights) < 0 or not sum(weights):
        raise ValidationError(
            f"--against {way[:60]!r} is not a way to search",
            "Write words, meaning, 0.7/0.3 or KEY=VALUE",
        )
    return weights


def _labelled(qrels: Path, queries: Path | None) -> Iterator[Question]:
    """Read labelled questions; those that nothing answers are passed over."""
    grades = _grades(qrels)
    file = queries or _queries_beside(qrels)
    for row in _lines(file):
        try:
            question = _question(json.loads(row), grades)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ParseError(
                f"{file}: {row[:80]!r} is not a question: {error}", "See `ragdocs eval --help`"
            ) from error
        if question.answers:
            yield question


def _grades(qrels: Path) -> dict[str, dict[str, int]]:
    """Read the grades above zero of each question's documents."""
    grades: dict[str, dict[str, int]] = {}
    for row in _lines(qrels):
        cells = row.split("\t")
        is_label = len(cells) == CELLS and cells[2].strip().lstrip("-").isdigit()
        is_heading = not grades and row.startswith("query")
        if is_label:
            query_id, path, grade = cells
            if int(grade) > 0:
                grades.setdefault(query_id, {})[path] = int(grade)
        elif not is_heading:
            raise ParseError(
                f"{qrels}: {row[:80]!r} is not a label", "Write query-id, path, grade, by tabs"
            )
    return grades


def _queries_beside(qrels: Path) -> Path:
    """Return the file of questions beside the labels, packed or not."""
    plain = qrels.with_name("queries.jsonl")
    packed = qrels.with_name("queries.jsonl.gz")
    if packed.exists() and not plain.exists():
        return packed
    return plain


def _question(row: Any, grades: Mapping[str, Mapping[str, int]]) -> Question:
    """Return the question of a row; one without labels has no answers."""
    from ragdocs.verbs.quality.evaluation import Question

    metadata = row.get("metadata") or {}
    asked_at = None
    if metadata.get("date"):
        asked_at = datetime.fromisoformat(metadata["date"]).astimezone()
    question_id = str(row["_id"])
    return Question(
        question_id,
        str(row["text"]),
        grades.get(question_id, {}),
        str(metadata.get("kind", "")),
        str(metadata.get("prefix", "")),
        asked_at,
    )


def _lines(file: Path) -> list[str]:
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"{file} cannot be read: {error.strerror or error}", "Name an existing file"
        ) from error
    return [row for row in content.decode("utf-8", "replace").splitlines() if row.strip()]


def _baseline_file(root: Path, options: Options) -> Path:
    """Return where the outcome of these questions is kept.

    Outside the project, as a baseline is one person's.
    """
    digest = blake2b(
        f"{options.lane}\0{options.qrels or options.most}".encode(), digest_size=6
    ).hexdigest()
    folder = folders.resolved(folders.state_dir() / "eval")
    return folder / f"{folders.project_key(root)}-{digest}.json"


def _baseline(file: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) and {"at", "questions"} <= loaded.keys() else {}


_FILE = click.Path(path_type=Path)

_EVAL = VerbCommand(
    "eval",
    help="measure how well texts are found, with labels or without",
    epilog=EXAMPLES,
    callback=_eval,
    params=[
        click.Option(
            ["--lane"],
            type=click.Choice(("docs", "memory")),
            default="docs",
            help="what to measure (default: docs)",
        ),
        click.Option(
            ["--qrels"], type=_FILE, metavar="FILE", help="labels: query-id, path, grade, by tabs"
        ),
        click.Option(
            ["--queries"],
            type=_FILE,
            metavar="FILE",
            help="questions (default: queries.jsonl beside --qrels)",
        ),
        click.Option(
            ["--most"], type=int, default=50, help="made-up questions of each kind (default: 50)"
        ),
        click.Option(
            ["--against"],
            metavar="WAY",
            help="words, meaning, VECTOR/KEYWORD weights, or KEY=VALUE",
        ),
        click.Option(
            ["--keep"], is_flag=True, help="keep this outcome as the baseline of later runs"
        ),
        *common_options(),
    ],
)
COMMANDS = (_EVAL,)
