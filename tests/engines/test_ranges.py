from __future__ import annotations

import random
from math import inf

from ragdocs.engines.local.ranges import MOST_GROUPS, Ranges


def brute(numbers: dict[int, float | None], first: float, last: float) -> list[int]:
    kept = []
    for slot in sorted(numbers):
        number = numbers[slot]
        if number is not None and first <= number <= last:
            kept.append(slot)
    return kept


def chosen(mask: bytearray) -> list[int]:
    return [slot for slot, passes in enumerate(mask) if passes]


def test_a_range_is_what_a_look_at_every_slot_finds_while_slots_come_and_go() -> None:
    rng = random.Random(7)
    few = [None, 1.0, 2.0, 2.0, 3.5, 9.0]
    many = [None, *map(float, range(2 * MOST_GROUPS))]
    for choices, slots in ((few, 40), (many, 3 * MOST_GROUPS)):
        numbers = {slot: rng.choice(choices) for slot in range(slots)}
        ranges = Ranges(slots, [(number, slot) for slot, number in numbers.items()])
        for step in range(400):
            slot = rng.randrange(len(numbers) + step % 2)
            if numbers.get(slot) is not None:
                ranges.remove(numbers[slot], slot)
                numbers[slot] = None
            else:
                numbers[slot] = rng.choice(choices)
                ranges.add(numbers[slot], slot)
            first, last = rng.choice([-inf, 2.0, 3.0, 9.5]), rng.choice([0.5, 2.0, 9.0, 300.0, inf])
            assert chosen(ranges.within(first, last)) == brute(numbers, first, last)


def test_nothing_is_within_a_range_of_no_numbers() -> None:
    assert Ranges(0, []).within(-inf) == b""
    assert Ranges(2, [(None, 0)]).within(-inf) == bytes(2)
