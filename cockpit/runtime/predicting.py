"""When queued jobs, and jobs that nobody has submitted, will start: asked over the socket, answered from a thread.

A thread, since the cluster's future takes some tens of milliseconds. It works on a copy of what the state says, and one
question is answered at a time: who asks again at the same moment goes on in the future that is already there.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec.structs import replace

from cockpit.engine import foresight as telling
from cockpit.engine.access import may_see
from cockpit.engine.foresight import Changed, expected, first_of_each, outlook, shown_outlook, would_be
from cockpit.errors import RequestRefused, StoreError
from cockpit.model.forecast import Expected, Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.asked import Asked, asked_job
from cockpit.runtime.passing import considerate
from cockpit.sched.forecast.history import History, history_of
from cockpit.sched.forecast.moves import BoundHistory
from cockpit.sched.forecast.predict import Foresight

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.engine.access import Actor
    from cockpit.model.job import Job
    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.host import Host
    from cockpit.sched.snapshot import Snapshot

T = TypeVar("T")

WATCH_MS = 60_000
"""How often promised starts are looked after where nobody asks; less often where a look is expensive."""
WATCH_SHARE = 100
"""A look is followed by at least so many times as long without one."""

REMEMBERED_JOBS = 5_000
"""Read from accounting for the first question."""
SAME_MOMENT_MS = 1_000
MOST_SPECS = MOST_STARTS = 1_000


async def explain(engine: Engine, asked: Asked, args: messages.JobArgs) -> Outlook:
    """Why a queued job does not start, when it will, and what it could ask for instead."""
    found = await asked_job(engine, asked.actor, args.job, args.task)
    if found.id not in engine.host.machine.queue:
        message = f"Job {found.id} is {found.state}; only a queued job waits for something."
        if found.spec.elastic is not None and not found.ended:
            message += f" `cockpit job {found.id}` says why it has no more workers."
        raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
    async with engine.foretelling:
        foresight = await _foresight(engine)
        (answer,) = await _told(engine, asked.actor, foresight, [found])
        await _promise(engine, [found.id])
    return answer


async def starts(engine: Engine, asked: Asked, args: messages.StartsArgs) -> list[Expected]:
    """When these likely start, those of them that are queued and that the asker may see."""
    if len(args.jobs) > MOST_STARTS:
        message = f"Starts are told of at most {MOST_STARTS} jobs at once; ask for fewer."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    queue = engine.host.machine.queue
    jobs = [JobId(each) for each in args.jobs if (job := queue.get(JobId(each))) and may_see(asked.actor, job)]
    if not jobs:
        return []
    async with engine.foretelling:
        foresight = await _foresight(engine)
        found = await _in_turn(engine, lambda: list(expected(asked.actor, foresight, jobs, engine.bounds)))
        engine.host.note_faults(foresight.faults)
        await _promise(engine, [each.job for each in found])
        return found


async def take_up_promises(engine: Engine) -> None:
    """Go on with the promised starts of the engine before this one."""
    engine.bounds = BoundHistory(await engine.host.journal.promised_starts())
    _watch_on(engine, Millis(0))


async def _promise(engine: Engine, jobs: Sequence[JobId]) -> None:
    """Have the latest starts that these were shown looked after until they start."""
    engine.bounds.promise(jobs)
    await _save_promises(engine)
    _watch_on(engine, Millis(WATCH_MS))


def _watch_on(engine: Engine, after: Millis) -> None:
    """Where there is a promise, look after it in so long, unless that is planned."""
    if engine.bounds.promised and not engine.host.reminded:
        engine.host.remind(Millis(engine.host.clock.now() + after), partial(_watch, engine))


async def _watch(engine: Engine) -> None:
    """Notice what has moved since the last look or question, without anybody asking.

    A look costs about a pass, in a thread, and only where a promise stands. Nothing is looked at while nothing has
    happened: then only a moment that has gone by can have moved a bound.
    """
    used = 0.0
    try:
        async with engine.foretelling:
            if _may_have_moved(engine):
                fresh = await _of_now(engine.host, [])
                used = await _in_turn(engine, lambda: _followed(engine, fresh))
                engine.foresight = fresh
                engine.host.note_faults(fresh.faults)
            await _save_promises(engine)
    finally:
        _watch_on(engine, Millis(max(WATCH_MS, int(1000 * WATCH_SHARE * used))))


def _followed(engine: Engine, fresh: Foresight) -> float:
    """Take over what is promised now; the seconds of processor time that it took."""
    begun = time.thread_time()
    engine.bounds.follow(fresh.basis)
    return time.thread_time() - begun


def _may_have_moved(engine: Engine) -> bool:
    known, host = engine.foresight, engine.host
    if known is None or known.snapshot.version != host.machine.state.seq:
        return True
    return any(bound is not None and bound < host.clock.now() for bound in engine.bounds.promised.values())


async def _save_promises(engine: Engine) -> None:
    """Write what is new, has moved or is over; a store that cannot take it now is asked again with the next look."""
    changed, over = engine.bounds.unsaved()
    if changed or over:
        with suppress(StoreError):
            await engine.host.journal.save_promised_starts(changed, over)
            engine.bounds.saved(changed, over)


async def predict(engine: Engine, asked: Asked, args: messages.PredictArgs) -> list[Outlook]:
    """When these would start if they were submitted now, one behind the other. Refused as their submission would be."""
    if len(args.specs) > MOST_SPECS:
        message = f"A prediction takes at most {MOST_SPECS} jobs; ask for fewer at once."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    host = engine.host
    jobs = would_be(host.machine, args.specs, asked.actor, host.clock.now())
    if isinstance(jobs, Refusal):
        raise RequestRefused(jobs)
    async with engine.foretelling:
        foresight = await _of_now(host, jobs)
        answers = await _told(engine, asked.actor, foresight, first_of_each(jobs))
    return [replace(answer, job=JobId(0)) for answer in answers]


async def _foresight(engine: Engine) -> Foresight:
    """That of the last question, if nothing has happened since."""
    host, known = engine.host, engine.foresight
    if known is not None and _still_true(known, host):
        return known
    fresh = await _of_now(host, [])
    await _in_turn(engine, lambda: engine.bounds.follow(fresh.basis))
    engine.foresight = fresh
    return fresh


def _still_true(known: Foresight, host: Host) -> bool:
    same = known.snapshot.version == host.machine.state.seq
    return same and host.clock.now() - known.snapshot.now < SAME_MOMENT_MS


async def _of_now(host: Host, more: Sequence[Job]) -> Foresight:
    """With these jobs at the end of the queue."""
    history = await _history(host)
    policy = replace(host.settings.policy, backfill=host.machine.state.cluster.backfill)
    snapshot = _own_copy(host.machine.peek(host.clock.now()), more)
    return Foresight(snapshot, host.plan, policy, history)


def _own_copy(snapshot: Snapshot, more: Sequence[Job]) -> Snapshot:
    """Nothing of it changes any more."""
    return replace(
        snapshot,
        nodes=dict(snapshot.nodes),
        queue=(*snapshot.queue, *more),
        jobs={**snapshot.jobs, **{job.id: job for job in more}},
        occupied=dict(snapshot.occupied),
        ends=dict(snapshot.ends),
        reservations=dict(snapshot.reservations),
        qos_usage=dict(snapshot.qos_usage),
    )


async def _told(engine: Engine, actor: Actor, foresight: Foresight, jobs: Sequence[Job]) -> list[Outlook]:
    """What-ifs are for a single job: of many, nobody reads them."""
    machine = engine.host.machine

    def judged() -> list[Outlook]:
        foresight.plan  # noqa: B018 - worked out here, beside the event loop
        return [outlook(foresight, job, (), engine.bounds.of(job.id)) for job in jobs]

    found = await _in_turn(engine, judged)
    if len(jobs) == 1 and not found[0].forecast.now:
        changed: list[Changed] = telling.changes(machine, jobs[0], actor, foresight)
        found = await _in_turn(engine, lambda: [outlook(foresight, jobs[0], changed, engine.bounds.of(jobs[0].id))])
    engine.host.note_faults(foresight.faults)
    return [shown_outlook(actor, each, foresight.snapshot.jobs) for each in found]


async def _in_turn(engine: Engine, work: Callable[[], T]) -> T:
    """In a thread, which goes on when its asker has gone: whoever asks next waits for it, since both may use one
    future."""
    gone = False

    def alone() -> T | None:
        with engine.one_future, considerate():
            return None if gone else work()

    try:
        return cast("T", await asyncio.to_thread(alone))
    except asyncio.CancelledError:
        gone = True
        raise


async def _history(host: Host) -> History:
    """Read from accounting once, then told of every event."""
    if host.history is None:
        ended = await host.journal.ended_jobs(limit=REMEMBERED_JOBS)
        host.history = history_of(({job.id: job for job in ended} | dict(host.machine.state.jobs)).values())
    return host.history.copy()
