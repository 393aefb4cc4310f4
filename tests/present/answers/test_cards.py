from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import SliceUse
from cockpit.present.card_map import card_answer, legend, totals
from cockpit.present.columns import Context
from cockpit.present.spans import plain
from cockpit.present.tables.cards import card_rows
from tests.doubles.samples import NOW, job_row, node_row

CONTEXT = Context(now=NOW, zone=UTC)
ANY = (NodeSpec(card_milli=1),)
NOTE = SliceUse(0, 1, 250, JobId(4), "note-b\x1b[2J", "ann")


def a_node(*uses: SliceUse, **changes: object):
    cards = (Card(index=0, model="A100", memory_mib=80 * 1024),)
    return replace(node_row(cards=cards, pool="shared", **changes), slices=uses)


def answer(row, number: int = 0, requests=ANY, *, brief: bool = False, **changes: object) -> list[str]:
    job = job_row(4, name="note-b", **changes)
    return [plain(each) for each in card_answer(card_rows(row, requests)[number], row, job, CONTEXT, 100, brief=brief)]


@pytest.mark.req("UI-05")
def test_the_answer_names_the_job_the_size_and_the_start_of_a_slice() -> None:
    lines = answer(a_node(NOTE))
    assert lines[0].startswith("n07 1(2):note-b")
    assert "ann  250/1000 of card 1 since 10:00" in lines[0]
    assert lines[0].endswith("Enter its job")
    assert lines[1:4] == [
        "  card    A100 80G   in use  n/a",
        "  job     4 note-b  ● running  2:00:00 of 8:00:00",
        "  node    28 CPUs and 488G of memory free, pool shared",
    ]
    assert len(answer(a_node(NOTE), brief=True)) == 2
    assert "\x1b" not in "".join(lines)


@pytest.mark.req("UI-05")
def test_time_in_which_the_job_was_suspended_is_no_run_time() -> None:
    assert answer(a_node(NOTE), suspended_ms=90 * 60_000)[2] == "  job     4 note-b  ● running  30:00 of 8:00:00"


@pytest.mark.req("UI-05")
def test_the_answer_explains_why_a_free_part_is_unusable() -> None:
    assert answer(a_node(NOTE), 1)[0] == "n07 1  750/1000 of card 1 is free."
    asked = (NodeSpec(card_milli=1000),)
    assert answer(a_node(NOTE), 1, asked)[0].endswith("is free, but no job that waits or runs could use it.")
    drained = a_node(state=NodeState.DRAINED, state_reason="a technician comes")
    assert answer(drained)[0] == "n07 1  the whole card is free, but the node is drained: a technician comes."


@pytest.mark.req("UI-05")
def test_the_totals_of_cards_are_consistent() -> None:
    parts = card_rows(a_node(NOTE), (NodeSpec(card_milli=1000),))
    assert plain(totals(parts, words=True)) == "0.25 of 1 card allocated · 0.75 stranded"
    assert plain(totals(parts, words=False)) == "0.25 alloc · 0.75 stranded"


@pytest.mark.req("UI-05")
def test_the_legend_fits_the_smallest_screen() -> None:
    for unknown in (False, True):
        shown = plain(legend("by user", "u", unknown=unknown))
        assert "░ stranded" in shown
        assert ("? unknown" in shown) == unknown
        assert shown.endswith("by user (u)")
        assert len(shown) <= 78
