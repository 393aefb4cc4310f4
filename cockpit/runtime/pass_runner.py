"""One scheduling pass: a small one in the event loop, a large one in a thread beside it.

A thread, because a pass reads the live state as it is. Another process would have to be sent a hundred thousand jobs
each time; and a pass cut into slices would meet another state after each. The one writer waits for the pass, so nothing
changes what it reads; the socket goes on answering questions about the state, at the price of sharing the interpreter.

So an act waits for the pass. To take it meanwhile, it would have to be decided on another state than the one that the
pass reads (a copy of it all, or a second state to be merged), and its answer be held back until the plan is checked
against it: more ways to be wrong than a wait of a fraction of a second, which only a queue of tens of thousands makes.
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
"""Below it a pass takes less than the change of threads is worth: a few milliseconds."""
SWITCH_SECONDS = 0.000_5
"""How long the pass holds the interpreter when the event loop wants it. An answer takes several of these: the loop lets
go of the interpreter around every system call. Python's own 5 ms would make 20 ms of a question."""

MANY_OBJECTS = 50_000
"""Left over by a pass: a collection among them would stall everybody for longer than an answer may take."""


async def planned(snapshot: Snapshot, last: Plan | None, policy: Policy) -> Plan:
    """The plan for a snapshot that nobody changes meanwhile; `last` saves work."""
    if len(snapshot.queue) < LARGE_QUEUE:
        return next_plan(last, snapshot, policy)
    with considerate():
        return await asyncio.to_thread(_described, snapshot, last, policy)


def _described(snapshot: Snapshot, last: Plan | None, policy: Policy) -> Plan:
    """With everything derived that the event loop would later have to derive."""
    plan = next_plan(last, snapshot, policy)
    plan.refusals.describe()
    plan.reservations  # noqa: B018 - it remembers them
    return plan


@contextmanager
def considerate() -> Iterator[None]:
    """The interpreter changes hands quickly, and nobody looks for garbage among a hundred thousand jobs meanwhile, nor
    afterwards among what a pass has added for those that follow it."""
    usual, collects = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.disable()
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
        if gc.get_count()[0] > MANY_OBJECTS:
            gc.freeze()
        if collects:
            gc.enable()
