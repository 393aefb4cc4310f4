"""What a long list of pods costs, from the first request to the drawn rows, and the screen while the pods change."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.connection import Connection
from cockpit.present.columns import Context
from cockpit.runtime.clock import SystemClock
from cockpit.runtime.tasks import Tasks
from cockpit.tui.opening import GC_THRESHOLDS
from cockpit.tui.rows.lists import JobRows
from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.bench.bench_tui_rows import key_to_paint, report
from tests.bench.kubernetes_server import PODS, many_pods
from tests.doubles.feeder import Wish
from tests.doubles.terminal import Terminal
from tests.e2e.cockpit_user import ROOT

if TYPE_CHECKING:
    from tests.bench.figures import Figures

ROUNDS = 3
COLUMNS, LINES = 120, 30
TICK_SECONDS = 0.002
CHANGES = 300
"""Pods that change each second."""
SETTLED_SECONDS = 5


@pytest.fixture(autouse=True)
def as_seldom_collected_as_in_the_app() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    yield
    gc.set_threshold(*before)


async def _longest_stall(longest: list[float]) -> None:
    """Measure by how much the loop is late."""
    while True:
        before = perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        longest.append(perf_counter() - before - TICK_SECONDS)


async def test_ten_thousand_pods(figure: Figures, tmp_path: Path) -> None:
    clock, took, stalls = SystemClock(), [], []
    with many_pods(tmp_path) as file:
        for _ in range(ROUNDS):
            backend = KubernetesBackend(
                "bench", lambda: Api(Connection("fake", (str(file),), clock.now)), "team-0", clock, Random(1), "ann"
            )
            longest: list[float] = []
            beside = Tasks()
            beside.start(_longest_stall(longest), "the lateness of the loop")
            before = perf_counter()
            watch = backend.watch_jobs()
            delta = await anext(aiter(watch))
            drawn = Context(now=clock.now(), zone=UTC, user="ann")
            shown = JobRows(lambda drawn=drawn: drawn)
            shown.folds.replace_all(delta.changed)
            cells = [shown.cells(row_id, COLUMNS) for row_id in shown.order[:LINES]]
            took.append(perf_counter() - before)
            stalls.append(max(longest))
            await beside.cancel_all()
            assert (len(cells), len(delta.changed)) == (LINES, PODS)
            await backend.close()
    figure("PF-20", "10 000 pods listed and drawn", median(took))
    figure("PF-20", "longest stall meanwhile", median(stalls) * 1000)


def test_pods_change_while_keys_are_pressed(figure: Figures, tmp_path: Path) -> None:
    note = tmp_path / "report"
    with many_pods(tmp_path, changes=CHANGES) as file:
        wish = Wish(kubeconfig=str(file), report=str(note))
        command = [sys.executable, "-m", "tests.doubles.feeder", msgspec.json.encode(wish).decode()]
        with Terminal(command, {**os.environ, "PYTHONPATH": str(ROOT)}, cwd=str(ROOT)) as terminal:
            terminal.paint_after(0, CURSOR_SIGN)
            time.sleep(SETTLED_SECONDS)
            note.write_text("")
            figure.spread("PF-20", "key to paint, 300 changes a second", key_to_paint(terminal, CURSOR_SIGN))
            terminal.press("2")  # nodes, whose rows are made of all pods
            time.sleep(SETTLED_SECONDS)
            figure("PF-20", "longest stall, 300 changes a second", max(report(note)["stall"]))
            figure("PF-20", "memory of the app, 300 changes a second", resident_mib(terminal))


def resident_mib(terminal: Terminal) -> float:
    status = Path(f"/proc/{terminal.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024
