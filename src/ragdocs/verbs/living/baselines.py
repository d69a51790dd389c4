"""What linked files were when a memory was written, verified, or else according to history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragdocs.errors import RagdocsError
from ragdocs.search.corpus import Corpus
from ragdocs.system.refs import Refs
from ragdocs.text import times
from ragdocs.types import Document, Link
from ragdocs.verbs.living.ledger import HISTORY, TIMES, WRITTEN, Baseline, Ledger
from ragdocs.verbs.living.past import Past
from ragdocs.verbs.living.targets import Content, Targets, content_of

# File systems and clocks of two machines differ by so much.
SLACK = timedelta(seconds=2)
# Links whose first commit is looked for one by one.
MOST_SEARCHED = 100
# Fields that say when somebody last stood by a memory.
TIME_FIELDS = ("verified_at", "updated_at")
# Changes that do not look at what was there before: earlier baselines stay.
ADDING = ("append", "rename", "restore", "undo")


class _Wanted(NamedTuple):
    """A link without a baseline, and the moment at which its target is asked for."""

    document: Document
    link: Link
    path: str
    moment: datetime


@dataclass(frozen=True, slots=True)
class Baselines:
    """Makes baselines and hands out those that are known."""

    targets: Targets
    past: Past
    refs: Refs
    ledger: Ledger
    clock: Callable[[], datetime]

    def record(
        self,
        document: Document,
        author: str,
        how: str = WRITTEN,
        *,
        gone: str = "",
        keeps: Callable[[Baseline], bool] = lambda _: False,
        is_older: Callable[[Link], bool] = lambda _: False,
    ) -> None:
        """Write down what the links of a memory lead to now.

        `gone` is the path that it was renamed from; `keeps` tells which earlier baselines stay, and
        `is_older` which links without one nobody has looked at: those are worked out when asked.
        """
        earlier = self.ledger.of(gone or document.path)
        is_concerned = bool(document.links or earlier or gone)
        if not is_concerned:
            return
        commit = self.refs.head().commit
        occasion = _Occasion(commit, self.clock().astimezone(UTC), author, how)
        baselines = []
        for link in self.targets.links(document):
            baseline = earlier.get((link.target, link.heading))
            if baseline is not None and keeps(baseline):
                baselines.append(replace(baseline, version=document.version))
                continue
            path = self.targets.path(link.target)
            content = self._content(path, link.heading)
            if baseline is not None and baseline.name and content is not None and not content.name:
                # A section that is gone is not replaced by the whole file.
                content = None
            if content is not None and (baseline is not None or not is_older(link)):
                baselines.append(_baseline(link, path, content, document.version, occasion))
            elif baseline is not None:
                # What is missing stays missing, whoever writes or checks.
                baselines.append(baseline)
        if baselines or earlier or gone:
            self.ledger.replace(document.path, baselines, [gone])

    def of_links(
        self, documents: Sequence[Document]
    ) -> dict[str, list[tuple[Link, Baseline | None]]]:
        """Return for each memory its links with their baselines; lost ones are worked out."""
        by_link: dict[str, dict[tuple[str, str], Baseline]] = {}
        wanted: list[_Wanted] = []
        links = self.targets.links_of(documents)
        for document in documents:
            own = self.ledger.of(document.path)
            by_link[document.id] = own
            for link in links[document.id]:
                if (link.target, link.heading) not in own:
                    moment = _moment(document, own)
                    path = self.targets.path(link.target)
                    wanted.append(_Wanted(document, link, path, moment))
        worked_out = self._work_out(wanted)
        self.ledger.add([(entry.document.path, baseline) for entry, baseline in worked_out])
        for entry, baseline in worked_out:
            by_link[entry.document.id][baseline.target, baseline.heading] = baseline
        answer = {}
        for document in documents:
            own = by_link[document.id]
            pairs = []
            for link in links[document.id]:
                key = link.target, link.heading
                pairs.append((link, own.get(key)))
            answer[document.id] = pairs
        return answer

    def _work_out(self, wanted: Sequence[_Wanted]) -> list[tuple[_Wanted, Baseline]]:
        """Return what can be known of lost baselines: by history, or by the times of files."""
        requests = []
        for entry in wanted:
            for commit in self._commits(entry):
                for path in _spellings(entry):
                    requests.append((entry, commit, path))
        texts = self.past.contents([(commit, path) for _, commit, path in requests])
        by_link: dict[int, Baseline] = {}
        for (entry, commit, path), data in zip(requests, texts, strict=True):
            if data is not None and id(entry) not in by_link:
                by_link[id(entry)] = _historic(entry, path, data, commit)
        worked_out = []
        searched = 0
        for entry in wanted:
            baseline = by_link.get(id(entry))
            if baseline is None and searched < MOST_SEARCHED:
                searched += 1
                baseline = self._first(entry)
            baseline = baseline or self._by_times(entry)
            if baseline is not None:
                worked_out.append((entry, baseline))
        return worked_out

    def _commits(self, entry: _Wanted) -> list[str]:
        """Return the commits at which a target is looked for, the nearest first."""
        state = entry.document.git
        commits = []
        if state is not None and state.commit:
            commits.append(state.commit)
        if state is not None and state.dirty and entry.path in state.files_changed:
            # It was being changed: what was seen is in the next commit of it.
            later = self.past.first(entry.path, entry.moment)
            if later:
                commits.insert(0, later)
        at = self.past.at(entry.moment)
        if at:
            # A memory that was changed since it was begun is about what was there then.
            position = len(commits)
            if _is_revised(entry.document):
                position = 0
            commits.insert(position, at)
        return commits

    def _first(self, entry: _Wanted) -> Baseline | None:
        """Return a target as it was first committed after the memory was written."""
        commit = self.past.first(entry.path, entry.moment)
        if not commit:
            return None
        data = self.past.contents([(commit, entry.path)])[0]
        if data is None:
            return None
        return _historic(entry, entry.path, data, commit)

    def _by_times(self, entry: _Wanted) -> Baseline | None:
        """Return a target as it is now if it is older than the memory, or else only its time."""
        stamp = self.targets.stamp(entry.path)
        if stamp is None:
            return None
        content = self._content(entry.path, entry.link.heading)
        if content is None:
            return None
        modified = datetime.fromtimestamp(stamp[0] / 1e9, UTC)
        if modified > entry.moment + SLACK:
            content = replace(content, digest="", signature=b"", blob="", size=0)
        occasion = _Occasion(self.refs.head().commit, entry.moment, "", TIMES)
        return _baseline(entry.link, entry.path, content, entry.document.version, occasion)

    def _content(self, path: str, heading: str) -> Content | None:
        """Return what a link leads to; a heading that is none stands for the whole file."""
        try:
            return self.targets.content(path, heading) or self.targets.content(path, "")
        except RagdocsError:
            return None


def _historic(entry: _Wanted, path: str, data: bytes, commit: str) -> Baseline:
    content = content_of(path, data, entry.link.heading) or content_of(path, data, "")
    assert content is not None
    occasion = _Occasion(commit, entry.moment, "", HISTORY)
    return _baseline(entry.link, path, content, entry.document.version, occasion)


class _Occasion(NamedTuple):
    """When and by whom a memory was written or checked, and at which commit."""

    commit: str
    at: datetime
    author: str
    how: str


def _baseline(
    link: Link, path: str, content: Content, version: str, occasion: _Occasion
) -> Baseline:
    return Baseline(
        target=link.target,
        heading=link.heading,
        path=path,
        kind=content.kind,
        name=content.name,
        digest=content.digest,
        signature=content.signature,
        blob=content.blob,
        size=content.size,
        version=version,
        commit=occasion.commit,
        at=occasion.at,
        author=occasion.author,
        how=occasion.how,
    )


def _spellings(entry: _Wanted) -> list[str]:
    """Return the paths at which a target may have been."""
    paths = dict.fromkeys((entry.path, entry.link.target, f"{entry.link.target}.md"))
    return list(paths)


def _is_revised(document: Document) -> bool:
    return any(field in document.extra for field in TIME_FIELDS)


def _moment(document: Document, is_known: object) -> datetime:
    """Return when somebody last stood by a memory, as far as its file says so."""
    if is_known:
        # A link that an editor added to a memory that is known already.
        return (document.modified_at or _written(document)).astimezone(UTC)
    return _written(document)


def _written(document: Document) -> datetime:
    moments = []
    for field in TIME_FIELDS:
        moment = times.written(document.extra.get(field))
        if moment is not None:
            moments.append(moment)
    written = document.created_at or document.modified_at
    if written is not None:
        moments.append(written.astimezone(UTC))
    return max(moments, default=datetime.fromtimestamp(0, UTC))


def keeps_baseline(corpus: Corpus, document: Document, verb: str, baseline: Baseline) -> bool:
    """Tell whether a write says nothing about a link: it adds to the text, or leaves it as it is.

    Only whoever writes a text anew has looked at what it is about.
    """
    if verb in ADDING:
        return True
    if baseline.version == document.version:
        return False
    return _has_body(corpus, document, _recovered(corpus, baseline.version))


def stood_before(corpus: Corpus, document: Document, verb: str, version: str, link: Link) -> bool:
    """Tell whether a link was in the text that was replaced, and the write says nothing about it.

    By the name of its file: a link may be written in several ways.
    """
    before = _recovered(corpus, version)
    if verb in ADDING:
        return link.target.rpartition("/")[2] in before
    return _has_body(corpus, document, before)


def _recovered(corpus: Corpus, version: str) -> str:
    """Return an earlier text, or nothing where there is none."""
    if not version:
        return ""
    try:
        return corpus.versioned.recover(version)
    except RagdocsError:
        return ""


def _has_body(corpus: Corpus, document: Document, before: str) -> bool:
    """Tell whether a memory still says what an earlier text said; its fields may differ."""
    if not before:
        return False
    try:
        after = corpus.store.read(document.path).text
    except RagdocsError:
        return False
    # Who only reads has no need of YAML.
    from ragdocs.text import frontmatter

    return frontmatter.split(before)[1] == frontmatter.split(after)[1]
