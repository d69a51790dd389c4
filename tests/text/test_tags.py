from __future__ import annotations

from ragdocs.text.tags import letters, united


def test_spellings_of_one_tag_are_one() -> None:
    assert united(["billing", "Billing", "road-map", "road_map", "ledger"]) == [
        "billing",
        "road-map",
        "ledger",
    ]


def test_a_tag_without_letters_is_itself() -> None:
    assert letters("#!") == "#!"
    assert united(["#!", "+"]) == ["#!", "+"]
