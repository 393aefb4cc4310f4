"""The widgets for lines alone: scrolling, following, wrapping and searching in a page of text."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from textual.app import App, ComposeResult

from cockpit.present.spans import line
from cockpit.tui.picture import screen_text
from cockpit.tui.widgets.lines import Lines, LineView
from tests.tui.test_table import dark_theme

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from textual.pilot import Pilot

HEIGHT, WIDTH = 10, 20


class Shown(App[None]):
    """An app with a fixed line above a page of text."""

    CSS = "Lines { height: 2; }"

    def __init__(self) -> None:
        super().__init__()
        self.clicked: list[int] = []
        self.resized = 0

    def compose(self) -> ComposeResult:
        yield Lines(dark_theme, id="head")
        yield LineView(dark_theme)

    def on_lines_clicked(self, event: Lines.Clicked) -> None:
        self.clicked.append(event.column)

    def on_line_view_resized(self) -> None:
        self.resized += 1


class Page:
    """The page and the keyboard and mouse before it."""

    def __init__(self, app: Shown, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot
        self.view, self.head = app.query_one(LineView), app.query_one(Lines)

    async def press(self, *keys: str) -> int:
        """The number of the first visible line after these keys."""
        await self.pilot.press(*keys)
        await self.pilot.pause()
        return self.top

    @property
    def top(self) -> int:
        return round(self.view.scroll_offset.y)

    async def show(self, texts: Sequence[str]) -> None:
        self.view.show([line(text) for text in texts])
        await self.pilot.pause()

    def lines(self) -> list[str]:
        return [self.view.render_line(y).text.rstrip() for y in range(HEIGHT)]


@asynccontextmanager
async def a_page(*texts: str) -> AsyncIterator[Page]:
    app = Shown()
    async with app.run_test(size=(WIDTH, HEIGHT + 2)) as pilot:
        page = Page(app, pilot)
        page.view.focus()
        await page.show(texts or [f"line {number}" for number in range(50)])
        yield page


@pytest.mark.req("UI-03", "UI-20")
async def test_keys_scroll_a_page_by_a_line_a_screen_and_to_both_ends() -> None:
    async with a_page() as page:
        moves = [("j", 1), ("down", 2), ("k", 1), ("pagedown", 10), ("ctrl+d", 19), ("ctrl+u", 10), ("pageup", 1)]
        moves += [("up", 0), ("k", 0), ("G", 40), ("j", 40), ("g", 0), ("end", 40), ("home", 0)]
        for key, top in moves:
            assert await page.press(key) == top, key
        assert page.lines() == [f"line {number}" for number in range(10)]


@pytest.mark.req("UI-03")
async def test_the_end_is_followed_until_the_user_moves_and_again_from_the_end_on() -> None:
    async with a_page() as page:
        await page.press("G")
        await page.show([f"line {number}" for number in range(60)])
        assert (page.view.follow, page.top) == (True, 50)
        for key in ("k", "g", "pageup"):
            await page.press("G", key)
            at = page.top
            await page.show([f"line {number}" for number in range(70)])
            assert (page.view.follow, page.top) == (False, at), key
            await page.show([f"line {number}" for number in range(60)])


@pytest.mark.req("UI-03")
async def test_a_page_that_fits_does_not_scroll() -> None:
    async with a_page("a", "b") as page:
        assert await page.press("j", "G", "pagedown") == 0
        assert page.lines()[:3] == ["a", "b", ""]


@pytest.mark.req("UI-03", "UI-24")
async def test_long_lines_are_cut_or_wrapped_and_none_is_lost() -> None:
    async with a_page("x" * 50, "end") as page:
        assert page.lines()[1] == "end"
        page.view.toggle_wrapping()
        assert "".join(page.lines()) == f"{'x' * 50}end"
        assert page.lines()[0] == "x" * WIDTH
        page.view.toggle_wrapping()
        assert page.lines()[1] == "end"


@pytest.mark.req("UI-03", "UI-24")
async def test_wrapped_lines_follow_a_change_of_the_width() -> None:
    async with a_page("x" * 30) as page:
        page.view.toggle_wrapping()
        before = page.app.resized
        await page.pilot.resize_terminal(40, HEIGHT + 2)
        await page.pilot.pause()
        assert page.lines()[:2] == ["x" * 30, ""]
        assert page.app.resized > before


@pytest.mark.req("UI-03", "UI-24")
async def test_hanging_lines_are_broken_at_words() -> None:
    async with a_page() as page:
        page.view.hang()
        await page.show(["key  " + "word " * 6])
        assert all(not each or "word" in each for each in page.lines())
        assert "".join(page.lines()).count("word") == 6


TEXTS = [f"line {number}{' Fault' if number in {5, 30, 45} else ''}" for number in range(50)]


@pytest.mark.req("UI-03", "UI-22")
async def test_a_search_goes_to_the_first_match_from_here_on_and_around_the_end() -> None:
    async with a_page(*TEXTS) as page:
        page.view.search("fault")
        places = [page.view.place_of_match()]
        for step in (1, 1, 1, -1, -1):
            page.view.find(step)
            places.append(page.view.place_of_match())
        assert places == [(1, 3), (2, 3), (3, 3), (1, 3), (3, 3), (2, 3)]
        await page.pilot.pause()
        assert page.top == 30 - HEIGHT // 3
        assert page.lines()[HEIGHT // 3] == "line 30 Fault"


@pytest.mark.req("UI-03", "UI-22")
async def test_a_search_begins_at_the_first_visible_line() -> None:
    async with a_page(*TEXTS) as page:
        await page.press("pagedown")
        page.view.search("FAULT")
        assert page.view.place_of_match() == (2, 3)
        page.view.search("line 3")
        await page.pilot.pause()
        assert page.view.matches() == [3, *range(30, 40)]


@pytest.mark.req("UI-03", "UI-22")
async def test_a_match_stops_following_and_a_text_that_is_nowhere_moves_nothing() -> None:
    async with a_page(*TEXTS) as page:
        await page.press("G")
        page.view.search("nowhere")
        assert (page.view.place_of_match(), page.top, page.view.follow) == ((0, 0), 40, True)
        page.view.search("line 5")
        assert page.view.follow is False
        page.view.search("")
        assert (page.view.matches(), page.view.place_of_match()) == ([], (0, 0))


@pytest.mark.req("UI-03", "UI-22")
async def test_matches_are_highlighted_and_the_present_one_differently() -> None:
    async with a_page("a Fault", "another fault") as page:
        plain_styles = {segment.style for segment in page.view.render_line(0)}
        page.view.search("fault")
        first, second = ([(each.text, each.style) for each in page.view.render_line(y)] for y in (0, 1))
        (found,) = [style for text, style in first if text == "Fault"]
        (other,) = [style for text, style in second if text == "fault"]
        assert found != other
        assert found not in plain_styles
        assert other not in plain_styles


@pytest.mark.req("UI-03", "UI-22")
async def test_a_search_in_wrapped_lines_goes_to_the_line_that_was_given() -> None:
    async with a_page(*(["x" * 50] * 20), "fault", *(["y" * 50] * 20)) as page:
        page.view.toggle_wrapping()
        page.view.search("fault")
        await page.pilot.pause()
        assert page.view.place_of_match() == (1, 1)
        assert "fault" in page.lines()
        page.view.find(1)
        assert page.view.place_of_match() == (1, 1)


@pytest.mark.req("UI-14")
async def test_going_to_a_line_shows_it_a_third_below_the_top_unless_the_end_shows_it() -> None:
    async with a_page() as page:
        page.view.follow = True
        page.view.go_to(20)
        await page.pilot.pause()
        assert (page.top, page.view.follow) == (20 - HEIGHT // 3, False)
        page.view.go_to(1)
        await page.pilot.pause()
        assert page.top == 0
        await page.press("G")
        page.view.go_to(40)
        await page.pilot.pause()
        assert (page.top, page.view.follow) == (40, True)


@pytest.mark.req("UI-26")
async def test_the_right_button_copies_the_whole_line_and_no_other_button_does() -> None:
    async with a_page("  " + "z" * 40, "b") as page:
        await page.pilot.click(LineView, offset=(3, 0))
        await page.pilot.pause()
        assert page.app.clipboard == ""
        await page.pilot.click(LineView, offset=(3, 0), button=3)
        await page.pilot.pause()
        assert page.app.clipboard == "z" * 40
        await page.pilot.click(LineView, offset=(3, 6), button=3)
        await page.pilot.pause()
        assert page.app.clipboard == "z" * 40


@pytest.mark.req("UI-26", "UI-24")
async def test_fixed_lines_are_replaced_cut_to_the_width_and_report_clicks() -> None:
    async with a_page() as page:
        page.head.show([line("one"), line("two"), line("three")])
        assert screen_text(page.app).splitlines()[:2] == ["one", "two"]
        page.head.show([line("y" * 40)])
        assert screen_text(page.app).splitlines()[:2] == ["y" * (WIDTH - 1) + "…", ""]
        texts = [page.head.render_line(y).text for y in (0, 1)]
        assert [len(text) for text in texts] == [WIDTH, WIDTH]
        assert texts[0].startswith("yyyy")
        assert texts[1].strip() == ""
        await page.pilot.click(Lines, offset=(7, 1))
        await page.pilot.pause()
        assert page.app.clicked == [7]
