"""A program that floods the terminal pane: how fast it is shown, and whether the cockpit still answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter

import pytest
from textual.app import App, ComposeResult

from cockpit.model.asking import ShellRequest
from cockpit.tui.emulator.choice import EMULATORS
from cockpit.tui.widgets.terminal_pane import TerminalPane
from tests.bench.figures import Figures
from tests.doubles.process_session import ProcessSession
from tests.tui.test_table import dark_theme

MB = 1_000_000
BYTES = {"ghostty": 60 * MB, "pyte": MB // 2}
NAP_SECONDS = 0.002
COLUMNS, ROWS = 120, 40


class Shown(App[None]):
    """The pane, and the moment when its shell has ended and all its output is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield TerminalPane(dark_theme)

    def on_terminal_pane_ended(self) -> None:
        self.ended.set()


async def lags_until(ended: asyncio.Event) -> list[float]:
    """How much longer than asked for the event loop took to come back, again and again until the event."""
    lags = []
    while not ended.is_set():
        began = perf_counter()
        await asyncio.sleep(NAP_SECONDS)
        lags.append(perf_counter() - began - NAP_SECONDS)
    return lags


@pytest.mark.parametrize("name", list(EMULATORS))
async def test_a_flood_in_the_terminal_pane(name: str, figure: Figures, tmp_path: Path) -> None:
    line = b"\x1b[32mstep %07d\x1b[0m loss=0.4321 lr=0.001 tokens/s=1234 and some more words to fill the line\r\n"
    file = tmp_path / "flood"
    with file.open("wb") as out:
        number = 0
        while out.tell() < BYTES[name]:
            out.write(line % number)
            number += 1
    written = file.stat().st_size
    app = Shown()
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        pane = app.query_one(TerminalPane)
        request = ShellRequest(job=1, terminal=True, rows=ROWS - 1, columns=COLUMNS)
        session = ProcessSession(request, ["sh", "-c", f"stty raw; cat {file}"])
        began = perf_counter()
        pane.open("flood", session, EMULATORS[name](COLUMNS, ROWS - 1), "")
        lags = sorted(await asyncio.wait_for(lags_until(app.ended), 300))
        seconds = perf_counter() - began
        assert pane.link is not None
        last = ["".join(each.text for each in pane.link.emulator.line(row)) for row in range(pane.link.emulator.rows)]
        assert any(f"step {number - 1:07d}" in each for each in last)
        await pane.close()
        await pilot.pause()
    if name == "ghostty":
        figure("PF-32", "output through the terminal pane", written / MB / seconds)
        figure("PF-32", "of it, the event loop's delay, p99", 1000 * lags[len(lags) * 99 // 100])
        figure("PF-32", "of it, the longest delay", 1000 * lags[-1])
    else:
        figure("PF-32", "output with pyte in its place", written / MB / seconds)
        figure("PF-32", "with pyte, the event loop's delay, p99", 1000 * lags[len(lags) * 99 // 100])
