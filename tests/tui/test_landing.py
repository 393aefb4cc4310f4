"""What the job list opens on, and the keys that show the jobs of one state."""

from __future__ import annotations

import re
from itertools import takewhile

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.model.job import JobState
from cockpit.present.columns import Context
from cockpit.present.spans import MUTED, STRONG, TEXT
from cockpit.present.tables.jobs import JOBS
from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.doubles.samples import NOW, failed_row, job_row, queued_row
from tests.tui.driver import at_the_cockpit, column
from tests.tui.lab import session_of, the_lab

pytestmark = pytest.mark.req("UI-13")


def names(screen: str) -> list[str]:
    """The names of the listed jobs, down to the rule above the panel."""
    return list(takewhile(lambda name: not name.startswith("─"), column(screen, "NAME")))


async def test_the_list_opens_on_what_needs_the_user() -> None:
    async with the_lab(usual_order=True) as lab:
        screen = await lab.cockpit.sees("broken")
        assert names(screen) == ["broken", "wide", "train", "tune", "eval", "训练", "done"]
        # The cursor is on the failed job: its panel says how it ended, and the keys that help.
        assert any(line.startswith(CURSOR_SIGN) and "broken" in line for line in screen.splitlines())
        await lab.cockpit.sees("broken  ended with exit 3", "its logs")


async def test_each_state_has_a_key_and_the_same_key_shows_all_again() -> None:
    async with the_lab(usual_order=True) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("broken")
        for key, wanted in (
            ("Q", ["wide", "eval", "训练"]),
            ("r", ["train", "tune"]),
            ("o", ["broken"]),
            ("f", ["broken"]),
        ):
            screen = await cockpit.press(key).sees("/ state:")
            assert names(screen) == wanted, key
        assert len(names(await cockpit.press("f").misses("/ state:"))) == 7


async def test_a_key_for_a_state_keeps_the_rest_of_the_filter() -> None:
    async with the_lab(usual_order=True) as lab:
        cockpit = lab.cockpit
        await cockpit.press("/").type("user:alice").press("Enter").sees("/ user:alice")
        await cockpit.press("Q").sees("/ user:alice state:queued").press("r").sees("/ user:alice state:running")
        await cockpit.press("r").misses("state:").sees("/ user:alice")
        await cockpit.press("Q").sees("state:queued").press("Esc").misses("/ user")


async def test_the_usual_order_is_chosen_in_the_sort_dialog() -> None:
    async with the_lab(usual_order=True) as lab:
        cockpit = lab.cockpit
        await cockpit.press(">").sees("by id")
        await cockpit.press("S").sees("what needs you").press("g", "Enter").misses("by id")
        assert names(await cockpit.sees("broken"))[0] == "broken"


def test_names_are_strong_where_the_user_has_to_act() -> None:
    name = JOBS.find("name")
    assert name is not None
    rows = (
        (failed_row(1, user="ann"), STRONG),
        (failed_row(1, user="bob"), TEXT),
        (job_row(1, user="ann"), TEXT),
        (queued_row(1, user="ann"), TEXT),
        (failed_row(1, user="ann", held_until=None, state=JobState.SUCCEEDED), MUTED),
    )
    for row, role in rows:
        assert name.drawn(row, Context(now=NOW, user="ann"), 20)[0].role == role, row


@pytest.mark.parametrize(("columns", "beside"), [(80, False), (120, False), (159, False), (160, True), (200, True)])
async def test_from_160_columns_the_panel_stands_beside_the_list(columns: int, beside: bool) -> None:
    async with the_lab(usual_order=True, size=(columns, 50)) as lab:
        cockpit = lab.cockpit
        await cockpit.press("Q").sees("needs 2 nodes with 4").sees("starts about")
        panel, table = cockpit.app.main_screen.query_one("#answer"), cockpit.app.main_screen.tables.jobs
        assert (panel.region.x >= table.region.right) is beside
        assert (panel.region.y >= table.region.bottom) is not beside
        # What stands above the list is narrow enough, and the entry and the keys keep the whole width.
        assert cockpit.app.main_screen.tables.columns == table.size.width
        if beside:
            assert panel.region.bottom == table.region.bottom


async def test_the_panel_beside_the_list_has_a_line_for_each_figure() -> None:
    async with the_lab(usual_order=True, size=(160, 50)) as lab:
        screen = await lab.cockpit.press("Q").sees("starts about", "no later than")
        texts = [line.rpartition("│")[2].strip() for line in screen.splitlines()]
        assert any(text.startswith("starts about") for text in texts)
        assert any(text.startswith("asks for 2 nodes") for text in texts)
        assert any(text.startswith("waits since") for text in texts)


async def test_other_views_keep_the_width_of_the_screen() -> None:
    async with the_lab(usual_order=True, size=(160, 50)) as lab:
        cockpit = lab.cockpit
        await cockpit.press("2").sees("n02")
        main = cockpit.app.main_screen
        assert main.query_one("#answer").region.y >= main.tables.table.region.bottom
        await cockpit.press("1").sees("broken")
        assert main.query_one("#answer").region.x >= main.tables.table.region.right


async def test_the_charts_of_a_wide_screen_go_back_before_the_cockpit_was_opened() -> None:
    demo = await open_demo("campus", 1, going=False)
    async with at_the_cockpit(session_of(demo), (160, 50)) as cockpit:
        screen = await cockpit.sees("cards ", "queued █")
        _, queued, cards = re.split("queued|cards", screen.splitlines()[0])
        assert len(re.findall("[▁-█]", queued)) == len(re.findall("[▁-█]", cards)) == 6, "since the first end of a job"
