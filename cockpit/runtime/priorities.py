"""The socket's operations on priorities: return the queue in priority order, and set the weights.

Weights take effect at once, and are written into cluster.toml for the next engine start.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cockpit.engine.access import may_see
from cockpit.engine.configure import change_weights
from cockpit.engine.views.ranking import present_order, ranked, tried_order
from cockpit.errors import CockpitError, RequestRefused, StoreError
from cockpit.formats.cluster.text import with_weights
from cockpit.model.refusal import Refusal
from cockpit.model.view import Priorities, WeightsSet

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from cockpit.engine.access import Actor
    from cockpit.model.cluster import Priority
    from cockpit.model.events import EventRecord
    from cockpit.model.priority import WeightChanges
    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext
    from cockpit.sched.priority.priorities import PriorityTable
    from cockpit.sched.snapshot import Snapshot


_UNWRITTEN = "The engine ended before {file} was written, so the weights of that file may be in force."
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
    # Compared with the present order, so that the page shows each job's move.
    table, before = present_order(snapshot, last), None
    if weights is not None:
        before = table
        snapshot, table = tried_order(snapshot, weights)
    rows = ranked(table, queue, lambda job: may_see(actor, job), before)
    return Priorities(snapshot.cluster.priority.kind, snapshot.cluster.priority.weights, tuple(rows))


async def set_weights(engine: Engine, context: RequestContext, args: messages.SetWeightsArgs) -> bytes:
    """Set the weights. If the file cannot be written, the answer and, until it stops, the engine's status say so."""
    host, file = engine.host, engine.cluster_file

    def unwritten(_records: Sequence[EventRecord]) -> bytes:
        weights = args.weights.on(host.machine.state.cluster.priority.weights)
        return msgspec.msgpack.encode(WeightsSet(weights, "", _UNWRITTEN.format(file=file) if file is not None else ""))

    # This answer is stored with the event, so that a repeat changes nothing even if the engine ends before the file is
    # written; the answer below replaces it.
    act = context.act(durable=True)
    outcome = await host.act(lambda machine, _: change_weights(machine.state, args.weights), act, unwritten)
    if isinstance(outcome, Refusal):
        raise RequestRefused(outcome)
    priority = host.machine.state.cluster.priority
    trouble = await asyncio.to_thread(_write_back, file, priority)
    if trouble:
        engine.troubles = (*(each for each in engine.troubles if each != trouble), trouble)
    written = str(file) if file is not None and not trouble else ""
    answer = msgspec.msgpack.encode(WeightsSet(priority.weights, written, trouble))
    with suppress(StoreError):  # the weights are in force: an error here must not read as "Nothing was accepted"
        await engine.requests.remember(context, answer)
    return answer


def _write_back(file: Path | None, priority: Priority) -> str:
    """Write the weights into the file; return why that failed, or an empty text (also without a file)."""
    if file is None:
        return ""
    try:
        text = with_weights(_text(file), priority, str(file))
        # A draft and a rename, with the mode of the file that it replaces: a crash leaves the old file.
        half = file.with_name(f"{file.name}.half")
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8")
        if file.exists():
            half.chmod(file.stat().st_mode & 0o777)
        half.replace(file)
    except (OSError, UnicodeDecodeError, CockpitError) as error:
        return (
            f"{file} could not be written ({error}): the new weights are in force until the engine starts again, and "
            "then those of the file; write them there to keep them."
        )
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
