"""The widget for a log alone: what it shows of a file of any kind, and that it reads no more than that."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC
from typing import TYPE_CHECKING

import pytest
from textual.app import App, ComposeResult

from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch
from cockpit.present.columns import Context
from cockpit.present.log_blocks import BLOCK
from cockpit.present.log_pages import LogPages
from cockpit.runtime.logs import read_log, search_log
from cockpit.tui.log_finder import LogFinder
from cockpit.tui.log_source import LogSource
from cockpit.tui.widgets.log_view import LogView
from tests.builders import NOON
from tests.tui.test_table import dark_theme

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from textual.pilot import Pilot

pytestmark = pytest.mark.req("UI-14")
HEIGHT, WIDTH = 10, 40
LINES = b"".join(b"%015d\n" % number for number in range(300_000))
"""4.8 MB, of which a line is 16 bytes."""


class FileBackend:
    """Reads one file as the engine does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ended = True
        self.bytes_read = 0

    async def logs(self, request: LogRequest) -> LogChunk:
        chunk = await read_log(self.path, request, lambda: self.ended)
        self.bytes_read += len(chunk.data)
        return chunk

    async def search_log(self, request: LogSearch) -> LogMatches:
        return await search_log(self.path, request)


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield LogView(dark_theme, lambda: Context(now=NOON, zone=UTC))


class Page:
    """The view, and the keyboard before it."""

    def __init__(self, view: LogView, pilot: Pilot[None], source: LogSource, backend: FileBackend) -> None:
        self.view, self.pilot, self.source, self.backend = view, pilot, source, backend
        self.finder = LogFinder(view, lambda: None)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await self.pilot.pause(0.01)

    async def press(self, *keys: str) -> list[str]:
        await self.pilot.press(*keys)
        return await self.lines()

    async def lines(self) -> list[str]:
        await self.until(lambda: self.view.is_settled)
        await self.pilot.pause()
        return [self.view.render_line(y).text.rstrip() for y in range(HEIGHT)]

    async def searched(self, text: str = "", step: int = 0) -> str:
        if text:
            self.finder.search(text)
        else:
            self.finder.find(step)
        await self.pilot.pause()
        await self.until(lambda: not self.finder.is_busy)
        return self.finder.words()[0]


@asynccontextmanager
async def a_log(path: Path, data: bytes | None = None) -> AsyncIterator[Page]:
    """The view of a log, opened at its end."""
    if data is not None:
        await asyncio.to_thread(path.write_bytes, data)
    backend, app = FileBackend(path), Shown()
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        view = app.query_one(LogView)
        view.focus()
        source = LogSource(backend, LogRequest(job=1))  # type: ignore[arg-type] # it has what a source asks
        view.open(source)
        await source.open()
        view.follow = True
        view.move(LogPages.last_page)
        yield Page(view, pilot, source, backend)


async def test_keys_go_anywhere_in_a_log_of_which_little_is_read(tmp_path: Path) -> None:
    async with a_log(tmp_path / "log", LINES) as page:
        assert (await page.lines())[-1] == "000000000299999"
        assert (await page.press("k"))[-1] == "000000000299998"
        assert (await page.press("g"))[0] == "000000000000000"
        assert page.view.position() == "line 1 of about 300 000"
        assert (await page.press("pagedown", "j"))[0] == "000000000000010"
        page.view.go_to(16 * 150_000)
        middle = await page.lines()
        assert "000000000150000" in middle
        assert page.view.position().startswith("line about 15")
        assert (await page.press("k"))[1:] == middle[:-1]
        assert (await page.press("pageup", "pagedown")) == (await page.press("k", "j"))
        assert (await page.press("G"))[-1] == "000000000299999"
        assert page.view.follow
        assert page.backend.bytes_read < 2_000_000


async def test_a_line_and_its_number_are_exact_once_lines_were_counted(tmp_path: Path) -> None:
    async with a_log(tmp_path / "log", LINES) as page:
        offset = await page.source.offset_of_line(123_457, lambda _: None)
        assert offset == 16 * 123_456
        page.view.move(lambda pages: pages.place_of(offset))
        assert (await page.lines())[0] == "000000000123456"
        page.source.numbers.add(offset, 123_456)
        page.source.numbers.add(len(LINES), 300_000)
        assert page.view.position() == "line 123 457 of 300 000"
        await page.press("j", "j", "k")
        assert page.view.position() == "line 123 458 of 300 000"
        assert await page.source.offset_of_line(10**9, lambda _: None) == len(LINES) - 1


async def test_a_search_finds_what_is_not_loaded_and_counts(tmp_path: Path) -> None:
    async with a_log(tmp_path / "log", LINES) as page:
        await page.press("g")
        assert await page.searched("99999") == "1 of 3"
        assert "000000000099999" in await page.lines()
        assert await page.searched(step=1) == "2 of 3"
        assert "000000000199999" in await page.lines()
        assert [await page.searched(step=1) for _ in range(2)] == ["3 of 3", "1 of 3"]
        assert [await page.searched(step=-1) for _ in range(2)] == ["3 of 3", "2 of 3"]
        assert "000000000199999" in await page.lines()
        assert await page.searched("~^0*1234$") == "1 of 1"
        assert await page.searched("nothing like it") == "nowhere here"
        assert "cannot be searched" in await page.searched("~(")


async def test_a_log_that_grows_is_followed_until_the_user_moves(tmp_path: Path) -> None:
    path = tmp_path / "log"
    async with a_log(path, b"one\n") as page:
        page.backend.ended = False
        for number in range(40):
            with path.open("ab") as file:
                file.write(b"more %d\nhal" % number)
            await page.source.read_more(lambda: NOON)
            page.view.grown()
            with path.open("ab") as file:
                file.write(b"f\n")
            await page.source.read_more(lambda: NOON)
            page.view.grown()
        assert (await page.lines())[-2:] == ["more 39", "half"]
        assert page.view.position().endswith("of 81")
        before = await page.press("k")
        with path.open("ab") as file:
            file.write(b"later\n")
        await page.source.read_more(lambda: NOON)
        page.view.grown()
        assert await page.lines() == before
        page.view.toggle_times()
        shown = await page.press("G")
        assert shown[-1].endswith("  later")
        assert shown[-1][2] == ":", "the time at which it came"
        assert (await page.press("g"))[0] == " " * 10 + "one", "that was there before the log was opened"


async def test_a_log_that_is_emptied_or_replaced_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    async with a_log(path, LINES) as page:
        page.backend.ended = False
        path.write_bytes(b"new\n")
        await page.source.read_more(lambda: NOON)
        page.view.grown()
        assert (await page.lines())[0] == "new"
        path.write_bytes(b"")
        await page.source.read_more(lambda: NOON)
        page.view.grown()
        await page.lines()
        assert page.source.blocks.size == 0


async def test_a_log_that_became_shorter_while_it_is_read_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    async with a_log(path, LINES) as page:
        await page.lines()
        path.write_bytes(b"new\n")
        page.view.go_to(16 * 150_000)
        assert "new" in await page.lines()


async def test_bytes_of_any_kind_are_shown_as_text(tmp_path: Path) -> None:
    data = b"nul \0 here\nbad \xff\xfe\nbell \x07\x1b]0;title\x07\n\x1b[31mred\nstill\x1b[0m\nbar 1\rbar 2\r\nend"
    async with a_log(tmp_path / "log", data) as page:
        assert (await page.lines())[:7] == [
            "nul \\x00 here",
            "bad \\xff\\xfe",
            "bell \\x07\\x1b]0;title\\x07",
            "red",
            "still",
            "bar 2",
            "end",
        ]
        assert page.view.position() == "line 1 of 7"
        colours = [next(iter(page.view.render_line(y))).style.color.name for y in (3, 4)]
        assert colours == ["red", "red"], "colours go on in the next line"


async def test_a_line_of_megabytes_is_shown_in_parts_between_characters(tmp_path: Path) -> None:
    data = b"first\n" + "é".encode() * 4_000_000 + b" needle\nlast\n"
    async with a_log(tmp_path / "log", data) as page:
        assert (await page.lines())[-1] == "last"
        assert set("".join(await page.press("pageup"))) <= set("é… ")
        assert await page.searched("needle") == "1 of 1"
        assert any("needle" in each for each in await page.lines()), "it is scrolled to sideways"
        page.view.wrap()
        await page.lines()
        assert await page.searched(step=1) == "1 of 1"
        assert any("needle" in each for each in await page.lines())
        assert page.backend.bytes_read < 4_000_000


async def test_a_line_that_is_wrapped_is_read_row_by_row(tmp_path: Path) -> None:
    text = "".join(f"<{number:03d}>" for number in range(100))
    async with a_log(tmp_path / "log", f"first\n{text}\nlast\n".encode()) as page:
        page.view.wrap()
        assert (await page.press("G"))[-1] == "last"
        assert (await page.press("g", "j"))[0] == text[: WIDTH - 1]
        assert (await page.press("j"))[0] == text[WIDTH - 1 : 2 * (WIDTH - 1)]
        page.view.wrap()
        assert (await page.press("right"))[0].startswith(text[(WIDTH - 1) // 2 :][:10])
        assert (await page.press("left"))[0].startswith(text[:10])


async def test_what_was_dropped_from_a_log_is_one_line_that_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(LINES[: 1 << 20])
        file.seek(20 << 30)
        file.write(LINES[-(1 << 20) :])
    assert path.stat().st_blocks * 512 < 3 << 20
    async with a_log(path) as page:
        assert (await page.lines())[-1] == "000000000299999"
        page.view.go_to(20 << 30)
        assert any("left out (log_limit)" in each for each in await page.lines())
        for _ in range(3):
            await page.press("pageup")
        assert (await page.lines())[0] < f"{1 << 16:015d}", "before what was dropped"
        assert (await page.press("g"))[0] == "000000000000000"
        assert await page.searched("000000000299999") == "1 of 1"
        assert page.backend.bytes_read < 40 * BLOCK * 8


async def test_an_empty_log_says_so(tmp_path: Path) -> None:
    async with a_log(tmp_path / "log", b"") as page:
        assert (await page.lines())[0] == " nothing on stdout"
        assert page.view.position() == ""
        await page.press("j", "G", "pageup")
