from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from cockpit.store import archive

ROUNDS = 48
REPOSITORY = Path(__file__).parents[2]


class Writer:
    """The crash writer, and what it has acknowledged so far."""

    def __init__(self, folder: Path) -> None:
        self.acknowledged = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.crash_writer", folder],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def live_and_be_killed(self, acknowledgements: int, spin: int) -> None:
        """Kill it some instructions after so many acknowledgements: somewhere in its next steps."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        pid = self._read()[1]
        for _ in range(acknowledgements):
            self._note(self._read())
        for _ in range(spin):
            pass
        os.kill(int(pid), signal.SIGKILL)
        while (said := self._read())[0] != "gone":
            self._note(said)

    def end(self) -> None:
        self._process.communicate()

    def _read(self) -> list[str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the crash writer has ended by itself"
        return line.split(" ")

    def _note(self, said: list[str]) -> None:
        assert said[0] == "ack", said
        self.acknowledged = int(said[1])


def events(folder: Path) -> list[tuple[int, str]]:
    """Number and request of every event, archived or not, as any reader of the file finds them."""
    stored = sqlite3.connect(folder / "journal.db")
    rows = stored.execute("SELECT seq, request FROM events ORDER BY seq").fetchall()
    files = [name for (name,) in stored.execute("SELECT file FROM archives ORDER BY first_seq")]
    stored.close()
    archived = [record for name in files for record in archive.read(folder / "archive" / name)]
    return [(record.seq, record.request) for record in archived] + rows


def answers(folder: Path) -> dict[str, bytes]:
    stored = sqlite3.connect(folder / "journal.db")
    found = dict(stored.execute("SELECT request, answer FROM answers").fetchall())
    stored.close()
    return found


def check(folder: Path, acknowledged: int) -> None:
    kept = events(folder)
    assert [seq for seq, _ in kept] == list(range(1, len(kept) + 1)), "numbers have gaps or doubles"
    assert len(kept) >= acknowledged, "an acknowledged event is lost"
    sizes = {request: len(list(group)) for request, group in groupby(request for _, request in kept)}
    assert all(int(request.split("+")[1]) == size for request, size in sizes.items()), "half a transaction"
    assert answers(folder).keys() == sizes.keys(), "an answer without its events, or the reverse"


@pytest.mark.req("TR-01", "TR-03")
def test_a_process_killed_at_any_time_loses_no_acknowledged_event(tmp_path: Path) -> None:
    chance = random.Random(20_260)
    writer = Writer(tmp_path)
    for _ in range(ROUNDS):
        writer.live_and_be_killed(chance.randrange(12), chance.randrange(40_000))
        check(tmp_path, writer.acknowledged)
    writer.end()
    assert writer.acknowledged > ROUNDS
    stored = sqlite3.connect(tmp_path / "journal.db")
    assert stored.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert stored.execute("SELECT count(*) FROM archives").fetchone()[0] > 0
    stored.close()
