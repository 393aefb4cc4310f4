"""The socket's operation that returns the queue in priority order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import may_see
from cockpit.engine.views.ranking import present_order, ranked, tried_order
from cockpit.model.view import Priorities

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.engine.access import Actor
    from cockpit.model.priority import WeightChanges
    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext
    from cockpit.sched.priority.priorities import PriorityTable
    from cockpit.sched.snapshot import Snapshot

PAGE_ROWS = 1000
"""Rows per page; a page is encoded within a few milliseconds."""


async def priorities(
    engine: Engine, context: RequestContext, args: messages.PrioritiesArgs
) -> AsyncIterator[Priorities]:
    """Return the queue in pages, at least one. It is computed in a thread, so that other requests are answered."""
    host = engine.host
    snapshot = host.machine.peek(host.clock.now()).frozen()
    last = host.plan.priorities if host.plan is not None else None
    whole = await asyncio.to_thread(_whole, snapshot, last, args.weights, context.actor)
    for start in range(0, max(len(whole.rows), 1), PAGE_ROWS):
        yield replace(whole, rows=whole.rows[start : start + PAGE_ROWS])


def _whole(snapshot: Snapshot, last: PriorityTable | None, weights: WeightChanges | None, actor: Actor) -> Priorities:
    queue = {job.id: job for job in snapshot.queue}
    table, before = present_order(snapshot, last), None
    if weights is not None:
        before = table
        snapshot, table = tried_order(snapshot, weights)
    rows = ranked(table, queue, lambda job: may_see(actor, job), before)
    return Priorities(snapshot.cluster.priority.kind, snapshot.cluster.priority.weights, tuple(rows))
