"""Text from outside in every view of a real terminal, judged by the bytes that reach it."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from tests.doubles.fence import FencedTerminal
from tests.doubles.terminal import SECONDS
from tests.e2e.cockpit_user import ROOT, CockpitUser, a_new_user
from tests.e2e.hostile_jobs import EVIL, a_hostile_job, obeyed
from tests.hostile import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def tour(terminal: FencedTerminal, job: str) -> None:
    """Every view of it, every tab of the failed job, and hostile text typed into both lines."""
    terminal.until(lambda screen: "hostile-" in screen)
    for keys in ("G", "gjjj", "2", "1", f":{job}\r"):
        terminal.do(keys)
    terminal.do("\r")
    terminal.until(lambda screen: "open shell" in screen)
    for keys in ("l", "g", "G", "o", "]", "G", "]", "]", "G", "]", "]", "]", "]", "\x1b", "?", "\x1b"):
        terminal.do(keys)
    for keys in ("/\u202e[bold]\u200b", "\r", "\x1b", ":[red]\u202e\r"):
        terminal.do(keys)


@pytest.mark.real
@pytest.mark.req("TR-05")
def test_hostile_text_is_not_executed_by_the_terminal(user: CockpitUser) -> None:
    job = a_hostile_job(user)
    with FencedTerminal(["cockpit.cli", "-c", "local"], user.env, cwd=str(user.work), lines=60) as terminal:
        tour(terminal, job)
        written = all_written(terminal)
    assert_nothing_is_obeyed(written)
    assert "\\x1b]0;owned\\x07" in drawn(written)
    for text in UNSEEN.values():
        if "\x1b" in text:
            assert text not in written
    assert EVIL not in written


LAST = (
    ("x", "Stop job 4"),
    ("y", "no \\x1b]52"),
    ("c", "copied 4"),
    ("H", "cannot be reached"),
)
"""Notices, and a cluster that goes: each key, and what comes of it."""
COPIED = "\x1b]52;c;NA==\x07"
"""The id 4, for the clipboard: the one thing that `c` tells the terminal."""
VIEWS = {
    "the list of jobs, up and down": ("G", "\x15", "\x15", "\x15", "g", "\x04", "\x04", "jjj"),
    "a job's page, every tab": ("\r", *("]", "\x04") * 8, "/", "a", "\r", ">", "\x1b", "t", "w", "\x1b"),
    "another's logs, folded and on": ("j", "l", "g", "w", "\x04", "w", "G", "o", "p", "\x1b"),
    "the nodes": ("2", "G", "\x15", "g", "jjj", "\r", "\x04", "\r", "/", "\x1b"),
    "the cards": ("3", "G", "g", "\x1b[C", "\x1b[C", "o", "\r", "\x1b", "/", "\x1b"),
    "the accounts and the QOS": ("4", "G", "g", "jj", "\r", "\x1b", "/", "\x1b"),
    "the order and what it is made of": ("5", "G", "g", "j", "\r", "\x1b", "/", "\x1b"),
    "the catalogue": ("7", "G", "g", "j", "\r", "\x1b", "/", "\x1b"),
    "the queues": ("6", "G", "g", "j", "\r", "\x1b", "/", "\x1b"),
    "questions, help, lists to choose from": ("1", "g", "x", "\x1b", "?", "\x1b", "F", "G", "\x1b", "S", "\x1b"),
    "the palette and other clusters": ("\x10", "saved", "\x1b", ":ctx\r", "\x1b"),
    "what was typed and pasted": (
        "/",
        "\x1b[200~a\x9b31m\u202eb\x1b[201~",
        "\x1b",
        "/\u202e[bold]\u200b\x9b",
        "\r",
        "\x1b",
        ":[red]\u202e\r",
        "W",
        "/e\r",
        "W",
        "kept\r",
    ),
}


@pytest.mark.req("TR-05")
def test_every_view_escapes_the_texts_of_a_hostile_cluster() -> None:
    with hostile_cluster() as terminal:
        for keys in (key for view in VIEWS.values() for key in view):
            terminal.do(keys)
        written = all_written(terminal)
    assert_nothing_is_obeyed(written)
    shown = drawn(written)
    for proof in ("Stop job", "Saved filters", "\\x1b]52;c;", "\\u202e", "训练任务", "[bold]", "{x.__cl"):
        assert proof in shown, proof


@pytest.mark.req("TR-05")
def test_notices_and_trouble_messages_are_escaped() -> None:
    with hostile_cluster() as terminal:
        terminal.do(":4\r")
        # Not only what comes now: the cursor may be on the job already.
        terminal.until(lambda screen: "asks for node" in screen)
        for keys, comes in LAST:
            press_and_see(terminal, keys, comes)
        written = all_written(terminal)
    assert written.count(COPIED) == 1
    assert_nothing_is_obeyed(written.replace(COPIED, ""))


@contextmanager
def hostile_cluster() -> Iterator[FencedTerminal]:
    """Its list is there."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    double = ["tests.doubles.hostile_cluster"]
    with FencedTerminal(double, env, cwd=str(ROOT), columns=200, lines=60) as terminal:
        terminal.until(lambda screen: "running" in screen)
        yield terminal


def all_written(terminal: FencedTerminal) -> str:
    """What it was sent until the program had ended: before that the last sequence may be half written."""
    terminal.press("q")
    terminal.to_the_end()
    return terminal.written_since(0).decode("utf-8", "strict")


def press_and_see(terminal: FencedTerminal, keys: str, text: str) -> None:
    """Looks at what comes, for drawing all that came before anew takes seconds."""
    began = perf_counter()
    terminal.do(keys)
    while text not in drawn(terminal.written_since(began).decode("utf-8", "replace")):
        assert perf_counter() - began < SECONDS, f"{keys} never brought {text}"
        terminal.more(0.1)


def assert_nothing_is_obeyed(written: str) -> None:
    """All that the terminal got is text, places, colours of the theme, and the modes of a Textual app."""
    sequences = SEQUENCE.findall(written)
    foreign = {each for each in sequences if not DRAWING.fullmatch(each) and not MODES.fullmatch(each)}
    assert foreign == set()
    colours = {part for each in sequences if each.endswith("m") for part in colours_of(each)}
    assert {part for part in colours if not TRUE_COLOUR.fullmatch(part)} == set()
    assert obeyed(drawn(written), spared="\r\n") == set()


def drawn(written: str) -> str:
    """What is left when every sequence is taken away."""
    return SEQUENCE.sub("", written)


def colours_of(sequence: str) -> list[str]:
    """The parts of one SGR sequence: `1`, `38;2;1;2;3`."""
    return re.findall(r"[34]8;2;\d+;\d+;\d+|[34]8;5;\d+|\d+", sequence)
