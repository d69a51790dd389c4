"""What every Index promises.

Subclass it with an `index` fixture that gives an empty index of 8 dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ragdocs.protocols import Index, Vectors
from ragdocs.types import Chunk, Document, Entry, Filter, GitContext, Link

DIM = 8
NOON = datetime(2026, 2, 4, 12, 0, tzinfo=UTC)
ANYTHING = Filter()


def entry(path: str, *texts: str, stamp: str = "s1", **card: Any) -> Entry:
    """Make a document of one chunk for each text; equal texts have equal digests."""
    name = path.removesuffix(".md")
    values = {"title": name, "version": "|".join(texts), "modified_at": NOON, **card}
    document = Document(id=f"test:{name}", lane="test", path=path, **values)
    pieces = enumerate(texts or (document.title,))
    chunks = tuple(
        Chunk(f"{document.id}#{n}", document.id, (), t, n + 1, n + 1, digest(t)) for n, t in pieces
    )
    return Entry(document, chunks, stamp)


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def axis(*weights: float) -> Vectors:
    """Return the unit vector with these first components."""
    vector = np.zeros(DIM, dtype=np.float32)
    vector[: len(weights)] = weights
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def paths(index: Index, keys: Iterable[int]) -> list[str]:
    return [document.path for document, _ in index.load(list(keys))]


def matching(index: Index, text: str, where: Filter = ANYTHING, k: int = 10) -> list[str]:
    return paths(index, [key for key, _ in index.match(text, k, where)])


def near(index: Index, vector: Vectors, where: Filter = ANYTHING, k: int = 10) -> list[str]:
    return paths(index, [key for key, _ in index.nearest(vector, k, where)])


def listed(index: Index, **where: Any) -> list[str]:
    return [document.path for document in index.documents(Filter(**where))]


class IndexContract:
    """Inherited by the tests of each implementation."""

    @pytest.fixture
    def index(self) -> Index:
        raise NotImplementedError

    # --- documents ---

    def test_an_empty_index_answers_everything_with_nothing(self, index: Index) -> None:
        assert index.stamps() == {}
        assert index.documents() == index.documents(Filter(tags=("x",))) == []
        assert index.document("test:a") is None
        assert index.match("anything", 5, ANYTHING) == index.nearest(axis(1), 5, ANYTHING) == []
        assert index.missing(5) == []
        assert index.linked(["test:a"], ANYTHING) == [[]]
        assert [len(part) for part in index.siblings(np.empty(0, dtype=np.int64))[:2]] == [0, 0]
        assert index.asked("anything at all") == 2
        assert index.chunks("test:a") == []
        assert index.links_to(["a"]) == {}
        assert index.vectors([]).shape == (0, DIM)
        assert set(index.counts().values()) == {0}

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
        assert index.document("test:f/a") == given.document
        assert [chunk for _, chunk in index.load(index.chunks("test:f/a"))] == list(given.chunks)

    def test_documents_are_listed_by_path(self, index: Index) -> None:
        index.apply([entry("b.md", "x"), entry("a/z.md", "x")])
        index.apply([entry("a.md", "x")])
        assert [document.path for document in index.documents()] == ["a.md", "a/z.md", "b.md"]

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
        assert index.links_to(["x"]) == {}
        assert index.counts() == {"documents": 1, "chunks": 1, "vectors": 0, "links": 0}
        assert index.stamps() == {"a.md": ("s2", "carrot")}

    def test_removed_paths_are_gone_and_unknown_ones_do_not_matter(self, index: Index) -> None:
        index.apply(
            [entry("a.md", "apple common"), entry("b.md", "pear common"), entry("c.md", "common")]
        )
        index.fill({digest("pear common"): axis(1)})
        index.apply([], ["b.md", "c.md", "never.md"])
        assert matching(index, "common") == ["a.md"]
        assert matching(index, "pear") == near(index, axis(1)) == []
        assert index.chunks("test:b") == []
        assert index.document("test:b") is None
        assert list(index.stamps()) == ["a.md"]

    def test_what_was_removed_may_come_back(self, index: Index) -> None:
        index.apply([entry("a.md", "apple"), entry("b.md", "pear")])
        index.apply([], ["a.md"])
        index.apply([entry("a.md", "apple")])
        assert matching(index, "apple") == ["a.md"]
        assert index.counts()["chunks"] == 2

    def test_a_rename_in_one_step_keeps_one_document(self, index: Index) -> None:
        index.apply([entry("a.md", "apple")])
        index.apply([entry("b.md", "apple")], ["a.md"])
        assert matching(index, "apple") == listed(index) == ["b.md"]

    def test_restamping_changes_the_stamp_and_nothing_else(self, index: Index) -> None:
        index.apply([entry("a.md", "apple"), entry("b.md", "pear")])
        index.fill({digest("apple"): axis(1)})
        before = index.counts()
        index.restamp({"a.md": "s9"})
        assert index.stamps() == {"a.md": ("s9", "apple"), "b.md": ("s1", "pear")}
        assert index.counts() == before

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
        assert matching(index, "x", Filter(min_importance=3, min_confidence=0.5)) == [
            "plain.md",
            "high.md",
        ]

    def test_a_filter_does_not_change_the_scores_of_what_passes(self, index: Index) -> None:
        index.apply(
            [
                entry(f"{n}.md", f"apple {'pear ' * n}", tags=("even",) * (n % 2 == 0))
                for n in range(8)
            ]
        )
        whole = dict(index.match("apple pear", 10, ANYTHING))
        part = index.match("apple pear", 10, Filter(tags=("even",)))
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
        waiting = [(document.path, chunk.text) for document, chunk in index.missing(10)]
        assert waiting == [
            ("new.md", "new"),
            ("new.md", "shared"),
            ("old.md", "old"),
            ("none.md", "none"),
        ]
        assert index.missing(2) == index.missing(10)[:2]
        index.fill({digest("shared"): axis(1)})
        assert [chunk.text for _, chunk in index.missing(10)] == ["new", "old", "none"]
        assert index.counts()["vectors"] == 2
        assert sorted(near(index, axis(1))) == ["new.md", "old.md"]

    def test_a_long_document_lets_others_have_their_turn(self, index: Index) -> None:
        long = entry("long.md", *(f"passage {number}" for number in range(2_000)), modified_at=NOON)
        index.apply([long, entry("old.md", "old", modified_at=NOON - timedelta(days=1))])
        waiting = [document.path for document, _ in index.missing(3_000)]
        assert len(waiting) == 2_001
        assert waiting[0] == "long.md"
        assert waiting.index("old.md") < 300

    def test_a_document_of_too_many_different_words_is_refused(self, index: Index) -> None:
        def written(count: int) -> Entry:
            words = [f"w{number:07}" for number in range(count)]
            return entry(
                "a.md", *(" ".join(words[at : at + 1_000]) for at in range(0, count, 1_000))
            )

        assert index.objection(written(50_000), 60) == ""
        assert "more than 200,000 different words" in index.objection(written(201_000), 60)
        assert "takes too long" in index.objection(written(1_000), -1)
        assert index.objection(entry("b.md", *["the same words again " * 100] * 1_000), 60) == ""

    def test_the_missing_chunks_of_some_paths_are_those_of_these_paths(self, index: Index) -> None:
        index.apply(
            [
                entry("a.md", "shared", "mine", modified_at=NOON - timedelta(days=1)),
                entry("b.md", "shared"),
            ]
        )
        assert {(d.path, c.text) for d, c in index.missing(10, ["a.md"])} == {
            ("a.md", "shared"),
            ("a.md", "mine"),
        }
        assert index.missing(10, ["nowhere.md"]) == []

    def test_vectors_for_unknown_digests_are_passed_over(self, index: Index) -> None:
        index.apply([entry("a.md", "apple")])
        index.fill({"unknown": axis(1)})
        index.fill({})
        assert index.counts()["vectors"] == 0

    def test_nearest_orders_by_inner_product(self, index: Index) -> None:
        index.apply([entry(f"{n}.md", str(n)) for n in range(4)])
        index.fill({digest(str(n)): axis(1, n) for n in (2, 0, 3, 1)})
        found = index.nearest(axis(1), 3, ANYTHING)
        assert paths(index, [key for key, _ in found]) == ["0.md", "1.md", "2.md"]
        assert [score for _, score in found] == pytest.approx([1, 2**-0.5, 5**-0.5], abs=1e-3)

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

    def test_a_document_vector_is_the_unit_mean_of_its_chunks(self, index: Index) -> None:
        index.apply([entry("a.md", "one", "two"), entry("b.md", "three")])
        index.fill({digest("one"): axis(1), digest("two"): axis(0, 1)})
        found = index.vectors(["test:b", "test:a", "test:nowhere"])
        assert found[1] == pytest.approx(axis(1, 1), abs=1e-3)
        assert not found[0].any()
        assert not found[2].any()

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

    def test_the_words_that_matched_are_told_as_the_query_wrote_them(self, index: Index) -> None:
        index.apply([entry("a.md", "tokens expire daily")])
        key = index.chunks("test:a")[0]
        assert index.matched('When do "Tokens" expire, zebra?', [key]) == [("Tokens", "expire")]
        assert index.matched("", [key]) == [()]

    # --- links ---

    def test_all_links_from_one_document_to_one_target_are_there(self, index: Index) -> None:
        links = (
            Link("src/auth.py", "mentions", "first"),
            Link("other", "plans", "between"),
            Link("src/Auth.py", "plans", "second"),
        )
        index.apply([entry("a.md", "x", links=links)])
        assert index.links_to(["src/auth.py"]) == {"test:a": (links[0], links[2])}
        assert index.links_to(["other", "src/auth.py", "nowhere"]) == {"test:a": links}
        assert index.counts()["links"] == 3

    def test_updating_or_removing_a_target_keeps_the_links_of_others(self, index: Index) -> None:
        link = Link("b", "mentions", "see b")
        index.apply([entry("a.md", "x", links=(link,)), entry("b.md", "y")])
        index.apply([entry("b.md", "z")])
        assert index.links_to(["b"]) == {"test:a": (link,)}
        index.apply([], ["b.md"])
        assert index.links_to(["b"]) == {"test:a": (link,)}
        index.apply([entry("b.md", "back")])
        assert index.linked(["test:a"], ANYTHING) == [["test:b"]]

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
            assert index.links_to([name]) == {}, name
        assert set(index.links_to([" /SRC/auth.py/"])) == {"test:a"}

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
        assert index.linked(["test:a", "test:b", "test:c"], ANYTHING) == [
            ["test:b", "test:c"],
            [],
            ["test:a"],
        ]
        hidden = Filter(hidden=("archived",))
        assert index.linked(["test:a", "test:nowhere"], hidden) == [["test:c"], []]

    def test_a_link_may_name_a_document_by_path_stem_title_or_alias(self, index: Index) -> None:
        index.apply([entry("f/target.md", "x", title="The Target", aliases=("Bullseye",))])
        for n, name in enumerate(("f/target.md", "f/target", "target", "the target", "BULLSEYE")):
            index.apply([entry(f"{n}.md", "x", links=(Link(name, "mentions", ""),))])
            assert index.linked([f"test:{n}"], ANYTHING) == [["test:f/target"]], name

    # --- keys ---

    def test_siblings_are_all_chunks_of_the_same_documents(self, index: Index) -> None:
        index.apply(
            [
                entry("a.md", "one", "two"),
                entry("b.md", "three"),
                entry("c.md", "four", "five", "six"),
            ]
        )
        index.apply([entry("a.md", "seven", "eight"), entry("d.md", "nine")])
        a, c = index.chunks("test:a"), index.chunks("test:c")
        family = index.siblings(np.array([a[1], c[0], a[0]]))
        assert family.keys.tolist() == sorted(a + c)
        assert [family.keys[place] for place in family.starts] == sorted([a[0], c[0]])
        assert family.lone == 0.5

    def test_chunks_are_loaded_in_the_order_of_their_keys(self, index: Index) -> None:
        index.apply([entry("a.md", "one", "two"), entry("b.md", "three")])
        keys = [*index.chunks("test:b"), *reversed(index.chunks("test:a"))]
        assert [(d.path, c.text) for d, c in index.load(keys)] == [
            ("b.md", "three"),
            ("a.md", "two"),
            ("a.md", "one"),
        ]
        assert index.load([]) == []
