"""The real app in a real pseudo terminal: what reaches it, byte by byte."""

from __future__ import annotations

import os
import sys
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.headless.exitcodes import ExitCode
from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.doubles.feeder import Wish
from tests.doubles.fence import FencedTerminal
from tests.doubles.terminal import SECONDS, Terminal
from tests.e2e.cockpit_user import ROOT
from tests.programs import needs_bubblewrap

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyte

WATCHED_SECONDS = 2.5
"""Longer than two of the app's ticks."""
FADED_SECONDS = 2.5
"""Longer than a cell shows that it is new, and the tick that ends it."""
NO_KEY = "\x1b[24~"
"""F12 does nothing: the screen shows all that was before it."""
KEYS = (*"jjj", "\x04", "k ", "G", "\x15", "g  j", "2", "1", "jV", "\x1b", "/", "user1", "\x1b", ":", "\x1b")


def feeder(wish: Wish, **env: str) -> FencedTerminal:
    module = ["tests.doubles.feeder", msgspec.json.encode(wish).decode()]
    return FencedTerminal(module, {**os.environ, "PYTHONPATH": str(ROOT), **env}, cwd=str(ROOT))


def cells(screen: pyte.Screen) -> Sequence[object]:
    return [screen.buffer[y][x] for y in range(screen.lines) for x in range(screen.columns)]


@pytest.mark.req("UI-62", "PF-15")
def test_nothing_is_written_while_nothing_changes():
    with feeder(Wish(rows=200)) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        terminal.quiet(WATCHED_SECONDS)


@pytest.mark.req("UI-62")
def test_after_many_small_updates_the_screen_is_the_one_painted_at_once(tmp_path: Path):
    report = tmp_path / "report"
    with feeder(Wish(rows=200, cells=30, changes=20, between=0.05, report=str(report))) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        for keys in KEYS:
            terminal.do(keys)
        while "over" not in report.read_text():
            terminal.more(0.1)
        terminal.quiet(FADED_SECONDS)
        bit_by_bit = terminal.screen()
        assert "train-bert" in "\n".join(bit_by_bit.display)
        terminal.resize(121, 40)
        terminal.until(lambda screen: screen.splitlines()[39].startswith(" ? help"))
        terminal.do(NO_KEY)
        at = perf_counter()
        terminal.resize(120, 40)
        while cells(terminal.screen(since=at)) != cells(bit_by_bit):
            terminal.quiet(0.1)
            assert perf_counter() < at + SECONDS, "\n".join(terminal.screen(since=at).display)


def test_drawing_can_be_delegated_to_textual():
    with feeder(Wish(rows=200), COCKPIT_PLAIN_PAINT="1") as plain, feeder(Wish(rows=200)) as tight:
        for terminal in (plain, tight):
            terminal.paint_after(0, CURSOR_SIGN)
            terminal.do(NO_KEY)
        assert plain.until(lambda screen: screen == "\n".join(tight.screen().display))
        before = perf_counter()
        for terminal in (plain, tight):
            terminal.do("jjj")
        assert len(tight.written_since(before)) < len(plain.written_since(before))


def test_a_closed_terminal_ends_the_app():
    with feeder(Wish(rows=200)) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        terminal.hang_up()
        terminal.process.wait(timeout=60)


@pytest.mark.real
@pytest.mark.req("UI-50", "UI-12")
@needs_bubblewrap
def test_a_terminal_closed_during_a_shell_ends_the_demo():
    with Terminal([sys.executable, "-m", "cockpit.cli", "demo"], {**os.environ, "PYTHONPATH": str(ROOT)}) as terminal:
        terminal.until(lambda screen: "? help" in screen)
        terminal.press("s")
        terminal.until(lambda screen: "exit or Ctrl-D returns" in screen)
        terminal.hang_up()
        terminal.process.wait(timeout=60)


OPENED_ON_A_DUMB_TERMINAL = """
import os, sys
os.environ["TERM"] = "dumb"
sys.argv = ["cockpit", "demo"]
from cockpit.cli import command
command()
"""


@pytest.mark.req("UI-24", "PF-15")
def test_a_terminal_without_a_name_is_drawn_once():
    """Rich takes it for one of 80 by 25, whatever its size is: the screen gets both sizes while it opens."""
    command = [sys.executable, "-c", OPENED_ON_A_DUMB_TERMINAL]
    with Terminal(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as terminal:
        terminal.until(lambda screen: screen.splitlines()[39].startswith(" ? help"))
        terminal.quiet(0.2)


@pytest.mark.req("UI-24", "UI-26")
def test_invalid_utf_8_bytes_are_read_as_replacement_characters():
    with feeder(Wish(rows=200)) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        terminal.press("/\udcfc\udcc3(\udce8xy")
        terminal.until(lambda screen: "\N{REPLACEMENT CHARACTER}(" in screen and "xy" in screen)
        terminal.press("\x1b")
        terminal.until(lambda screen: "xy" not in screen)


DEFECT_WHILE_READING = """
import os, sys
from cockpit.cli import command
from cockpit.tui import driver

def defect(self):
    value = os.environ["SOME_TOKEN"]
    raise RuntimeError("the thread that reads is defective")

driver.RobustDriver.run_input_thread = defect
sys.argv = ["cockpit", "demo"]
command()
"""


@pytest.mark.req("TR-10", "UI-40")
def test_a_defect_in_the_thread_that_reads_ends_the_cockpit_with_its_code_and_shows_no_values():
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SOME_TOKEN": "planted-secret"}
    with Terminal([sys.executable, "-c", DEFECT_WHILE_READING], env) as terminal:
        terminal.until(lambda screen: "the thread that reads is defective" in screen)
        assert terminal.process.wait(timeout=SECONDS) == ExitCode.INTERNAL
        terminal.to_the_end()
        assert b"planted-secret" not in terminal.written_since(0)
        assert b"ended because of a defect" in terminal.written_since(0)


CUT_SHORT = """
import sys
from textual.drivers.linux_driver import LinuxDriver
from cockpit.cli import command

def exit_comes_here(self):
    LinuxDriver.stop_application_mode = whole
    raise SystemExit(143)

whole, LinuxDriver.stop_application_mode = LinuxDriver.stop_application_mode, exit_comes_here
sys.argv = ["cockpit", "demo"]
command()
"""


@pytest.mark.req("UI-50")
def test_an_exit_during_shutdown_restores_the_terminal():
    with Terminal([sys.executable, "-c", CUT_SHORT], {**os.environ, "PYTHONPATH": str(ROOT)}) as terminal:
        terminal.until(lambda screen: "? help" in screen)
        at = terminal.press("q")
        terminal.paint_after(at, "\x1b[?1049l")
        assert terminal.process.wait(timeout=60) == 143
