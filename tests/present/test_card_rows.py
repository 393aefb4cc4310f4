from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId, task_id
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import CardLoad, SliceUse
from cockpit.present.columns import Context
from cockpit.present.tables.cards import CARDS, CardState, card_rows, uuid
from tests.doubles.samples import NOW, node_row

FREE = Card(index=0, model="A100", uuid="GPU-0")
QUARTERS = Card(index=1, model="A100", slices=4, slice_uuids=("a", "b", "c", "d"))
ANY = (NodeSpec(card_milli=1),)


def node(*uses: SliceUse, loads: tuple[CardLoad, ...] = (), **changes: object):
    return replace(node_row(cards=(FREE, QUARTERS), **changes), slices=uses, used_cpus=0, loads=loads)


def use(card: int, slot: int | None, milli: int, **fields: object) -> SliceUse:
    return replace(SliceUse(card, slot, milli, JobId(7), "app", "ann"), **fields)


def told(row, requests=ANY):
    return [(part.key, part.milli, str(part.state), part.job) for part in card_rows(row, requests)]


@pytest.mark.req("UI-05")
def test_a_whole_card_is_one_row_and_a_sliced_one_a_row_for_each_slice() -> None:
    assert told(node(use(1, 2, 250), use(0, None, 1000))) == [
        ((0, -1), 1000, "allocated", 7),
        ((1, 0), 250, "free", None),
        ((1, 1), 250, "free", None),
        ((1, 2), 250, "allocated", 7),
        ((1, 3), 250, "free", None),
    ]


@pytest.mark.req("UI-05")
def test_the_free_part_of_a_shared_card_is_one_row() -> None:
    rows = told(node(use(0, 0, 300), use(0, 1, 200)))[:3]
    assert rows == [((0, 0), 300, "allocated", 7), ((0, 1), 200, "allocated", 7), ((0, 1000), 500, "free", None)]


@pytest.mark.req("UI-05")
def test_stranded_out_of_service_and_held_parts_are_distinguished() -> None:
    tight = (NodeSpec(card_milli=600),)
    assert [state for _, _, state, _ in told(node(use(0, 0, 500)), tight)][:2] == ["allocated", "stranded"]
    assert told(node(state=NodeState.DRAINED))[0][2] == "out of service"
    assert told(node(use(0, None, 1000, held=True)))[0][2] == "kept"
    assert told(node(), ())[0][2] == "free"  # nobody in sight asks for cards


@pytest.mark.req("UI-05")
def test_allocated_is_not_busy_and_unmeasured_is_not_zero() -> None:
    context = Context(now=NOW)
    rows = card_rows(node(use(0, None, 1000), loads=(CardLoad(0, 0), CardLoad(1, 90))), ANY)
    column = CARDS.find("in_use")
    assert column.texts([rows[0], rows[1]], context) == ["0 %", "n/a (MIG)"]
    assert column.facts([rows[0], rows[1]], context) == [0, None]
    assert column.texts(card_rows(node(), ANY)[:1], context) == ["n/a"]


@pytest.mark.req("UI-05", "SC-05")
def test_the_thousandths_of_a_card_are_all_there() -> None:
    for uses in ((), (use(0, 0, 1),), (use(0, 0, 999), use(1, 3, 250)), (use(0, None, 1000), use(1, 0, 250))):
        rows = card_rows(node(*uses), ANY)
        assert [sum(row.milli for row in rows if row.card.index == card) for card in (0, 1)] == [1000, 1000]
        assert len({(row.key, row.state is CardState.FREE) for row in rows}) == len(rows)


def test_a_hidden_job_has_no_id() -> None:
    (hidden, *_) = card_rows(node(use(0, None, 1000, job=JobId(0), name="-", user="-")), ANY)
    context = Context(now=NOW)
    assert CARDS.find("job").facts([hidden], context) == [None]
    assert CARDS.find("usage").facts([hidden], context) == ["1:-"]
    assert hidden.state is CardState.ALLOCATED


@pytest.mark.req("UI-05", "SL-11")
def test_a_task_is_named_by_its_array_id_and_index() -> None:
    rows = card_rows(node(use(0, None, 1000, job=task_id(27, 2))), ANY)
    (column,) = (each for each in CARDS.columns if each.id == "job")
    assert column.texts(rows, Context(now=NOW))[:2] == ["27_2", "–"]


@pytest.mark.req("KU-06", "UI-05")
def test_a_card_that_is_only_assumed_has_no_number_and_no_uuid() -> None:
    context = Context(now=NOW)
    rows = card_rows(node(use(0, None, 1000, assumed=True), use(1, 2, 250, assumed=True)), ANY)
    usage = next(each for each in CARDS.columns if each.id == "usage")
    assert [usage.derive(row, context) for row in rows if row.job] == ["?:app", "?(?):app"]
    assert [(uuid(row), row.assumed) for row in rows if row.job] == [(None, True), (None, True)]
    assert uuid(rows[1]) == "a"
