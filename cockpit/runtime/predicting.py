"""Predict when queued jobs, and jobs that were not submitted yet, will start.

A prediction simulates the cluster's future, which takes some tens of milliseconds, so it runs in a thread, on a copy of
the state. One prediction is made at a time. While nothing changes, the next request continues the same simulation
(`Engine.predictor`) instead of starting a new one.

A latest start that a user was shown is a promise. It is stored, and followed until the job starts: `_watch` repeats the
prediction regularly, to notice when and why a promised start moves.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from msgspec.structs import replace

from cockpit.engine import prediction as what_ifs
from cockpit.engine.access import may_see
from cockpit.engine.prediction import (
    Changed,
    WithMoves,
    expected,
    first_of_each,
    hypothetical_jobs,
    outlook,
    shown_outlook,
)
from cockpit.errors import RequestRefused, StoreError
from cockpit.model.forecast import ExpectedStart, Forecast, Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.pass_runner import yield_to_event_loop
from cockpit.runtime.request_context import RequestContext, visible_job
from cockpit.sched.forecast.history import History, history_of
from cockpit.sched.forecast.moves import BoundHistory
from cockpit.sched.forecast.predict import StartPredictor

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
"""Shortest interval between two checks of the promised starts."""
WATCH_SHARE = 100
"""The next check comes after at least this many times the processor time of the last one, so that checking takes at
most 1 % of a processor."""

REMEMBERED_JOBS = 5_000
"""Number of ended jobs whose run times are read from accounting for the first prediction."""
SAME_MOMENT_MS = 1_000
"""Age up to which a prediction is used again while nothing changes."""
MOST_SPECS = MOST_STARTS = 1_000
"""Most jobs in one request."""


async def explain(engine: Engine, context: RequestContext, args: messages.JobArgs) -> Outlook:
    """Return why a queued job does not start, when it will, and which other requests would start sooner."""
    job = await visible_job(engine, context.actor, args.job, args.task)
    if job.id not in engine.host.machine.queue:
        message = f"Job {job.shown_id} is {job.state}; only a queued job waits for something."
        if job.spec.elastic is not None and not job.ended:
            message += f" `cockpit job {job.shown_id}` says why it has no more workers."
        raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
    # One prediction at a time: the next request then finds it ready instead of computing it a second time.
    async with engine.prediction_lock:
        predictor = await _current_predictor(engine)
        (answer,) = await _outlooks(engine, context.actor, predictor, [job], _with_moves(engine, predictor))
        await _promise(engine, [job.id])
    return answer


async def starts(engine: Engine, context: RequestContext, args: messages.StartsArgs) -> list[ExpectedStart]:
    """Return the likely starts of these jobs, as far as they are queued and the user may see them."""
    if len(args.jobs) > MOST_STARTS:
        message = f"One request predicts the starts of at most {MOST_STARTS} jobs; name fewer jobs."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    queue = engine.host.machine.queue
    named = (queue.get(JobId(number)) for number in args.jobs)
    jobs = [job.id for job in named if job is not None and may_see(context.actor, job)]
    if not jobs:
        return []
    async with engine.prediction_lock:
        predictor = await _current_predictor(engine)
        with_moves = _with_moves(engine, predictor)
        answer = await _in_thread(engine, lambda: list(expected(context.actor, predictor, jobs, with_moves)))
        engine.host.note_faults(predictor.faults)
        await _promise(engine, [start.job for start in answer])
        return answer


async def load_promises(engine: Engine) -> None:
    """Load the starts that the previous engine process has promised, and continue to watch them."""
    engine.bounds = BoundHistory(await engine.host.journal.promised_starts())
    _schedule_check(engine, Millis(0))


async def _promise(engine: Engine, jobs: Sequence[JobId]) -> None:
    """Note that users were shown these jobs' latest starts, and watch them until the jobs start."""
    engine.bounds.promise(jobs)
    await _save_promises(engine)
    _schedule_check(engine, Millis(WATCH_MS))


def _schedule_check(engine: Engine, after: Millis) -> None:
    """Schedule the next check of the promised starts after this time, if there are any and none is scheduled."""
    if engine.bounds.promised and not engine.host.reminded:
        engine.host.remind(Millis(engine.host.clock.now() + after), partial(_watch, engine))


async def _watch(engine: Engine) -> None:
    """Predict again to notice promised starts that have moved, without any request.

    It costs about as much as a scheduling pass, in a thread. It is skipped while no event happened and no promised
    start has passed, since then no promise can have moved.
    """
    used = 0.0
    try:
        async with engine.prediction_lock:
            if _may_have_moved(engine):
                fresh = await _new_predictor(engine.host, [])
                used = await _in_thread(engine, lambda: _follow(engine, fresh))
                engine.predictor = fresh
                engine.host.note_faults(fresh.faults)
            await _save_promises(engine)
    # In any case: otherwise one failed check would be the last.
    finally:
        _schedule_check(engine, Millis(max(WATCH_MS, int(1000 * WATCH_SHARE * used))))


def _follow(engine: Engine, fresh: StartPredictor) -> float:
    """Compare the promises with a fresh prediction, note the moves, and return the processor time in seconds."""
    begun = time.thread_time()
    engine.bounds.follow(fresh.basis)
    return time.thread_time() - begun


def _may_have_moved(engine: Engine) -> bool:
    known, host = engine.predictor, engine.host
    if known is None or known.snapshot.version != host.machine.state.seq:
        return True
    return any(bound is not None and bound < host.clock.now() for bound in engine.bounds.promised.values())


async def _save_promises(engine: Engine) -> None:
    """Store the promises that are new, have moved or are over. After a store error the next check tries again."""
    changed, over = engine.bounds.unsaved()
    if changed or over:
        with suppress(StoreError):
            await engine.host.journal.save_promised_starts(changed, over)
            # Only now: what could not be stored stays unsaved, and is tried again.
            engine.bounds.saved(changed, over)


async def predict(engine: Engine, context: RequestContext, args: messages.PredictArgs) -> list[Outlook]:
    """Return when these jobs would start if they were submitted now in this order.

    Raises `RequestRefused` if their submission would be refused.
    """
    if len(args.specs) > MOST_SPECS:
        message = f"One request predicts at most {MOST_SPECS} jobs; name fewer jobs."
        raise RequestRefused(Refusal(RefusalKind.INVALID, message))
    host = engine.host
    jobs = hypothetical_jobs(host.machine, args.specs, context.actor, host.clock.now())
    if isinstance(jobs, Refusal):
        raise RequestRefused(jobs)
    async with engine.prediction_lock:
        predictor = await _new_predictor(host, jobs)
        answers = await _outlooks(engine, context.actor, predictor, first_of_each(jobs))
    return [replace(answer, job=JobId(0)) for answer in answers]


async def _current_predictor(engine: Engine) -> StartPredictor:
    """Return the last request's predictor if nothing has happened since, or else a new one."""
    host, known = engine.host, engine.predictor
    if known is not None and _is_current(known, host):
        return known
    fresh = await _new_predictor(host, [])
    await _in_thread(engine, lambda: engine.bounds.follow(fresh.basis))
    engine.predictor = fresh
    return fresh


def _is_current(known: StartPredictor, host: Host) -> bool:
    same = known.snapshot.version == host.machine.state.seq
    return same and host.clock.now() - known.snapshot.now < SAME_MOMENT_MS


async def _new_predictor(host: Host, more: Sequence[Job]) -> StartPredictor:
    """Make a predictor for the present state, with the jobs `more` added at the end of the queue."""
    history = await _history(host)
    policy = replace(host.settings.policy, backfill=host.machine.state.cluster.backfill)
    snapshot = _with_queued(host.machine.peek(host.clock.now()).frozen(), more)
    return StartPredictor(snapshot, host.plan, policy, history)


def _with_queued(snapshot: Snapshot, more: Sequence[Job]) -> Snapshot:
    """Queue the jobs `more` too."""
    if not more:
        return snapshot
    return replace(snapshot, queue=(*snapshot.queue, *more), jobs={**snapshot.jobs, **{job.id: job for job in more}})


async def _outlooks(
    engine: Engine,
    actor: Actor,
    predictor: StartPredictor,
    jobs: Sequence[Job],
    with_moves: WithMoves | None = None,
) -> list[Outlook]:
    """Return the explanation and forecast of each job; for a single job also what-ifs, which are expensive."""
    machine = engine.host.machine

    def without_changes() -> list[Outlook]:
        predictor.plan  # noqa: B018 - computed here in the thread, since `changes` below needs it in the event loop
        return [outlook(predictor, job, (), with_moves) for job in jobs]

    outlooks = await _in_thread(engine, without_changes)
    # A job that would start now needs no advice on how to start sooner.
    if len(jobs) == 1 and not outlooks[0].forecast.now:
        changed: list[Changed] = what_ifs.changes(machine, jobs[0], actor, predictor)
        outlooks = await _in_thread(engine, lambda: [outlook(predictor, jobs[0], changed, with_moves)])
    engine.host.note_faults(predictor.faults)
    return [shown_outlook(actor, each, predictor.snapshot.jobs) for each in outlooks]


def _with_moves(engine: Engine, predictor: StartPredictor) -> WithMoves:
    """Return the function that adds to the predictor's forecasts how they have moved since users were shown others."""

    def add(job: JobId, forecast: Forecast) -> Forecast:
        likely_moves = engine.likely_starts.show(job, forecast, predictor.basis)
        return replace(forecast, moves=engine.bounds.of(job), likely_moves=likely_moves)

    return add


async def _in_thread(engine: Engine, work: Callable[[], T]) -> T:
    """Run `work` in a thread, alone among predictions.

    The thread continues when its request is cancelled. The next request waits for it (`predictor_lock`), since both may
    use the same predictor; a cancelled request that has not begun does nothing.
    """
    cancelled = False

    def work_alone() -> T | None:
        # Taken in the thread, since the thread of a cancelled request may still be computing.
        with engine.predictor_lock, yield_to_event_loop():
            return None if cancelled else work()

    try:
        return cast("T", await asyncio.to_thread(work_alone))
    except asyncio.CancelledError:
        cancelled = True
        raise


async def _history(host: Host) -> History:
    """Return a copy of the past run times. They are read from accounting once; then `Host` adds each event to them."""
    if host.history is None:
        # Live jobs take precedence: their run times are more recent than those of accounting.
        ended = await host.journal.ended_jobs(limit=REMEMBERED_JOBS)
        host.history = history_of(({job.id: job for job in ended} | dict(host.machine.state.jobs)).values())
    return host.history.copy()
