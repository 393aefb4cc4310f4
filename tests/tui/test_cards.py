"""The map of the cards: who holds what, the part under the cursor, and its job one key away."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId, NodeName
from cockpit.model.spec import NodeSpec
from cockpit.model.view import SliceUse
from cockpit.present.columns import Context
from cockpit.tui.picture import _painted
from cockpit.tui.rows.cards import CardRows
from cockpit.tui.views.cards import CardMap
from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.doubles.samples import NOW, node_row
from tests.tui.lab import GIB, Lab, a_lab, job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rich.segment import Segment

FIXTURE = str(Path(__file__).with_name("cards.toml"))


def shares(name: str, milli: int, model: str = "A100"):
    spec = NodeSpec(cpus=1, memory_mib=GIB, card_milli=milli, card_models=(model,))
    return replace(job(name), specs=(spec,))


ALICE = (job("train", cards=2), shares("note", 500), shares("mig-a", 250, "A30"))
BOB = (shares("lab", 250), shares("mig-b", 500, "A30"))


@asynccontextmanager
async def the_cards(**outside) -> AsyncIterator[Lab]:
    async with a_lab(*ALICE, bobs=BOB, fixture=FIXTURE, **outside) as lab:
        await lab.cockpit.sees("train").press("3").sees("ALLOC")
        yield lab


@pytest.mark.req("UI-05")
async def test_each_node_with_cards_has_a_row_with_the_jobs_of_its_cards() -> None:
    async with the_cards() as lab:
        screen = await lab.cockpit.sees("3.5 of 6 cards allocated")
        assert "train━" in screen
        assert "n01" in screen
        assert "m01" in screen
        assert "c01" not in screen
        assert "STRANDED" in screen


@pytest.mark.req("UI-05")
async def test_the_slice_under_the_cursor_shows_its_usage_and_opens_its_job() -> None:
    async with the_cards() as lab:
        await lab.cockpit.stands_on("n01").sees("n01 1:train", "alice  the whole card since", "in use")
        await lab.cockpit.press("right", "right").sees("n01 3(1):note", "alice  500/1000 of card 3")
        await lab.cockpit.press("right").sees("n01 3(2):lab", "bob  250/1000 of card 3")
        await lab.cockpit.press("Enter").sees("Replicas", "lab").press("escape").sees("n01 3(2):lab")


def cursor_row(lab: Lab) -> list[Segment]:
    """The row under the cursor as it is painted, with its colours."""
    return next(list(strip) for strip in _painted(lab.cockpit.app) if strip.text.startswith(CURSOR_SIGN))


@pytest.mark.req("UI-05")
async def test_the_highlight_follows_the_picked_card_at_once() -> None:
    async with the_cards() as lab:
        await lab.cockpit.stands_on("n01").sees("n01 1:train")
        table = lab.cockpit.app.query_one(CardMap)
        first = cursor_row(lab)
        # Without a step of the cockpit, which would bring everything up to date a moment later.
        table.action_pick(1)
        second = cursor_row(lab)
        assert "".join(each.text for each in second) == "".join(each.text for each in first)
        assert second != first
        table.action_pick(-1)
        assert cursor_row(lab) == first


@pytest.mark.req("UI-05")
async def test_a_click_picks_the_card_under_the_mouse_and_moves_the_cursor_to_its_row() -> None:
    async with the_cards() as lab:
        await lab.cockpit.stands_on("n01")
        column = next(line.index("mig-b") for line in (await lab.cockpit).splitlines() if "mig-b" in line)
        await lab.cockpit.player._pilot.click(CardMap, offset=(column, 1))
        await lab.cockpit.stands_on("m01").sees("m01 1(2):mig-b")
        await lab.cockpit.player._pilot.click(CardMap, offset=(column, 1), times=2)
        await lab.cockpit.sees("Replicas", "mig-b")


@pytest.mark.req("UI-05")
async def test_a_hardware_slice_has_no_usage_and_the_cursor_column_is_kept_on_another_node() -> None:
    async with the_cards() as lab:
        await lab.cockpit.press("right", "right", "j").sees("m01 2(4)", "in use  n/a (MIG)")
        await lab.cockpit.press("left", "left", "left", "left").sees("m01 1(4)").press("k").sees("n01 1:train")


@pytest.mark.req("UI-05")
async def test_the_cursor_stays_on_its_card_when_the_job_ends() -> None:
    async with the_cards() as lab:
        await lab.cockpit.press("right", "right", "right").sees("n01 3(2):lab")
        bobs = next(row for row in await lab.backend.jobs() if row.name == "lab")
        await lab.backend.cancel(bobs.id)
        await lab.cockpit.lives(90).sees("n01 3  500/1000 of card 3 is free")


@pytest.mark.req("UI-05")
async def test_a_filter_keeps_the_nodes_of_what_matches_and_colours_turn() -> None:
    async with the_cards() as lab:
        await lab.cockpit.press("/").type("model:A30 user:bob").press("Enter").misses("n01").sees("m01")
        await lab.cockpit.press("escape").sees("n01", "by job").press("o").sees("by user")
        await lab.cockpit.press("/").type("user:nobody").press("Enter").sees("No card matches")


@pytest.mark.req("UI-05")
async def test_a_free_card_has_no_job_to_open() -> None:
    async with the_cards() as lab:
        await lab.cockpit.press("right", "right", "right", "right", "right").sees("n01 4  the whole card is free")
        await lab.cockpit.press("Enter").sees("There is no job under the cursor.")


@pytest.mark.req("UI-05")
async def test_the_cards_view_works_at_80_by_24_and_in_ascii() -> None:
    async with the_cards(size=(80, 24), ascii_only=True) as lab:
        screen = await lab.cockpit.sees("3.5 alloc", "signs")
        assert "train===" in screen
        assert screen.isascii()


@pytest.mark.req("UI-05")
async def test_a_cluster_without_cards_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_lab() as lab:

        async def bare():
            return [replace(node_row("n01", cards=()), slices=())]

        monkeypatch.setattr(lab.backend, "nodes", bare)
        await lab.cockpit.press("3").sees("No node of this cluster has a card", "cockpit doctor")


@pytest.mark.req("UI-05")
def test_only_changed_rows_of_a_thousand_nodes_are_rebuilt() -> None:
    rows = CardRows(lambda: Context(now=NOW))
    nodes = [node_row(f"n{number:04}") for number in range(1000)]
    changed, moved = rows.take(nodes, [])
    assert (len(changed), moved, len(rows.order)) == (1000, True, 1000)
    before = rows.of_node(NodeName("n0007"))
    nodes[3] = replace(nodes[3], slices=())
    assert rows.take(nodes, []) == ([NodeName("n0003")], False)
    assert rows.of_node(NodeName("n0007")) is before
    assert len(rows.cells(NodeName("n0999"), 119)) == 5


@pytest.mark.req("UI-05")
def test_cards_of_one_user_have_one_colour_by_user_and_one_for_each_job_by_job() -> None:
    name = NodeName("n07")
    slices = (SliceUse(0, None, 1000, JobId(1), "one", "ann"), SliceUse(1, None, 1000, JobId(2), "two", "ann"))
    rows = CardRows(lambda: Context(now=NOW))
    rows.take([replace(node_row(), slices=slices)], [])

    def colours() -> set[str]:
        spans = [span for cell in rows.cells(name, 200) for span in cell]
        return {span.role for span in spans if "one" in span.text or "two" in span.text}

    assert len(colours()) == 2
    rows.by_user = True
    assert len(colours()) == 1


@pytest.mark.req("UI-05", "UI-20")
def test_moving_between_cards_stops_at_the_first_and_the_last_of_the_node() -> None:
    rows = CardRows(lambda: Context(now=NOW))
    rows.take([node_row()], [])
    rows.cursor = NodeName("n07")
    parts = rows.of_node(NodeName("n07"))
    assert rows.part == parts[0]
    assert rows.neighbour(-1) == parts[0]
    assert rows.neighbour(1) == parts[1]
    assert rows.neighbour(100) == parts[-1]
    rows.pick(parts[3])
    assert rows.part == parts[3]
    rows.cursor = NodeName("gone")
    assert (rows.part, rows.of_node(NodeName("gone")), rows.neighbour(1)) == (None, (), None)
