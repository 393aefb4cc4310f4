"""A figure is the same in the list, the panel, the page and the commands: a walk over the rows of a cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.present.job.page import job_page
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES
from cockpit.present.tables.overview import OVERVIEW
from tests.tui.driver import at_the_cockpit, under_cursor
from tests.tui.lab import session_of, the_lab

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.present.columns import Context, TableView
    from tests.tui.driver import Cockpit

UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
IN_ROW = re.compile(r" (\d+)(s|m) +[━╸·╺]")
IN_PANEL = re.compile(r"(\d+) (s|min) [━╸·╺]+ of ")
ROWS = 30


def seconds(match: re.Match[str] | None) -> int | None:
    return None if match is None else int(match[1]) * UNITS[match[2]]


def facts(table: TableView, row: Any, context: Context) -> dict[str, Any]:
    """What the commands write about the row as JSON."""
    return {column.id: column.json([row], context)[0] for column in table.columns}


@pytest.mark.req("UI-32")
@pytest.mark.parametrize("keys", [(), ("x",)])
async def test_row_and_panel_show_one_run_time_while_time_goes_on(keys: tuple[str, ...]) -> None:
    """Also below a question."""
    async with the_lab(size=(130, 60)) as lab:
        cockpit, compared = lab.cockpit, 0
        await cockpit.press(*keys).sees("of 8 h")
        for step in range(6):
            screen = await cockpit.lives(0.7 * step)
            row, panel = (
                seconds(each.search(text)) for each, text in ((IN_ROW, under_cursor(screen)), (IN_PANEL, screen))
            )
            if row is not None and panel is not None:
                assert row == panel, screen
                compared += 1
        assert compared >= 2, "below a question both stand still until something is drawn"


@pytest.mark.req("UI-32")
async def test_jobs_have_one_figure_in_list_panel_page_and_commands() -> None:
    demo = await open_demo("campus", 1, going=False)
    async with at_the_cockpit(session_of(demo), (230, 60)) as cockpit:
        demo.pace.pause()
        seen = set()
        await cockpit.sees("● running").press("g")
        for _ in range(ROWS):
            screen = await cockpit.press("j")
            job = cockpit.app.main_screen.tables.jobs.cursor_id
            row = next(each for each in await demo.backend.jobs(ended=True) if each.id == job)
            said = facts(JOBS, row, cockpit.app.state.context())
            seen.add(said["state"])
            assert_row(under_cursor(screen), said)
            page = "\n".join(job_page(await demo.backend.job(row.id), cockpit.app.state.context()))
            assert_asked(page, said)
            assert str(said["state"]) in page.splitlines()[0]
            assert f" {row.id} {row.name}" in screen  # the panel is about this row
        assert {"running", "queued"} <= seen


def assert_asked(page: str, said: dict[str, Any]) -> None:
    """The page asks for the cards and nodes of the commands; mixed node specs have a line for each."""
    asked = re.findall(r"(\d+) nodes?(?:, each)? with .*?(?: and ([\d.]+) [A-Za-z].*)?$", page, re.MULTILINE)
    assert asked, page
    assert sum(int(nodes) for nodes, _ in asked) == said["nodes"], page
    assert sum(int(nodes) * float(cards or 0) for nodes, cards in asked) == (said["cards"] or 0), page


def assert_row(shown: str, said: dict[str, Any]) -> None:
    """The row of the list has the facts of the commands."""
    words = shown.split()
    assert str(said["id"]) in words
    assert str(said["user"]) in words
    assert said["state"] in shown
    if said["cards"]:
        assert f"{said['cards']:g}" in words, shown
    match = IN_ROW.search(shown)
    if match is not None:
        # The list rounds down to whole minutes, as the panel does.
        elapsed = said["elapsed_seconds"]
        assert seconds(match) == (elapsed if elapsed < 60 else elapsed // 60 * 60), shown


@pytest.mark.req("UI-32")
async def test_the_totals_of_header_nodes_and_commands_agree() -> None:
    demo = await open_demo("campus", 1, going=False)
    async with at_the_cockpit(session_of(demo), (200, 60)) as cockpit:
        demo.pace.pause()
        screen = await cockpit.press("2").sees("cards ")
        overview = facts(OVERVIEW, await demo.backend.overview(), cockpit.app.state.context())
        rows = await demo.backend.jobs(ended=True)
        assert count_of(screen, "running") == sum(row.state == "running" for row in rows)
        assert count_of(screen, "queued") == sum(row.state == "queued" for row in rows)
        used, total = await cards_of(demo.backend, cockpit)
        assert f"cards {used:g}/{total:g} " in screen.splitlines()[0], (screen.splitlines()[0], overview)


def count_of(screen: str, state: str) -> int:
    match = re.search(rf"(\d+) {state}", screen.splitlines()[0])
    assert match is not None, screen
    return int(match[1])


async def cards_of(backend: Backend, cockpit: Cockpit) -> tuple[float, float]:
    said = [facts(NODES, row, cockpit.app.state.context())["cards"] for row in await backend.nodes()]
    return sum(each.used for each in said if each), sum(each.total for each in said if each)
