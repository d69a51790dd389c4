"""The answer of `ragdocs eval`: rounded figures for scripts, and tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragdocs.text.visible import line

if TYPE_CHECKING:
    from ragdocs.verbs.quality.evaluation import Change, Gains, Slice, Summary, Timing

# A difference that chance makes less often than this counts as one.
SURE = 0.05
# Questions that are named in a comparison, of those that got better and of those that got worse.
MOST_NAMED = 20
HEADER = f"{'':24}{'questions':>10}{'Recall@5':>10}{'Recall@10':>11}{'MRR@10':>8}{'nDCG@10':>9}"


def summary(outcome: Summary) -> dict[str, Any]:
    """Lay out the means by kind of question, the share above the floor, and the times."""
    times = {}
    for stage, timing in outcome.timings.items():
        times[stage] = _milliseconds(timing)
    return {
        "slices": list(map(_slice, outcome.slices)),
        "passed": round(outcome.passed, 4),
        "milliseconds": times,
    }


def gains(difference: Gains) -> dict[str, Any]:
    """Lay out how one run differs from another."""
    other_ndcg = difference.other_ndcg
    if other_ndcg is not None:
        other_ndcg = round(other_ndcg, 4)
    named = [*difference.better[:MOST_NAMED], *difference.worse[:MOST_NAMED]]
    return {
        "compared": difference.compared,
        "ndcg_10": other_ndcg,
        "points": round(difference.difference.points, 2),
        "error": round(difference.difference.error, 2),
        "chance": round(difference.difference.chance, 4),
        "better": len(difference.better),
        "worse": len(difference.worse),
        "changes": list(map(_change, named)),
    }


def text(answer: Mapping[str, Any]) -> str:
    """Write an outcome as tables."""
    times = []
    for stage, timing in answer["milliseconds"].items():
        times.append(f"{stage} {timing['p50']} / {timing['p95']}")
    parts = [
        f"{answer['lane']}: questions {line(answer['labels'])}",
        _table(answer),
        f"{answer['passed']:.1%} of the questions have a result above the floor of 0.5",
        f"milliseconds, p50 / p95: {', '.join(times)}",
    ]
    other = answer.get("against")
    if other:
        parts += [f"against {line(other['way'])}:", _table(other), _changes(other)]
    since = answer.get("since")
    if since:
        parts += [f"since the baseline of {since['at']}:", _changes(since)]
    if answer.get("kept"):
        parts.append(f"kept as the baseline: {answer['kept']}")
    for note in answer["notes"]:
        parts.append(f"note: {note}")
    return "\n".join(parts)


def _slice(part: Slice) -> dict[str, Any]:
    return {
        "slice": part.kind,
        "questions": part.questions,
        "recall_5": round(part.means.recall_5, 4),
        "recall_10": round(part.means.recall_10, 4),
        "mrr_10": round(part.means.mrr_10, 4),
        "ndcg_10": round(part.means.ndcg_10, 4),
    }


def _milliseconds(timing: Timing) -> dict[str, float]:
    return {"p50": round(timing.median * 1000, 2), "p95": round(timing.slow * 1000, 2)}


def _change(change: Change) -> dict[str, Any]:
    return {
        "question": change.question.text,
        "kind": change.question.kind,
        "answer": min(change.question.answers),
        "before": change.before,
        "after": change.after,
        "change": round(change.gain, 4),
    }


def _table(answer: Mapping[str, Any]) -> str:
    rows = [HEADER]
    for part in answer["slices"]:
        recalls = f"{part['recall_5']:>10.3f}{part['recall_10']:>11.3f}"
        ranks = f"{part['mrr_10']:>8.3f}{part['ndcg_10']:>9.3f}"
        rows.append(f"{line(part['slice'])[:23]:24}{part['questions']:>10}{recalls}{ranks}")
    return "\n".join(rows)


def _changes(answer: Mapping[str, Any]) -> str:
    surely = "more than chance"
    if answer["chance"] >= SURE:
        surely = "no more than chance"
    points = f"{answer['points']:+.1f} ± {answer['error']:.1f} points of nDCG@10"
    chance = f"(p {answer['chance']:.3f}: {surely})"
    counts = f"{answer['better']} better, {answer['worse']} worse"
    rows = [f"  {points} on {answer['compared']} questions {chance}; {counts}"]
    for change in answer["changes"]:
        outcome = "better" if change["change"] > 0 else "worse "
        ranks = f"{_rank(change['before'])} -> {_rank(change['after'])}"
        question = f"{line(change['question'])[:80]}  [{line(change['answer'])}]"
        rows.append(f"  {outcome} {change['change']:+.2f}  {ranks}  {question}")
    return "\n".join(rows)


def _rank(rank: int) -> str:
    if not rank:
        return "not found"
    return f"#{rank}"
