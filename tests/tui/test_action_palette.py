"""The palette: what can be done here or gone to, found by a few letters."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.config.filters import SavedFilters
from cockpit.tui.screens.action_palette import ActionPalette
from cockpit.tui.screens.main import MainScreen
from tests.tui.driver import under_cursor
from tests.tui.lab import Lab, the_lab
from tests.tui.test_dialogs import click

OPEN = "the name of an action"


def chosen(screen: str) -> str:
    """The row of the palette under its cursor."""
    # The list below has a cursor of its own, at the edge of the screen.
    return next(row[1:].partition("▌")[2] for row in screen.splitlines() if "▌" in row[1:])


def place_of(lab: Lab, text: str) -> tuple[int, int]:
    """Where on the screen the palette has this text."""
    box = lab.cockpit.app.screen.query_one("Table").region
    rows = lab.cockpit.app.screen.query_one("Table")
    found = next(number for number, each in enumerate(rows.visible_ids()) if text in str(each))
    return box.x + 3, box.y + found


@pytest.mark.req("UI-30")
async def test_the_palette_lists_what_can_be_done_here_with_keys_and_reasons() -> None:
    async with the_lab() as lab:
        screen = await lab.cockpit.press("Ctrl-p").sees(OPEN)
        (cancel,) = (row for row in screen.splitlines() if "cancel" in row and "Stop jobs" in row)
        assert " x " in cancel
        # What cannot be used now comes last, with the reason; what belongs to other views only when it is typed.
        assert "drain" not in screen
        await lab.cockpit.type("what if").sees("Job 1 is running: this is for queued jobs.")
        await lab.cockpit.press("Enter").misses(OPEN).sees("Job 1 is running: this is for queued jobs")
        await lab.cockpit.press("Ctrl-p").type("drain").sees("Only in Nodes.").press("Esc").misses(OPEN)


@pytest.mark.req("UI-30")
async def test_what_was_used_last_comes_first() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        assert "help" in chosen(await cockpit.press("Ctrl-p").sees(OPEN))
        await cockpit.type("theme light").press("Enter").misses(OPEN)
        assert "theme light" in chosen(await cockpit.press("Ctrl-p").sees(OPEN))
        await cockpit.type("cards").press("Enter").misses(OPEN).sees("n01").press("1")
        assert "cards" in chosen(await cockpit.press("Ctrl-p").sees(OPEN))
        assert "theme light" in chosen(await cockpit.press("Down").sees(OPEN))


@pytest.mark.req("UI-30")
async def test_jobs_nodes_queues_and_filters_are_found_by_name() -> None:
    filters = SavedFilters()
    filters.save("jobs", "bobs", "user:bob")
    async with the_lab(filters=filters) as lab:
        cockpit = lab.cockpit
        await cockpit.press("Ctrl-p").type("wide").sees("job 5 wide").press("Enter").misses(OPEN).stands_on("wide")
        await cockpit.press("Ctrl-p").type("n02").sees("node n02").press("Enter").misses(OPEN).stands_on("n02")
        await cockpit.press("Ctrl-p").type("训练").press("Enter").misses(OPEN).stands_on("训练")
        await cockpit.press("Ctrl-p").type("@bobs").sees("user:bob").press("Enter").misses(OPEN, "train")
        # A node that the filter hides is shown.
        await cockpit.press("2", "/").type("name:n01").press("Enter").misses("n02")
        await cockpit.press("Ctrl-p").type("n02").press("Enter").misses(OPEN).stands_on("n02")


@pytest.mark.req("UI-30", "UI-24")
async def test_tab_and_arrows_go_round_and_the_last_entry_is_reached_at_80_columns() -> None:
    async with the_lab(size=(80, 24)) as lab:
        cockpit = lab.cockpit
        first = chosen(await cockpit.press("Ctrl-p").sees(OPEN, "Esc closes"))
        last = chosen(await cockpit.press("Up").sees(OPEN))
        assert first != last
        assert chosen(await cockpit.press("Tab").sees(OPEN)) == first
        assert chosen(await cockpit.press("shift+tab").sees(OPEN)) == last
        assert all(len(row) <= 80 for row in (await cockpit.type("zzz").sees("Nothing is called so.")).splitlines())
        await cockpit.press("Enter").sees("Nothing is called so.").press("Esc").misses(OPEN)


@pytest.mark.req("UI-26", "UI-30")
async def test_a_click_runs_an_entry_and_further_clicks_change_nothing_else() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("Ctrl-p").type("nodes").sees("Show nodes")
        place = place_of(lab, "action:nodes")
        for _ in range(3):
            click(cockpit.app, *place)
        await cockpit.misses(OPEN).sees("n01", "n02")
        assert not cockpit.app.failed
        assert isinstance(cockpit.app.screen, MainScreen)


@pytest.mark.req("UI-30")
async def test_the_key_that_opens_the_palette_closes_it_and_opens_no_second_one() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("n").sees("New job").press("Ctrl-p").sees(OPEN)
        assert sum(isinstance(each, ActionPalette) for each in cockpit.app.screen_stack) == 1
        await cockpit.press("Ctrl-p").misses(OPEN).sees("New job")


@pytest.mark.req("UI-30", "UI-26")
async def test_the_palette_may_be_closed_before_its_widgets_are_there() -> None:
    async with the_lab() as lab:
        app = lab.cockpit.app
        for _ in range(3):
            app.action_command_palette()
            await asyncio.sleep(0)
            app.screen.dismiss(None)
        await lab.cockpit.sees("train").misses(OPEN)
        assert "train" in under_cursor(await lab.cockpit.press("g"))
        assert not app.failed
