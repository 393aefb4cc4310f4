"""Run one scheduling pass: in the event loop for a small queue, in a thread for a large one.

It is a thread because a process would have to be sent a hundred thousand jobs each time. The pass owns what it reads
and writes: a frozen snapshot, and the caches of the last plan, which computes with caches of its own from then on.
Meanwhile the socket answers read requests, at the cost of sharing the interpreter with the pass.

Requests that change something wait for the pass. Deciding them meanwhile would need a second state that is
merged afterwards, and answers held back until the plan is checked against it. That is more error-prone than a wait of a
fraction of a second, which only a queue of tens of thousands of jobs causes.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cockpit.sched.cycle import next_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.sched.plan import Plan
    from cockpit.sched.policy import Policy
    from cockpit.sched.snapshot import Snapshot

LARGE_QUEUE = 1_000
"""Number of queued jobs from which on a pass runs in a thread. A smaller one takes a few milliseconds, less than a
thread costs."""
SWITCH_SECONDS = 0.000_5
"""Seconds after which the pass yields the interpreter to the event loop. The loop releases the interpreter around every
system call, so one answer waits several times as long; with Python's default of 5 ms an answer would take 20 ms."""

MANY_OBJECTS = 50_000
"""Objects allocated during a pass from which on they are exempted from garbage collection (`gc.freeze`). Collecting
among so many would block the event loop for longer than an answer may take."""


async def run_pass(snapshot: Snapshot, last: Plan | None, policy: Policy) -> Plan:
    """Return the plan for a frozen snapshot. `last`, the plan before, saves work."""
    if len(snapshot.queue) < LARGE_QUEUE:
        return next_plan(last, snapshot, policy)
    # Before the thread starts: the old plan, whose reasons are still shown, must share nothing with the new one.
    if last is not None:
        last.refusals.detach_caches()
    with yield_to_event_loop():
        return await asyncio.to_thread(_plan_and_derive, snapshot, last, policy)


def _plan_and_derive(snapshot: Snapshot, last: Plan | None, policy: Policy) -> Plan:
    """Make the plan, and derive here in the thread what the event loop would otherwise have to derive later."""
    plan = next_plan(last, snapshot, policy)
    plan.refusals.describe()
    plan.reservations  # noqa: B018 - the plan caches them
    return plan


class _Interpreter:
    """The settings of the interpreter while threads compute. The first one changes them, the last one restores them."""

    def __init__(self) -> None:
        self.users = 0
        self._interval, self._collects = 0.0, True

    def change(self) -> None:
        self._interval, self._collects = sys.getswitchinterval(), gc.isenabled()
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.disable()

    def restore(self) -> None:
        sys.setswitchinterval(self._interval)
        # The count since the last collection, and so, without collections, since the beginning of the pass.
        if gc.get_count()[0] > MANY_OBJECTS:
            gc.freeze()
        if self._collects:
            gc.enable()


_INTERPRETER = _Interpreter()


@contextmanager
def yield_to_event_loop() -> Iterator[None]:
    """Keep the event loop responsive while a thread computes: switch threads often, and collect no garbage.

    A collection would walk over a hundred thousand jobs. If the computation allocated many objects, they are exempted
    from later collections too. Several computations may overlap.
    """
    if not _INTERPRETER.users:
        _INTERPRETER.change()
    _INTERPRETER.users += 1
    try:
        yield
    finally:
        _INTERPRETER.users -= 1
        if not _INTERPRETER.users:
            _INTERPRETER.restore()
