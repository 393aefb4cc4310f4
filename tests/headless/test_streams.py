"""The streams of a command: how wide they are, when they are flushed, and what is left of a closed one."""

from __future__ import annotations

import os
import pty
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import BytesIO, FileIO
from pathlib import Path
from typing import BinaryIO
from zoneinfo import TZPATH, ZoneInfo

import pytest

from cockpit.headless import surroundings
from cockpit.headless.streams import Streams
from cockpit.headless.surroundings import local_zone
from cockpit.model.ids import Millis


class Flushed(BytesIO):
    """A stream of a terminal that notes what had been written whenever it was flushed."""

    def __init__(self, answer: bytes = b"") -> None:
        super().__init__(answer)
        self.flushed: list[bytes] = []

    def flush(self) -> None:
        self.flushed.append(self.getvalue())

    def isatty(self) -> bool:
        return True


def streams(stdout: BinaryIO, stderr: BinaryIO | None = None, stdin: bytes = b"") -> Streams:
    return Streams(stdin=Flushed(stdin), stdout=stdout, stderr=stderr or BytesIO(), now=lambda: Millis(0))


@contextmanager
def terminal(columns: int) -> Iterator[FileIO]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))
    try:
        with os.fdopen(slave, "wb", buffering=0) as opened:
            yield opened
    finally:
        os.close(master)


@pytest.mark.req("UI-40")
def test_output_is_as_wide_as_its_terminal_and_80_columns_elsewhere() -> None:
    with terminal(132) as wide, terminal(0) as unknown:
        assert streams(wide).columns == 132
        assert streams(unknown).columns == 80
    assert streams(BytesIO()).columns == 80


def test_a_message_follows_the_output_before_it_at_once() -> None:
    stdout, stderr = Flushed(), Flushed()
    shown = streams(stdout, stderr)
    shown.line("1 job")
    shown.say("and a note")
    assert stdout.flushed == [b"1 job\n"]
    assert stderr.flushed == [b"and a note\n"]


@pytest.mark.parametrize(
    ("answer", "yes"), [(b"y\n", True), (b"Yes\n", True), (b"\n", False), (b"", False), (b"no\n", False)]
)
def test_only_a_clear_yes_confirms(answer: bytes, yes: bool) -> None:
    stdout, stderr = Flushed(), Flushed()
    asked = streams(stdout, stderr, answer)
    asked.line("1 job")
    assert asked.confirmed("Cancel it?") is yes
    assert stdout.flushed == [b"1 job\n"], "the question stands behind what was printed"
    assert stderr.flushed == [b"Cancel it? [y/N] "]


@pytest.mark.req("TR-05")
def test_only_a_terminal_gets_text_that_differs_from_a_files() -> None:
    hidden, plain = "a\x1b[2Jb\n", "a\tb\n"
    assert streams(Flushed()).changes(hidden)
    assert not streams(Flushed()).changes("plain\n")
    assert not streams(BytesIO()).changes(hidden)
    file, screen = BytesIO(), Flushed()
    for stream in (file, screen):
        streams(stream).write(hidden.encode())
        streams(stream).write_all([plain.encode(), hidden.encode()])
    assert file.getvalue() == f"{hidden}{plain}{hidden}".encode()
    assert b"\x1b" not in screen.getvalue()


def test_output_without_a_reader_is_abandoned(tmp_path: Path) -> None:
    file = tmp_path / "out"
    with file.open("wb") as opened:
        shown = streams(opened)
        shown.line("before")
        shown.flush()
        shown.abandon_output()
        shown.line("after")
    assert file.read_bytes() == b"before\n"


def test_a_process_that_was_started_without_streams_reads_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    shown = Streams.of_process(lambda: Millis(0))
    shown.line("ä")
    shown.say("ö")
    assert shown.stdin.read() == b""
    for stream in (shown.stdin, shown.stdout, shown.stderr):
        stream.close()


@pytest.mark.parametrize("variable", ["Asia/Tokyo", ":Asia/Tokyo"])
def test_times_are_those_of_the_users_zone(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("TZ", variable)
    assert local_zone() == ZoneInfo("Asia/Tokyo")


def test_without_a_variable_the_zone_is_the_machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ", raising=False)
    there = next(file for each in TZPATH if (file := Path(each) / "Asia/Tokyo").exists())
    monkeypatch.setattr(surroundings, "_SYSTEM_ZONE", there)
    assert datetime(2026, 7, 1, tzinfo=local_zone()).utcoffset() == timedelta(hours=9)
    monkeypatch.setattr(surroundings, "_SYSTEM_ZONE", tmp_path / "none")
    assert datetime(2026, 7, 1, tzinfo=local_zone()).utcoffset() is not None, "the present offset from UTC"
