"""The screen under a hundred thousand rows: loading, keys, bytes, memory; turm beside it where it is installed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.bench.bench_headless import cpu_seconds
from tests.bench.figures import Figures, Peer
from tests.bench.peer_turm import COMMAND as TURM
from tests.bench.peer_turm import turm_over
from tests.doubles.feeder import Wish
from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS, TURM_ROWS = 100_000, 50_000
KEYS = "jjjkkk" * 20
SETTLED_SECONDS = 1.5
IDLE_SECONDS = 5
TICKS = 10
VISIBLE_CELLS = 29 * 7
"""Of the job list at 120×40."""


def feeder(wish: Wish) -> Terminal:
    command = [sys.executable, "-m", "tests.doubles.feeder", msgspec.json.encode(wish).decode()]
    return Terminal(command, {**os.environ, "PYTHONPATH": str(ROOT)}, cwd=str(ROOT))


def report(file: Path) -> dict[str, list[float]]:
    """The values of each name."""
    values: dict[str, list[float]] = {}
    for line in file.read_text().splitlines():
        name, value = line.split()
        values.setdefault(name, []).append(float(value))
    return values


def key_to_paint(terminal: Terminal, mark: str) -> list[float]:
    """Milliseconds; at moments that have nothing to do with the app's own."""
    taken = []
    for number, key in enumerate(KEYS):
        at = terminal.press(key)
        taken.append((terminal.paint_after(at, mark) - at) * 1000)
        time.sleep(0.03 + number % 7 * 0.013)
    return taken


@pytest.fixture(scope="module")
def crowded() -> Iterator[Terminal]:
    with feeder(Wish(rows=ROWS)) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        terminal.quiet(SETTLED_SECONDS)
        yield terminal


@pytest.mark.parametrize(("rows", "words"), [(10_000, "10 000"), (ROWS, "100 000")])
def test_rows_arrive(figure: Figures, tmp_path: Path, rows: int, words: str):
    note = tmp_path / "report"
    with feeder(Wish(rows=rows, report=str(note))) as terminal:
        shown = terminal.paint_after(0, CURSOR_SIGN)
        terminal.quiet(SETTLED_SECONDS)
        found = report(note)
    figure("PF-12", f"job list ready, {words} jobs", max(shown, *found["taken"]) - found["given"][0])
    if rows == ROWS:
        figure("PF-12", "longest stall of the screen meanwhile", max(found["stall"]))


def test_a_key_while_nothing_else_happens(figure: Figures, crowded: Terminal):
    figure.spread("PF-13", "key to paint, 100 000 rows, idle", key_to_paint(crowded, CURSOR_SIGN))


@pytest.mark.skipif(TURM is None, reason="turm is not installed: its figures are those of another day")
def test_a_key_in_turm(figure: Figures, tmp_path: Path):
    with turm_over(TURM_ROWS, tmp_path) as terminal:
        terminal.paint_after(0, "train-bert-1")
        terminal.quiet(SETTLED_SECONDS)
        figure.beside(
            "PF-13", "key to paint, 100 000 rows, idle, median", Peer("turm", median(key_to_paint(terminal, "")))
        )


def test_a_key_while_rows_change(figure: Figures, tmp_path: Path):
    note = tmp_path / "report"
    with feeder(Wish(rows=ROWS, changing=ROWS // 100, report=str(note))) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        time.sleep(5)
        note.write_text("")
        figure.spread("PF-13", "key to paint, 1 % changing", key_to_paint(terminal, CURSOR_SIGN))
        figure("PF-13", "longest stall of the screen, 1 % changing", max(report(note)["stall"]))


def test_a_tick(figure: Figures):
    with feeder(Wish(rows=1_000, cells=VISIBLE_CELLS // 10)) as terminal:
        terminal.paint_after(0, CURSOR_SIGN)
        time.sleep(2)
        before = perf_counter()
        time.sleep(TICKS)
        figure("PF-14", "a tick, 10 % of visible cells changed", len(terminal.written_since(before)) / TICKS / 1000)


def test_nothing_changes(figure: Figures, crowded: Terminal):
    crowded.quiet(SETTLED_SECONDS)
    before, spent = perf_counter(), cpu_seconds(crowded.process.pid)
    time.sleep(IDLE_SECONDS)
    figure("PF-15", "nothing changes, written", len(crowded.written_since(before)))
    figure("PF-15", "nothing changes, CPU", (cpu_seconds(crowded.process.pid) - spent) / IDLE_SECONDS * 100)


def test_memory(figure: Figures, crowded: Terminal):
    """After a word was looked for: what the search remembers counts."""
    crowded.press("/")
    crowded.press("bert-9")
    crowded.quiet(SETTLED_SECONDS)
    crowded.press("\x1b")
    status = Path(f"/proc/{crowded.process.pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    figure("PF-16", "memory of the app, 100 000 jobs", int(resident.split()[1]) / 1024)
