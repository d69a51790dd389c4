"""What every Index promises.

Subclass it with an `index` fixture that gives an empty index of 8 dimensions.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ragdocs.protocols import Index, ProbeVector, Ties, Vectors
from ragdocs.types import Chunk, Document, Filter, GitContext, IndexedDocument, Link

from .reads import (
    ANYTHING,
    counts,
    found,
    get,
    links_to,
    listed,
    matches,
    matching,
    near,
    nearest,
    neighbours,
    passages,
    tied,
)

DIM = 8
NOON = datetime(2026, 2, 4, 12, 0, tzinfo=UTC)


def entry(path: str, *texts: str, stamp: str = "s1", **card: Any) -> IndexedDocument:
    """Make a document of one chunk for each text; equal texts have equal digests."""
    name = path.removesuffix(".md")
    values = {"title": name, "version": "|".join(texts), "modified_at": NOON, **card}
    document = Document(id=f"test:{name}", lane="test", path=path, **values)
    pieces = enumerate(texts or (document.title,))
    chunks = tuple(
        Chunk(f"{document.id}#{n}", document.id, (), t, n + 1, n + 1, digest(t)) for n, t in pieces
    )
    return IndexedDocument(document, chunks, stamp)


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def axis(*weights: float) -> Vectors:
    """Return the unit vector with these first components."""
    vector = np.zeros(DIM, dtype=np.float32)
    vector[: len(weights)] = weights
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class IndexContract:
    """Inherited by the tests of each implementation."""

    @pytest.fixture
    def index(self) -> Index:
        raise NotImplementedError

    # --- documents ---

    def test_an_empty_index_answers_everything_with_nothing(self, index: Index) -> None:
        assert index.stamps() == {}
        assert index.claim_missing(5) == []
        assert counts(index) == (0, 0, 0, 0)
        with index.snapshot() as snapshot:
            candidates = snapshot.candidates(
                [ProbeVector("q", "any words", axis(1))], [ANYTHING], 5
            )
            assert list(candidates.keys) == []
            assert list(candidates.documents) == []
            assert candidates.term_counts == {"q": 1}
            assert list(candidates.found.values()) == [[], []]
            assert snapshot.list(ANYTHING) == snapshot.list(Filter(tags=("x",))) == []
            assert snapshot.get(["test:a", "a.md"]) == {}
            assert snapshot.neighbours(["test:a"], ANYTHING) == {"test:a": []}
            assert snapshot.first_passages(["test:a"]) == {"test:a": []}
            assert snapshot.links(["a"]) == {}
            assert snapshot.facets("tags", ANYTHING) == {}
            assert snapshot.similar(ANYTHING, 0.0) == []
            assert snapshot.load([]).passages == []
            assert snapshot.count(ANYTHING) == 0

    def test_a_card_comes_back_as_it_was_given(self, index: Index) -> None:
        card: dict[str, Any] = {
            "kind": "fact",
            "status": "archived",
            "tags": ("Auth", "größe"),
            "aliases": ("other name",),
            "created_at": NOON.astimezone().replace(microsecond=123456),
            "expires_at": NOON + timedelta(days=9),
            "importance": 0.5,
            "source": "agent",
            "git": GitContext("main", "abc1234", dirty=True, files_changed=("src/a.py",)),
            "size": 42,
            "extra": {"nested": {"list": [1, 2.5, None, True, "x"]}},
            "problems": ("odd",),
            "links": (
                Link("src/a.py", "mentions", "see src/a.py", "Top"),
                Link("b", "related_to", "b"),
            ),
        }
        given = entry("f/a.md", "one", "two", **card)
        index.apply([given])
        assert get(index, "test:f/a") == get(index, "f/a.md") == given.document
        with index.snapshot() as snapshot:
            named = snapshot.get(["f/a.md", "test:none", "test:f/a", "größe\0"])
            assert named == {"f/a.md": given.document, "test:f/a": given.document}
            assert snapshot.get([]) == {}
        assert passages(index, "test:f/a") == list(given.chunks)

    def test_documents_are_listed_by_path(self, index: Index) -> None:
        index.apply([entry("b.md", "x"), entry("a/z.md", "x")])
        index.apply([entry("a.md", "x")])
        assert listed(index) == ["a.md", "a/z.md", "b.md"]

    def test_a_replaced_document_leaves_nothing_of_the_old_one(self, index: Index) -> None:
        index.apply(
            [entry("a.md", "apple", "pear", tags=("fruit",), links=(Link("x", "mentions", "x"),))]
        )
        index.fill({digest("apple"): axis(1), digest("pear"): axis(0, 1)})
        index.apply([entry("a.md", "carrot", tags=("root",), stamp="s2")])
        assert (
            matching(index, "apple pear")
            == listed(index, tags=("fruit",))
            == near(index, axis(1))
            == []
        )
        assert matching(index, "carrot") == listed(index, tags=("root",)) == ["a.md"]
        assert links_to(index, "x") == {}
        assert counts(index) == (1, 1, 0, 0)
        assert index.stamps() == {"a.md": ("s2", "carrot")}

    def test_removed_paths_are_gone_and_unknown_ones_do_not_matter(self, index: Index) -> None:
        index.apply(
            [entry("a.md", "apple common"), entry("b.md", "pear common"), entry("c.md", "common")]
        )
        index.fill({digest("pear common"): axis(1)})
        index.apply([], ["b.md", "c.md", "never.md"])
        assert matching(index, "common") == ["a.md"]
        assert matching(index, "pear") == near(index, axis(1)) == []
        assert passages(index, "test:b") == []
        assert get(index, "test:b") is None
        assert list(index.stamps()) == ["a.md"]

    def test_what_was_removed_may_come_back(self, index: Index) -> None:
        index.apply([entry("a.md", "apple"), entry("b.md", "pear")])
        index.apply([], ["a.md"])
        index.apply([entry("a.md", "apple")])
        assert matching(index, "apple") == ["a.md"]
        assert index.info().passages == 2

    def test_a_rename_in_one_step_keeps_one_document(self, index: Index) -> None:
        index.apply([entry("a.md", "apple")])
        index.apply([entry("b.md", "apple")], ["a.md"])
        assert matching(index, "apple") == listed(index) == ["b.md"]

    def test_restamping_changes_the_stamp_and_nothing_else(self, index: Index) -> None:
        index.apply([entry("a.md", "apple"), entry("b.md", "pear")])
        index.fill({digest("apple"): axis(1)})
        before = index.info()
        index.apply([], (), {"a.md": "s9"})
        assert index.stamps() == {"a.md": ("s9", "apple"), "b.md": ("s1", "pear")}
        assert index.info() == before

    # --- filters ---

    def test_words_of_a_filter_compare_caselessly_and_any_of_them_will_do(
        self, index: Index
    ) -> None:
        index.apply(
            [
                entry("a.md", "x", kind="Plan", tags=("Auth", "STRASSE"), status="active"),
                entry("b.md", "x", kind="fact", tags=("db",), status="Archived"),
                entry("c.md", "x", kind="", tags=()),
            ]
        )
        assert (
            listed(index, kinds=("plan", "FACT"))
            == listed(index, tags=("auth", "Db"))
            == ["a.md", "b.md"]
        )
        assert listed(index, tags=("straße",)) == ["a.md"]
        assert listed(index, statuses=("ARCHIVED",)) == ["b.md"]
        assert listed(index, hidden=("archived", "unknown")) == ["a.md", "c.md"]
        assert (
            listed(index, tags=("db",), kinds=("plan",)) == listed(index, tags=("nowhere",)) == []
        )
        assert listed(index, tags=("aut",)) == []

    def test_dates_are_inclusive_and_documents_without_one_are_left_out(self, index: Index) -> None:
        days = [NOON + timedelta(days=n) for n in range(3)]
        index.apply(
            [entry(f"{n}.md", "x", created_at=day) for n, day in enumerate(days)]
            + [entry("none.md", "x")]
        )
        assert listed(index, since=days[1]) == ["1.md", "2.md"]
        assert listed(index, until=days[1]) == ["0.md", "1.md"]
        assert listed(index, since=days[1], until=days[1]) == ["1.md"]
        assert len(listed(index)) == 4

    def test_what_has_expired_is_not_alive_at_that_moment(self, index: Index) -> None:
        index.apply(
            [
                entry("a.md", "x", expires_at=NOON),
                entry("b.md", "x", expires_at=NOON + timedelta(seconds=1)),
            ]
        )
        index.apply([entry("c.md", "x")])
        assert listed(index, alive_at=NOON) == ["b.md", "c.md"]
        assert listed(index, alive_at=NOON - timedelta(days=1)) == ["a.md", "b.md", "c.md"]

    def test_prefix_and_links_choose_documents(self, index: Index) -> None:
        link = (Link("src/auth.py", "mentions", "see"),)
        index.apply(
            [
                entry("f/a.md", "x", links=link),
                entry("f/b.md", "x"),
                entry("g/c.md", "x", links=link),
            ]
        )
        assert listed(index, prefix="f/") == ["f/a.md", "f/b.md"]
        assert listed(index, linked_to=("src/auth.py", "other")) == ["f/a.md", "g/c.md"]
        assert listed(index, prefix="f/", linked_to=("src/auth.py",)) == ["f/a.md"]
        assert listed(index, linked_to=("nowhere",)) == []
        assert listed(index, without=frozenset({"f/a.md", "gone.md"})) == ["f/b.md", "g/c.md"]

    def test_a_filter_applies_before_the_cut_by_words_and_by_meaning(self, index: Index) -> None:
        crowd = [entry(f"c{n}.md", f"token token token {n}") for n in range(60)]
        rare = entry(
            "rare.md", "a token among very many other words about nothing at all", tags=("rare",)
        )
        index.apply([*crowd, rare])
        index.fill({digest(f"token token token {n}"): axis(1, n / 1000) for n in range(60)})
        index.fill({digest(rare.chunks[0].text): axis(1, 5)})
        assert matching(index, "token", Filter(tags=("rare",)), k=1) == ["rare.md"]
        assert near(index, axis(1), Filter(tags=("rare",)), k=1) == ["rare.md"]
        assert "rare.md" not in matching(index, "token", k=60)
        assert "rare.md" not in near(index, axis(1), k=60)

    def test_what_says_nothing_of_its_worth_counts_as_ordinary_and_sure(self, index: Index) -> None:
        index.apply([entry("low.md", "x", importance=2.0, confidence=0.3), entry("plain.md", "x")])
        index.apply([entry("high.md", "x", importance=9.0, confidence=0.9)])
        assert listed(index, min_importance=5) == ["high.md", "plain.md"]
        assert listed(index, min_importance=6) == ["high.md"]
        assert listed(index, min_confidence=0.95) == ["plain.md"]
        narrow = Filter(min_importance=3, min_confidence=0.5)
        assert matching(index, "x", narrow) == ["high.md", "plain.md"]

    def test_a_filter_does_not_change_the_scores_of_what_passes(self, index: Index) -> None:
        index.apply(
            [
                entry(f"{n}.md", f"apple {'pear ' * n}", tags=("even",) * (n % 2 == 0))
                for n in range(8)
            ]
        )
        whole = dict(matches(index, "apple pear"))
        part = matches(index, "apple pear", Filter(tags=("even",)))
        assert len(part) == 4
        assert all(score == pytest.approx(whole[key], abs=1e-6) for key, score in part)

    # --- vectors ---

    def test_chunks_wait_for_vectors_the_latest_change_first_and_once_for_each_digest(
        self, index: Index
    ) -> None:
        old, new = (NOON - timedelta(days=1), NOON + timedelta(days=1))
        index.apply(
            [
                entry("old.md", "old", "shared", modified_at=old),
                entry("none.md", "none", modified_at=None),
            ]
        )
        index.apply([entry("new.md", "new", "shared", modified_at=new)])
        waiting = [(document.path, chunk.text) for document, chunk in index.claim_missing(10)]
        assert waiting == [
            ("new.md", "new"),
            ("new.md", "shared"),
            ("old.md", "old"),
            ("none.md", "none"),
        ]
        assert index.claim_missing(2) == index.claim_missing(10)[:2]
        index.fill({digest("shared"): axis(1)})
        assert [chunk.text for _, chunk in index.claim_missing(10)] == ["new", "old", "none"]
        assert index.info().vectors == 2
        assert sorted(near(index, axis(1))) == ["new.md", "old.md"]

    def test_a_long_document_lets_others_have_their_turn(self, index: Index) -> None:
        long = entry("long.md", *(f"passage {number}" for number in range(2_000)), modified_at=NOON)
        index.apply([long, entry("old.md", "old", modified_at=NOON - timedelta(days=1))])
        waiting = [document.path for document, _ in index.claim_missing(3_000)]
        assert len(waiting) == 2_001
        assert waiting[0] == "long.md"
        assert waiting.index("old.md") < 300

    def test_the_missing_chunks_of_some_paths_are_those_of_these_paths(self, index: Index) -> None:
        index.apply(
            [
                entry("a.md", "shared", "mine", modified_at=NOON - timedelta(days=1)),
                entry("b.md", "shared"),
            ]
        )
        assert {(d.path, c.text) for d, c in index.claim_missing(10, ["a.md"])} == {
            ("a.md", "shared"),
            ("a.md", "mine"),
        }
        assert index.claim_missing(10, ["nowhere.md"]) == []

    def test_vectors_for_unknown_digests_are_passed_over(self, index: Index) -> None:
        index.apply([entry("a.md", "apple")])
        index.fill({"unknown": axis(1)})
        index.fill({})
        assert index.info().vectors == 0

    def test_nearest_orders_by_inner_product(self, index: Index) -> None:
        index.apply([entry(f"{n}.md", str(n)) for n in range(4)])
        index.fill({digest(str(n)): axis(1, n) for n in (2, 0, 3, 1)})
        hits = nearest(index, axis(1), k=3)
        assert [path for path, _ in hits] == ["0.md", "1.md", "2.md"]
        assert [score for _, score in hits] == pytest.approx([1, 2**-0.5, 5**-0.5], abs=1e-3)

    def test_ties_have_one_order_whatever_was_filled_first(self, index: Index) -> None:
        index.apply(
            [entry(f"{n}.md", f"word {n}", modified_at=NOON + timedelta(days=n)) for n in range(9)]
        )
        for n in (7, 2, 8, 0, 1, 3, 6, 5, 4):
            index.fill({digest(f"word {n}"): axis(1)})
        assert (
            near(index, axis(1), k=4)
            == matching(index, "word", k=4)
            == ["0.md", "1.md", "2.md", "3.md"]
        )

    def test_documents_are_alike_by_the_mean_of_their_passages(self, index: Index) -> None:
        index.apply([entry("a.md", "one", "two"), entry("b.md", "three"), entry("c.md", "four")])
        index.apply([entry("d.md", "not encoded yet")])
        index.fill({digest("one"): axis(1), digest("two"): axis(0, 1)})
        index.fill({digest("three"): axis(1, 1), digest("four"): axis(1)})
        with index.snapshot() as snapshot:
            ((similarity, first, second),) = snapshot.similar(ANYTHING, 0.9)
            pairs = snapshot.similar(ANYTHING, 0.0)
            assert snapshot.similar(Filter(prefix="a"), 0.0) == []
            assert snapshot.similar(ANYTHING, 0.0, 1) == pairs[:1]
        assert (first, second) == ("test:a", "test:b")
        assert similarity == pytest.approx(1.0, abs=1e-3)
        assert [pair[1:] for pair in pairs] == [
            ("test:a", "test:b"),
            ("test:a", "test:c"),
            ("test:b", "test:c"),
        ]

    # --- words ---

    def test_rarer_and_denser_words_rank_first(self, index: Index) -> None:
        index.apply(
            [
                entry("a.md", "the common word"),
                entry("b.md", "common zebra"),
                entry("c.md", "common " * 30),
            ]
        )
        assert matching(index, "common zebra")[0] == "b.md"
        assert matching(index, "zebra") == ["b.md"]

    def test_title_tags_and_path_are_searched_too(self, index: Index) -> None:
        index.apply(
            [
                entry("guides/login.md", "x", title="Sessions", tags=("security",)),
                entry("b.md", "y"),
            ]
        )
        for word in ("session", "security", "login", "guides"):
            assert matching(index, word) == ["guides/login.md"], word

    def test_the_words_that_stand_in_a_passage_are_returned_as_given(self, index: Index) -> None:
        index.apply([entry("a.md", "tokens expire daily")])
        with index.snapshot() as snapshot:
            keys = snapshot.candidates([ProbeVector("q", "tokens")], [ANYTHING], 5).keys
            ((_, _, words),) = snapshot.load(keys, ["When", "Tokens", "expire", "zebra"]).passages
            assert words == ("Tokens", "expire")
            assert snapshot.load(keys).passages[0][2] == ()

    # --- links ---

    def test_all_links_from_one_document_to_one_target_are_there(self, index: Index) -> None:
        links = (
            Link("src/auth.py", "mentions", "first"),
            Link("other", "plans", "between"),
            Link("src/Auth.py", "plans", "second"),
        )
        index.apply([entry("a.md", "x", links=links)])
        assert links_to(index, "src/auth.py") == {"test:a": (links[0], links[2])}
        assert links_to(index, "other", "src/auth.py", "nowhere") == {"test:a": links}
        assert index.info().links == 3

    def test_updating_or_removing_a_target_keeps_the_links_of_others(self, index: Index) -> None:
        link = Link("b", "mentions", "see b")
        index.apply([entry("a.md", "x", links=(link,)), entry("b.md", "y")])
        index.apply([entry("b.md", "z")])
        assert links_to(index, "b") == {"test:a": (link,)}
        index.apply([], ["b.md"])
        assert links_to(index, "b") == {"test:a": (link,)}
        index.apply([entry("b.md", "back")])
        assert neighbours(index, "test:a") == [["test:b"]]

    def test_targets_are_whole_paths(self, index: Index) -> None:
        link = (Link("src/auth.py", "mentions", "see"),)
        index.apply([entry("a.md", "x", links=link)])
        for name in (
            "auth.py",
            "src/auth.p",
            "rc/auth.py",
            "src/auth.py/x",
            "src",
            "src/oauth.py",
            "",
        ):
            assert links_to(index, name) == {}, name
        assert set(links_to(index, " /SRC/auth.py/")) == {"test:a"}

    def test_links_are_followed_as_they_point_to_documents_that_pass(self, index: Index) -> None:
        links = ("b", "src/x.py", "c.md", "a", "B.md")
        index.apply(
            [
                entry("a.md", "x", links=tuple(Link(name, "mentions", "") for name in links)),
                entry("b.md", "x", status="archived"),
                entry(
                    "c.md",
                    "x",
                    links=(Link("src/x.py", "mentions", ""), Link("a.md", "mentions", "")),
                ),
            ]
        )
        assert neighbours(index, "test:a", "test:b", "test:c") == [
            ["test:b", "test:c"],
            [],
            ["test:a"],
        ]
        hidden = Filter(hidden=("archived",))
        assert neighbours(index, "test:a", "test:nowhere", where=hidden) == [["test:c"], []]

    def test_a_link_may_name_a_document_by_path_stem_title_or_alias(self, index: Index) -> None:
        index.apply([entry("f/target.md", "x", title="The Target", aliases=("Bullseye",))])
        for n, name in enumerate(("f/target.md", "f/target", "target", "the target", "BULLSEYE")):
            index.apply([entry(f"{n}.md", "x", links=(Link(name, "mentions", ""),))])
            assert neighbours(index, f"test:{n}") == [["test:f/target"]], name

    def test_a_neighbour_comes_with_its_first_passage(self, index: Index) -> None:
        index.apply([entry("a.md", "x", links=(Link("b", "mentions", ""),))])
        index.apply([entry("b.md", "first", "second")])
        with index.snapshot() as snapshot:
            ((document, key),) = snapshot.neighbours(["test:a"], ANYTHING)["test:a"]
            ((_, passage, _),) = snapshot.load([key]).passages
        assert (document.path, passage.text) == ("b.md", "first")

    # --- ties ---

    def test_ties_are_followed_in_both_directions_step_by_step(self, index: Index) -> None:
        def linked(path: str, kind: str, *names: str) -> IndexedDocument:
            return entry(path, f"text of {path}", links=[Link(name, kind, "") for name in names])

        index.apply(
            [
                entry("first.md", "x", title="The First"),
                linked("second.md", "replaces", "the first", "nowhere"),
                linked("third.md", "mentions", "second"),
                linked("fourth.md", "replaces", "SECOND.md"),
                linked("fifth.md", "replaces", "sixth"),
                entry("sixth.md", "x"),
            ]
        )
        assert tied(index, "first.md") == {
            "second": "text of second.md",
            "fourth": "text of fourth.md",
        }
        assert list(tied(index, "fourth.md")) == ["first", "second"]
        assert list(tied(index, "first.md", "sixth.md")) == ["fifth", "fourth", "second"]
        assert tied(index, "third.md") == {}
        assert list(tied(index, "first.md", steps=1)) == ["second"]

    def test_what_is_tied_follows_the_documents(self, index: Index) -> None:
        index.apply([entry("a.md", "x"), entry("b.md", "y", links=(Link("a", "replaces", ""),))])
        assert list(tied(index, "a.md")) == ["b"]
        index.apply([entry("c.md", "z", links=(Link("b", "replaces", ""),))])
        assert list(tied(index, "a.md")) == ["b", "c"]
        index.apply([entry("b.md", "y", stamp="s2")])
        assert tied(index, "a.md") == {}
        index.apply([], ["c.md"])
        assert tied(index, "b.md") == {}

    def test_only_what_passes_comes_with_its_first_passage(self, index: Index) -> None:
        link = (Link("a", "replaces", ""),)
        index.apply(
            [
                entry("a.md", "x"),
                entry("b.md", "first", "second", links=link),
                entry("c.md", "other", links=link, status="archived"),
            ]
        )
        hidden = Filter(hidden=("archived",))
        assert tied(index, "a.md", where=hidden) == {"b": "first", "c": None}

    def test_passages_come_with_what_their_documents_are_tied_to(self, index: Index) -> None:
        link = (Link("a", "replaces", ""),)
        index.apply([entry("a.md", "apple"), entry("b.md", "pear", links=link)])
        probe = ProbeVector("q", "apple")
        for _ in range(2):
            with index.snapshot() as snapshot:
                candidates = snapshot.candidates([probe], [ANYTHING], 5)
                loaded = snapshot.load(candidates.keys, ["apple"], ["en"], Ties({"replaces"}))
            assert [words for _, _, words in loaded.passages] == [("apple",)]
            ((document, passage),) = loaded.tied.values()
            assert passage is not None
            assert (document.path, passage.text) == ("b.md", "pear")

    # --- candidates ---

    def test_documents_that_pass_are_counted_as_far_as_it_matters(self, index: Index) -> None:
        many = [entry(f"{n}.md", "apple", "pear", tags=("x",) * (n < 3)) for n in range(6)]
        index.apply(many)
        for text in ("apple", "", "zebra"):
            probe = ProbeVector("q", text)
            with index.snapshot() as snapshot:
                few = snapshot.candidates([probe], [Filter(tags=("x",))], 2, count_up_to=5)
                more = snapshot.candidates([probe], [ANYTHING], 2, count_up_to=5)
                uncounted = snapshot.candidates([probe], [ANYTHING], 2)
            assert (few.passing, more.passing, uncounted.passing) == (3, 5, 0)

    def test_all_passages_of_a_found_document_come_along_in_reading_order(
        self, index: Index
    ) -> None:
        index.apply([entry("a.md", "apple", "pear", "plum"), entry("b.md", "fig")])
        index.apply([entry("c.md", "pear"), entry("d.md", "one", "two")])
        with index.snapshot() as snapshot:
            candidates = snapshot.candidates([ProbeVector("q", "pear")], [ANYTHING], 10)
            loaded = snapshot.load(candidates.keys).passages
        texts: dict[str, list[str]] = {}
        for document, passage, _ in loaded:
            texts.setdefault(document.path, []).append(passage.text)
        assert texts == {"a.md": ["apple", "pear", "plum"], "c.md": ["pear"]}
        beginnings = [loaded[start][0] for start in candidates.starts]
        assert beginnings == list(candidates.documents)
        assert candidates.lone_share == 0.5

    def test_a_source_measures_also_what_it_did_not_find(self, index: Index) -> None:
        index.apply([entry("a.md", "apple", "pear"), entry("b.md", "plum")])
        index.fill({digest("apple"): axis(1), digest("pear"): axis(0, 1)})
        probe = ProbeVector("q", "pear", axis(1))
        with index.snapshot() as snapshot:
            candidates = snapshot.candidates([probe], [ANYTHING], 1, ["test:b"])
            texts = [passage.text for _, passage, _ in snapshot.load(candidates.keys).passages]
        words = dict(zip(texts, candidates.raw["q", "keyword"].tolist(), strict=True))
        products = dict(zip(texts, candidates.raw["q", "vector"].tolist(), strict=True))
        assert set(texts) == {"apple", "pear", "plum"}
        assert words["pear"] > 0.5
        assert words["apple"] == words["plum"] == 0.0
        assert products == pytest.approx({"apple": 1.0, "pear": 0.0, "plum": 0.0}, abs=1e-3)
        assert [texts[c] for c in candidates.found["q", "vector"]] == ["apple"]

    def test_each_of_several_filters_gives_its_best(self, index: Index) -> None:
        crowd = [entry(f"{n:02}.md", "pear pear") for n in range(30)]
        index.apply([*crowd, entry("z.md", "pear among many other words", tags=("x",))])
        index.fill(
            {digest("pear pear"): axis(1), digest("pear among many other words"): axis(1, 1)}
        )
        probe = ProbeVector("q", "pear", axis(1))
        hits = found(index, probe, [ANYTHING, Filter(tags=("x",))], 3)
        for signal in (("q", "keyword"), ("q", "vector")):
            assert [path for path, _ in hits[signal]] == ["00.md", "01.md", "02.md", "z.md"]

    def test_equal_scores_go_by_path_and_position_whatever_came_first(self, index: Index) -> None:
        for name in ("c", "a", "d", "b"):
            index.apply([entry(f"{name}.md", "pear", "pear", title="same")])
        index.fill({digest("pear"): axis(1)})
        assert matching(index, "pear", k=3) == near(index, axis(1), k=3) == ["a.md", "a.md", "b.md"]
        with index.snapshot() as snapshot:
            candidates = snapshot.candidates([ProbeVector("q", "pear")], [ANYTHING], 2)
            columns = candidates.found["q", "keyword"]
            loaded = snapshot.load([candidates.keys[column] for column in columns]).passages
        assert [passage.id for _, passage, _ in loaded] == ["test:a#0", "test:a#1"]

    def test_passages_are_loaded_in_the_order_of_the_keys_given(self, index: Index) -> None:
        index.apply([entry("a.md", "one pear", "two pear"), entry("b.md", "three pear")])
        with index.snapshot() as snapshot:
            keys = snapshot.candidates([ProbeVector("q", "pear")], [ANYTHING], 10).keys
            forward = snapshot.load(keys).passages
            backward = snapshot.load(list(reversed(keys))).passages
            assert list(reversed(backward)) == list(forward)

    # --- listing ---

    def test_documents_are_listed_by_age_and_in_parts(self, index: Index) -> None:
        for n, day in enumerate((2, 0, 1)):
            index.apply([entry(f"{n}.md", "x", created_at=NOON + timedelta(days=day))])
        index.apply([entry("later.md", "x", created_at=NOON + timedelta(days=99))])
        now = NOON + timedelta(days=9)
        with index.snapshot() as snapshot:
            newest = snapshot.list(ANYTHING, "newest", now=now)
            assert [document.path for document in newest] == ["0.md", "2.md", "1.md", "later.md"]
            oldest = snapshot.list(ANYTHING, "oldest", now=now)
            assert [document.path for document in oldest] == ["1.md", "2.md", "0.md", "later.md"]
            assert snapshot.list(ANYTHING, "newest", 2, 1, now) == newest[1:3]
            assert snapshot.count(Filter(since=NOON + timedelta(days=1))) == 3

    def test_documents_are_counted_by_the_values_of_a_field(self, index: Index) -> None:
        index.apply([entry("a.md", "x", tags=("p", "q"), kind="fact"), entry("b.md", "x")])
        index.apply([entry("c.md", "x", tags=("q",), kind="fact"), entry("d.md", "x", tags=("q",))])
        index.apply([], ["d.md"])
        with index.snapshot() as snapshot:
            assert list(snapshot.facets("tags", ANYTHING).items()) == [("q", 2), ("p", 1)]
            assert snapshot.facets("kind", Filter(tags=("q",))) == {"fact": 2}
            assert snapshot.count(ANYTHING) == 3

    def test_the_beginning_of_documents_is_returned_up_to_a_size(self, index: Index) -> None:
        index.apply([entry("a.md", "x" * 50, "y" * 50, "z" * 50), entry("b.md", "one")])
        with index.snapshot() as snapshot:
            first = snapshot.first_passages(["test:a", "test:b", "test:none"])
            assert [len(texts) for texts in first.values()] == [1, 1, 0]
            assert len(snapshot.first_passages(["test:a"], 60)["test:a"]) == 2
