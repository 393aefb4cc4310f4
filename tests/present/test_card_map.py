from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import SliceUse
from cockpit.present.ascii import ascii_text
from cockpit.present.card_map import PICKED, by_job, by_user, cells, laid_out, part_at
from cockpit.present.card_map import _shares as shares
from cockpit.present.spans import Line, line_width, plain
from cockpit.present.tables.cards import card_rows
from tests.doubles.samples import node_row

ANY = (NodeSpec(card_milli=1),)
LAYOUT = laid_out(60, 4, 3)


def a_node(*uses: SliceUse, cards: int = 4, **changes: object):
    return replace(
        node_row(cards=tuple(Card(index=index, model="A100") for index in range(cards)), **changes), slices=uses
    )


def use(card: int, slot: int | None, milli: int, job: int = 7, name: str = "app", **fields: object) -> SliceUse:
    return replace(SliceUse(card, slot, milli, JobId(job), name, "ann"), **fields)


def the_map(row, layout=LAYOUT, requests=ANY, **look: object) -> Line:
    return cells(card_rows(row, requests), layout, by_job, **look)[1]


def drawn(*uses: SliceUse, requests=ANY, **changes: object) -> str:
    return plain(the_map(a_node(*uses, **changes), requests=requests))


@pytest.mark.req("UI-05")
def test_the_widths_of_this_test() -> None:
    assert (LAYOUT.cell, LAYOUT.map_columns) == (10, 43)


@pytest.mark.req("UI-05")
def test_whole_cards_of_one_job_side_by_side_are_one_bar_with_the_edges_of_its_cards() -> None:
    assert drawn(use(0, None, 1000), use(1, None, 1000), use(3, None, 1000, 8, "eval")) == (
        "app━━━━━━━┿━━━━━━━━━━ ·········· eval━━━━━━"
    )


@pytest.mark.req("UI-05")
def test_a_name_runs_on_over_the_edge_of_a_card() -> None:
    assert drawn(use(0, None, 1000, 7, "llama-sft-12"), use(1, None, 1000, 7, "llama-sft-12")) == (
        "llama-sft-12━━━━━━━━━ ·········· ··········"
    )


@pytest.mark.req("UI-05")
def test_a_shared_card_is_split_by_size_with_visible_job_borders() -> None:
    assert drawn(use(0, 0, 500), use(0, 1, 300, 8, "eval")) == "app │eva·· ·········· ·········· ··········"
    assert drawn(use(0, 0, 250), use(0, 1, 250), use(0, 2, 500, 8, "eval")).startswith("app │eval  ")


@pytest.mark.req("UI-05")
def test_a_free_part_has_a_distinct_symbol_also_in_ascii() -> None:
    stranded = drawn(use(0, 0, 500), requests=(NodeSpec(card_milli=600, card_models=("A100",)),))
    assert stranded == "app  ░░░░░ ·········· ·········· ··········"
    assert drawn(state=NodeState.DRAINED) == "╌╌╌╌╌╌╌╌╌╌ " * 3 + "╌╌╌╌╌╌╌╌╌╌"
    assert drawn(use(0, None, 1000, held=True)).startswith("✗app━━━━━━ ")
    assert ascii_text("━┿·░╌✗│") == "=+.:-x|"


@pytest.mark.req("UI-05")
def test_colours_follow_the_job_or_the_user() -> None:
    (first, other, same_user, _) = card_rows(
        a_node(use(0, None, 1000, 7), use(1, None, 1000, 8, user="bob"), use(2, None, 1000, 9)), ANY
    )
    assert by_job(first) != by_job(other)
    assert by_user(first) == by_user(same_user) != by_user(other)


@pytest.mark.req("UI-05")
def test_the_selected_part_and_filter_matches_are_highlighted() -> None:
    row = a_node(use(0, None, 1000), use(1, None, 1000), use(2, None, 1000, 8, "eval"))
    roles = {span.text: span.role for span in the_map(row, picked=(1, -1), lit={(0, -1), (1, -1)})}
    assert roles["━" * 10] == PICKED
    assert roles["app━━━━━━━┿"] == "hue7"
    assert roles["eval━━━━━━"] == "free"


@pytest.mark.req("UI-05")
def test_a_small_node_whose_cards_are_shared_has_wide_ones() -> None:
    row = a_node(use(0, 0, 500), cards=2)
    assert plain(the_map(row)) == "app       " + "·" * 11 + " " + "·" * 21


@pytest.mark.req("UI-05")
@pytest.mark.parametrize("total", [40, 79, 100, 119, 199, 400])
@pytest.mark.parametrize("cards", [1, 4, 8, 16, 64])
def test_a_line_fits_where_it_can(total: int, cards: int) -> None:
    layout = laid_out(total, cards, 5)
    columns = layout.widths()
    assert len(columns) == len(layout.titles())
    assert sum(columns) + 2 * (len(columns) - 1) <= max(total, 40)
    if (cards, total) in {(8, 79), (8, 119), (16, 119)}:
        assert layout.cards == cards


slices = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(1, 1000), st.integers(1, 3), st.sampled_from(["a", "前処理", "long-name"])
    ),
    max_size=12,
)


@given(slices, st.integers(40, 200))
def test_every_column_of_the_map_belongs_to_the_part_that_is_drawn_there(taken, total) -> None:
    free, uses = [1000] * 4, []
    for slot, (card, milli, job, name) in enumerate(taken):
        if 0 < milli <= free[card]:
            free[card] -= milli
            uses.append(use(card, slot, milli, job, name))
    row, layout = a_node(*uses), laid_out(total, 4, 3)
    parts = card_rows(row, ANY)
    shown = the_map(row, layout)
    assert line_width(shown) <= layout.map_columns
    picked = {part.key for column in range(layout.map_columns) if (part := part_at(parts, layout, column))}
    assert picked <= {part.key for part in parts}
    assert {card for card, _ in picked} == set(range(layout.cards))


@given(sizes=st.lists(st.integers(1, 1000), min_size=1, max_size=8), cell=st.integers(1, 24))
def test_the_parts_of_a_card_share_its_columns_by_their_size(sizes: list[int], cell: int) -> None:
    whole = card_rows(a_node(use(0, 0, 1000), cards=1), ANY)[0]
    columns = shares([replace(whole, milli=milli) for milli in sizes], cell)
    assert sum(columns) == cell
    assert min(columns) >= (1 if cell >= len(sizes) else 0)
    if cell >= len(sizes):
        exact = [milli * cell / sum(sizes) for milli in sizes]
        assert all(got <= max(1, want + 1 + len(sizes)) for got, want in zip(columns, exact, strict=True))


@pytest.mark.req("KU-06", "UI-05")
def test_jobs_on_cards_that_are_not_known_have_a_sign_and_do_not_join_those_that_are() -> None:
    assert drawn(use(0, None, 1000), use(1, None, 1000, assumed=True), use(2, None, 1000, assumed=True)) == (
        "app━━━━━━━ ?app━━━━━━┿━━━━━━━━━━ ··········"
    )
    assert drawn(use(0, 0, 500, assumed=True), use(0, 1, 500, 8, "b"), cards=2).startswith("?app     │b")
