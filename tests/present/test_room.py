"""What of a node spec finds room on a node, as the form and `cockpit nodes` judge it."""

from __future__ import annotations

import pytest

from cockpit.model.node import Card
from cockpit.model.spec import NodeSpec
from cockpit.present.tables.nodes import copies_that_fit, fits
from tests.doubles.samples import node_row


@pytest.mark.req("LA-70", "JT-44")
@pytest.mark.parametrize(("asked", "there"), [("a100", True), ("A100", True), ("A_100", False), ("h100", False)])
def test_a_model_is_found_in_any_spelling(asked: str, there: bool) -> None:
    assert fits(node_row(), NodeSpec(card_milli=1000, card_models=(asked,))) is there


@pytest.mark.req("JT-43")
@pytest.mark.parametrize(
    ("slices", "asked", "copies"),
    [
        (0, 333, 3),
        (4, 250, 4),
        (4, 333, 2),  # of slots of a quarter each takes two
        (4, 750, 1),
        (7, 142, 7),
        (7, 500, 1),
    ],
)
def test_shares_are_counted_in_slots_where_a_card_has_them(slices: int, asked: int, copies: int) -> None:
    row = node_row(cards=(Card(index=5, model="T4", slices=slices),))
    assert copies_that_fit(row, NodeSpec(cpus=1, memory_mib=1, card_milli=asked)) == copies


@pytest.mark.req("JT-43")
def test_a_sliced_card_is_not_counted_as_whole() -> None:
    cut = Card(index=5, model="A100", slices=2, slice_uuids=("a", "b"))
    assert copies_that_fit(node_row(cards=(cut,)), NodeSpec(card_milli=1000)) == 0
    assert copies_that_fit(node_row(cards=(Card(index=5, model="A100", slices=2),)), NodeSpec(card_milli=1000)) == 1
