"""Text from outside in every view of a real terminal, judged by the bytes that reach it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import CockpitUser, a_new_user
from tests.e2e.hostile_jobs import EVIL, a_hostile_job, obeyed
from tests.hostile import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTLED_SECONDS = 0.15
pytestmark = [pytest.mark.real]

SEQUENCE = re.compile(r"\x1b(?:\]22;default\x07|\[[0-9;:?<=>]*[ !\"$']*[@-~]|[()][0-9A-B]|[=>78Mc]|.)", re.DOTALL)
DRAWING = re.compile(r"\x1b\[(?:[0-9;:]*m|[0-9;]*[HJK])")
"""Colours, places, and what clears a line."""
MODES = re.compile(r"\x1b\[(?:\?[0-9;]+(?:[hl]|\$p)|[<>=][0-9]*u|6n|c)|\x1b[=>]|\x1b\]22;default\x07")
"""What a terminal is told and asked at the beginning and the end of the app, and the shape of its pointer."""
TRUE_COLOUR = re.compile(r"0|[1-9]|2[1-9]|[34]8;(?:2;\d+;\d+;\d+|5;\d+)|39|49")


@pytest.fixture(scope="module")
def user() -> Iterator[CockpitUser]:
    with a_new_user() as somebody:
        yield somebody


def tour(terminal: Terminal, job: str) -> None:
    """Every view of it, every tab of the failed job, and hostile text typed into both lines."""
    terminal.until(lambda screen: "hostile-0" in screen)
    for keys in ("G", "gjjj", "2", "1", f":{job}\r"):
        terminal.press(keys)
        terminal.quiet(SETTLED_SECONDS)
    terminal.press("\r")
    terminal.until(lambda screen: "look inside" in screen)
    for keys in ("l", "g", "G", "o", "]", "G", "]", "]", "G", "\x1b", "?", "\x1b", "/\u202e[bold]\u200b", "\r"):
        terminal.press(keys)
        terminal.quiet(SETTLED_SECONDS)
    terminal.press("\x1b")
    terminal.quiet(SETTLED_SECONDS)
    terminal.press(":[red]\u202e\r")
    terminal.quiet(SETTLED_SECONDS)
    terminal.press("q")


@pytest.mark.req("TR-05")
def test_nothing_from_outside_is_obeyed_by_the_terminal(user: CockpitUser) -> None:
    job = a_hostile_job(user)
    command = [sys.executable, "-m", "cockpit.cli", "-c", "local"]
    with Terminal(command, user.env, cwd=str(user.work), lines=60) as terminal:
        tour(terminal, job)
        terminal.process.wait(10)
        written = terminal.written_since(0).decode("utf-8", "strict")
    sequences = SEQUENCE.findall(written)
    foreign = {each for each in sequences if not DRAWING.fullmatch(each) and not MODES.fullmatch(each)}
    assert foreign == set()
    colours = {part for each in sequences if each.endswith("m") for part in colours_of(each)}
    assert {part for part in colours if not TRUE_COLOUR.fullmatch(part)} == set()
    drawn = SEQUENCE.sub("", written)
    assert obeyed(drawn, spared="\r\n") == set()
    assert "\\x1b]0;owned\\x07" in drawn
    for text in UNSEEN.values():
        if "\x1b" in text:
            assert text not in written
    assert EVIL not in written


def colours_of(sequence: str) -> list[str]:
    """The parts of one SGR sequence: `1`, `38;2;1;2;3`."""
    return re.findall(r"[34]8;2;\d+;\d+;\d+|[34]8;5;\d+|\d+", sequence)
