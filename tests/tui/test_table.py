"""The table widget: what keys, the mouse and changes of its rows do to the cursor, the marks and the screen."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Size

from cockpit.present.spans import Line, line
from cockpit.tui.theme import RoleTheme, load_themes
from cockpit.tui.widgets.table import CURSOR_SIGN, MARK_SIGN, Table, TableColumn, TitleLine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from textual.pilot import Pilot

HEIGHT = 10
"""Lines of the table; one more of the screen shows the titles."""


@cache
def dark_theme() -> RoleTheme:
    return load_themes()["dark"]


class Rows:
    """Rows of a name and a figure."""

    def __init__(self, count: int) -> None:
        self.order: Sequence[int] = list(range(count))
        self.figures: dict[int, int] = {}

    def place(self, row_id: int) -> int | None:
        return self.order.index(row_id) if row_id in self.order else None

    def columns(self, width: int) -> Sequence[TableColumn]:
        return [
            TableColumn("NAME", 8, id="name", leads=True),
            TableColumn("FIGURE", 6, right=True, id="figure"),
            TableColumn("REST", max(0, width - 18), id="rest"),
        ]

    def cells(self, row_id: int, width: int) -> Sequence[Line]:
        return [line(f"row-{row_id}"), line(str(self.figures.get(row_id, 0))), line("")]


class Shown(App[None]):
    """An app with nothing but the table."""

    CSS = "TitleLine { height: 1; }"

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.rows = rows
        self.noted: list[tuple[str, Any]] = []

    def compose(self) -> ComposeResult:
        table = Table(self.rows, dark_theme)
        yield TitleLine(table, id="titles")
        yield table

    def on_table_cursor_moved(self, event: Table.CursorMoved) -> None:
        self.noted.append(("moved", event.row_id))

    def on_table_opened(self, event: Table.Opened) -> None:
        self.noted.append(("opened", event.row_id))

    def on_table_copy_asked(self, event: Table.CopyAsked) -> None:
        self.noted.append(("copy", event.row_id))

    def on_title_line_clicked(self, event: TitleLine.Clicked) -> None:
        self.noted.append(("title", event.column))


class Seen:
    """The table, its rows and the keyboard and mouse before it."""

    def __init__(self, app: Shown, pilot: Pilot[None]) -> None:
        self.app, self.pilot, self.rows = app, pilot, app.rows
        self.table = app.query_one(Table)

    async def press(self, *keys: str) -> Seen:
        await self.pilot.press(*keys)
        await self.pilot.pause()
        return self

    @property
    def top(self) -> int:
        return self.table.scroll_offset.y

    @property
    def cursor(self) -> Any:
        return self.table.cursor_id

    def lines(self) -> list[str]:
        return [self.table.render_line(y).text.rstrip() for y in range(HEIGHT)]

    async def reorder(self, order: Sequence[int]) -> None:
        self.rows.order = list(order)
        self.table.order_changed()
        await self.pilot.pause()


@asynccontextmanager
async def a_table(count: int = 50, width: int = 40) -> AsyncIterator[Seen]:
    app = Shown(Rows(count))
    async with app.run_test(size=(width, HEIGHT + 1)) as pilot:
        seen = Seen(app, pilot)
        seen.table.focus()
        seen.table.order_changed()
        await pilot.pause()
        yield seen


@pytest.mark.req("UI-20", "UI-23")
async def test_keys_move_the_cursor_by_a_row_half_a_page_a_page_and_to_both_ends() -> None:
    async with a_table() as seen:
        assert (seen.cursor, seen.top) == (0, 0)
        moves = [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("up", 0), ("ctrl+d", 5), ("ctrl+u", 0), ("pagedown", 9)]
        moves += [("pagedown", 18), ("pageup", 9), ("G", 49), ("j", 49), ("pagedown", 49), ("g", 0), ("end", 49)]
        moves += [("home", 0)]
        for key, row in moves:
            assert (await seen.press(key)).cursor == row, key


@pytest.mark.req("UI-23")
async def test_the_table_scrolls_no_further_than_the_cursor_needs() -> None:
    async with a_table() as seen:
        await seen.press("pagedown")
        assert (seen.cursor, seen.top) == (9, 0)
        await seen.press("j")
        assert (seen.cursor, seen.top) == (10, 1)
        await seen.press("G")
        assert seen.top == 40
        await seen.press("pageup")
        assert (seen.cursor, seen.top) == (40, 40)
        await seen.press("k")
        assert (seen.cursor, seen.top) == (39, 39)


@pytest.mark.req("UI-23")
async def test_every_line_shows_its_row_with_aligned_cells_and_the_signs_of_cursor_and_marks() -> None:
    async with a_table(3) as seen:
        seen.rows.figures[1] = 12
        seen.table.rows_changed([1])
        await seen.press("space")
        first, second = f"{MARK_SIGN}row-0          0", f"{CURSOR_SIGN}row-1         12"
        assert seen.lines()[:4] == [first, second, " row-2          0", ""]
        assert seen.table.header().text.rstrip() == " NAME      FIGURE  REST"


@pytest.mark.req("UI-23")
async def test_the_cursors_row_keeps_its_line_while_rows_are_added_and_removed_above_it() -> None:
    async with a_table() as seen:
        await seen.press("G", "k", "k")
        line_of_cursor = seen.lines().index(next(each for each in seen.lines() if each.startswith(CURSOR_SIGN)))
        await seen.reorder([100, 101, *range(50)])
        assert (seen.cursor, seen.lines()[line_of_cursor][:7]) == (47, f"{CURSOR_SIGN}row-47")
        await seen.reorder(range(20, 50))
        assert (seen.cursor, seen.lines()[line_of_cursor][:7]) == (47, f"{CURSOR_SIGN}row-47")
        await seen.reorder([47])
        assert (seen.cursor, seen.top, seen.lines()[0][:7]) == (47, 0, f"{CURSOR_SIGN}row-47")


@pytest.mark.req("UI-23")
async def test_without_its_row_the_cursor_is_on_the_row_at_its_place_or_on_the_last_one() -> None:
    async with a_table(5) as seen:
        await seen.press("j", "j")
        await seen.reorder([0, 1, 3, 4])
        assert seen.cursor == 3
        await seen.press("G")
        await seen.reorder([0, 1])
        assert seen.cursor == 1
        await seen.reorder([])
        assert seen.cursor is None
        assert seen.app.noted[-1] == ("moved", None)
        assert [each for each in seen.lines() if each] == []
        await seen.reorder([7, 8])
        assert (seen.cursor, seen.app.noted[-1]) == (7, ("moved", 7))


@pytest.mark.req("UI-23")
async def test_keys_do_nothing_in_an_empty_table() -> None:
    async with a_table(0) as seen:
        await seen.press("j", "k", "g", "G", "space", "V", "pagedown", "ctrl+u")
        seen.table.action_open()
        assert (seen.cursor, seen.table.marked, seen.table.chosen()) == (None, set(), [])
        assert seen.app.noted == []


@pytest.mark.req("UI-23")
async def test_the_owner_learns_of_each_move_once_and_of_none_that_leaves_the_row() -> None:
    async with a_table(3) as seen:
        seen.app.noted.clear()
        await seen.press("k", "j", "G", "G")
        assert seen.app.noted == [("moved", 1), ("moved", 2)]
        seen.table.move_to(0)
        seen.table.move_to(99)
        await seen.pilot.pause()
        assert seen.app.noted[2:] == [("moved", 0)]


@pytest.mark.req("UI-23")
async def test_space_marks_and_unmarks_and_moves_on() -> None:
    async with a_table(5) as seen:
        await seen.press("space", "space")
        assert (seen.table.marked, seen.cursor) == ({0, 1}, 2)
        await seen.press("g", "space")
        assert (seen.table.marked, seen.cursor) == ({1}, 1)


@pytest.mark.req("UI-23")
@pytest.mark.parametrize(
    ("keys", "marked"),
    [
        (("j", "V"), {1}),
        (("space", "j", "j", "V"), {0, 1, 2, 3}),
        (("G", "space", "g", "j", "V"), {1, 2, 3, 4}),
        (("V", "j", "V", "j", "j", "V"), {0, 1, 2, 3}),
    ],
)
async def test_a_range_is_marked_from_the_last_mark_to_the_cursor_in_both_directions(
    keys: tuple[str, ...], marked: set[int]
) -> None:
    async with a_table(5) as seen:
        assert (await seen.press(*keys)).table.marked == marked


@pytest.mark.req("UI-23")
async def test_marked_rows_are_chosen_in_the_order_of_the_list_else_the_row_of_the_cursor() -> None:
    async with a_table(5) as seen:
        assert seen.table.chosen() == [0]
        await seen.press("G", "space", "g", "space")
        assert seen.table.chosen() == [0, 4]
        await seen.reorder([4, 3, 2, 1])
        assert seen.table.chosen() == [4]
        assert (seen.table.clear_marks(), seen.table.clear_marks()) == (True, False)
        assert seen.table.chosen() == [1]


@pytest.mark.req("UI-26")
async def test_a_click_chooses_a_second_click_opens_and_the_right_button_copies() -> None:
    async with a_table(3) as seen:
        await seen.pilot.click(Table, offset=(5, 1))
        await seen.pilot.pause()
        assert (seen.cursor, seen.app.noted[-1]) == (1, ("moved", 1))
        await seen.pilot.click(Table, offset=(5, 2), times=2)
        await seen.pilot.pause()
        assert seen.app.noted[-1] == ("opened", 2)
        await seen.pilot.click(Table, offset=(5, 0), button=3)
        await seen.pilot.pause()
        assert (seen.cursor, seen.app.noted[-1]) == (0, ("copy", 0))
        before = list(seen.app.noted)
        await seen.pilot.click(Table, offset=(5, 7))
        await seen.pilot.pause()
        assert (seen.cursor, seen.app.noted) == (0, before)


@pytest.mark.req("UI-23", "UI-26")
@pytest.mark.parametrize(
    ("x", "column"), [(0, "name"), (1, "name"), (10, "name"), (11, "figure"), (18, "figure"), (19, "rest")]
)
async def test_a_click_on_a_title_or_the_gap_behind_it_is_of_that_column(x: int, column: str) -> None:
    async with a_table(3) as seen:
        await seen.pilot.click(TitleLine, offset=(x, 0))
        await seen.pilot.pause()
        assert seen.app.noted[-1] == ("title", column)


@pytest.mark.req("UI-23")
async def test_a_click_beside_the_titles_sorts_by_none() -> None:
    async with a_table(3) as seen:
        assert seen.table.column_at(500) is None
        assert seen.table.column_at(18) is not None


@pytest.mark.req("UI-24")
async def test_a_smaller_screen_keeps_the_cursor_visible_and_a_larger_one_shows_more_rows() -> None:
    async with a_table() as seen:
        await seen.press(*["j"] * 8)
        await seen.pilot.resize_terminal(30, 5)
        await seen.pilot.pause()
        shown = range(seen.top, seen.top + seen.table.size.height)
        assert seen.cursor in shown
        assert seen.table.virtual_size.height == 50
        await seen.pilot.resize_terminal(60, 30)
        await seen.pilot.pause()
        assert len(seen.table.visible_ids()) == seen.table.size.height == 29
        assert seen.table.virtual_size == Size(seen.table.scrollable_content_region.width - 1, 50)


@pytest.mark.req("UI-23")
async def test_a_changed_cell_is_bright_until_the_next_tick_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_table(3) as seen:
        seen.lines()
        seen.rows.figures[1] = 5
        seen.table.rows_changed([1])
        assert list(seen.table._bright) == [(1, 1)]
        assert seen.lines()[1].endswith("5")
        seen.table.tick()
        assert list(seen.table._bright) == [(1, 1)]
        monkeypatch.setattr("cockpit.tui.widgets.table.BRIGHT_SECONDS", -1)
        seen.rows.figures[1] = 6
        seen.table.rows_changed([1])
        seen.table.tick()
        assert seen.table._bright == {}


@pytest.mark.req("UI-23")
async def test_a_cell_that_changes_without_news_and_a_row_drawn_for_the_first_time_are_not_bright() -> None:
    async with a_table(30) as seen:
        seen.lines()
        seen.rows.figures[1] = 5
        seen.table.rows_changed([1], news=False)
        seen.rows.figures[25] = 5
        seen.table.rows_changed([25])
        assert seen.table._bright == {}
        assert seen.lines()[1].endswith("5")
        seen.rows.figures[2] = 7
        seen.table.redraw()
        assert seen.lines()[2].endswith("7")
        assert seen.table._bright == {}


@pytest.mark.req("UI-20", "UI-23")
async def test_the_row_of_the_cursor_and_marked_rows_have_a_background_of_their_own() -> None:
    async with a_table(4) as seen:
        await seen.press("space", "space")
        theme = dark_theme()
        colours = [
            {part.style.bgcolor for part in seen.table.render_line(y) if part.style is not None} for y in range(5)
        ]
        assert (seen.table.marked, seen.cursor) == ({0, 1}, 2)
        wanted = ("marked", "marked", "cursor", "background", "background")
        assert colours == [{theme.background(name).bgcolor} for name in wanted]
