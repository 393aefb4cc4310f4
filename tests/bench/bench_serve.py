"""Fifty people in the cockpit over SSH at once, through real OpenSSH clients at real pseudo terminals."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from tests.bench.bench_headless import submit_waiting
from tests.doubles.terminal import Terminal
from tests.runtime.served import RawClient
from tests.serve.served import ME, served_cockpit
from tests.serve.test_ssh import programs_of

if TYPE_CHECKING:
    from tests.bench.figures import Figures
    from tests.serve.served import ServedCockpit

SESSIONS = 50
KEYS = 200
SHOWN = "train-bert"


@pytest.mark.real
def test_fifty_sessions(figure: Figures) -> None:
    with served_cockpit() as served, ExitStack() as stack:
        submit_waiting(served.user, 100)
        key = served.key("own", f'user="{ME}"')
        served.user.env["COCKPIT_SERVE_SESSIONS_PER_USER"] = "60"
        served.start("--sessions", "60")
        stack.enter_context(updates(served))
        env = {"PATH": "/usr/bin:/bin", "HOME": str(served.folder)}
        opened, terminals = [], []
        for _ in range(SESSIONS):
            at = perf_counter()
            terminal = stack.enter_context(Terminal(served.words(key, "-tt"), env, columns=100, lines=30))
            opened.append(terminal.paint_after(at, SHOWN) - at)
            terminals.append(terminal)
        waits = []
        for number in range(KEYS):
            # A cursor key draws two rows: a small frame, as most keys do.
            terminal = terminals[number * 7 % SESSIONS]
            at = terminal.press("j" if number // SESSIONS % 2 == 0 else "k")
            waits.append((terminal.paint_after(at, "") - at) * 1000)
        figure("PF-40", "50 sessions, key to paint, p95", quantiles(waits, n=20, method="inclusive")[-1])
        figure("PF-40", "50 sessions, memory of each", median(map(own_mib, programs_of(served))))
        figure("PF-40", "50 sessions, opening one", median(opened))


class updates:  # noqa: N801 - a context manager, used as one
    """Holds and releases a job once a second, so that each screen changes."""

    def __init__(self, served: ServedCockpit) -> None:
        self._socket = served.user.folder / "run/cockpit-cluster/engine.sock"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        with RawClient(self._socket) as client:
            for number in range(100_000):
                client.ask("release" if number % 2 else "hold", {"job": 3})
                if self._ended.wait(1):
                    return


def own_mib(pid: int) -> float:
    """The memory of a process, that which it shares with others divided among them."""
    shown = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    assert shown is not None
    return int(shown.group(1)) / 1024
