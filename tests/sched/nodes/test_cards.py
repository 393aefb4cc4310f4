from __future__ import annotations

import pytest

from cockpit.model.node import CardSlice
from cockpit.sched.nodes.cards import can_be_whole, every_slice, share_slices, share_taken, shareable
from tests.sched.world import cards

(FREE,) = cards(1)
(QUARTERS,) = cards(1, slices=4)
(SEVENTHS,) = cards(1, slices=7, hardware=True)


@pytest.mark.req("SC-05")
@pytest.mark.parametrize(
    ("card", "milli", "taken"),
    [(FREE, 1, 1), (FREE, 333, 333), (QUARTERS, 250, 250), (QUARTERS, 251, 500), (QUARTERS, 999, 1000),
     (SEVENTHS, 142, 142), (SEVENTHS, 143, 284), (SEVENTHS, 994, 994)],
)  # fmt: skip
def test_a_fixed_profile_rounds_a_share_up_to_whole_slots(card, milli, taken) -> None:
    assert share_taken(card, milli) == taken


@pytest.mark.req("SC-05")
def test_shares_fill_the_slots_of_a_card_and_no_more() -> None:
    assert [shareable(card) for card in (FREE, QUARTERS, SEVENTHS)] == [1000, 1000, 994]


@pytest.mark.req("SC-05")
def test_a_free_share_is_one_slice_on_the_lowest_unused_slot() -> None:
    assert share_slices(FREE, 300, {0, 1, 3}) == (CardSlice(0, 2, 300),)


@pytest.mark.req("SC-05")
def test_a_fixed_share_is_one_slice_per_slot_also_around_used_ones() -> None:
    assert share_slices(QUARTERS, 700, {1}) == (CardSlice(0, 0, 250), CardSlice(0, 2, 250), CardSlice(0, 3, 250))


@pytest.mark.req("SC-05")
def test_a_card_sliced_by_the_hardware_is_never_allocated_whole() -> None:
    assert [can_be_whole(card) for card in (FREE, QUARTERS, SEVENTHS)] == [True, True, False]


@pytest.mark.req("SC-05")
def test_a_whole_card_is_the_card_or_every_slot_of_it() -> None:
    assert every_slice(QUARTERS) == (CardSlice(0, None, 1000),)
    assert [part.slot for part in every_slice(SEVENTHS)] == list(range(7))
    assert {part.milli for part in every_slice(SEVENTHS)} == {142}
