"""When jobs will start, told to somebody: what is asked for becomes a job as a submission or an edit would make it,
the scheduler's own plan says when it starts, and what the asker may not see is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import is_owner
from cockpit.engine.apply.events import apply
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import edit, submit
from cockpit.engine.views.redaction import HIDDEN_JOB, shown_explanation, shown_to
from cockpit.model.events import EventRecord, JobEnded, JobSubmitted
from cockpit.model.forecast import Condition, Expected, Forecast, Holding, Outlook, WhatIf
from cockpit.model.ids import Millis
from cockpit.model.job import OCCUPYING
from cockpit.model.reasons import DependencyNever, Explanation, NoEligibleNode, NotEvaluated, WaitsForJob
from cockpit.model.refusal import Refusal
from cockpit.sched.explain import NEVER, reasons_of
from cockpit.sched.forecast.named_bounds import named_bounds
from cockpit.sched.forecast.whatif import candidates
from cockpit.sched.rules.holders import holders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cockpit.engine.access import Actor
    from cockpit.engine.machine import Machine
    from cockpit.engine.views.redaction import Shown
    from cockpit.model.events import EventBody
    from cockpit.model.forecast import BoundMove, MoveCause
    from cockpit.model.ids import JobId, NodeName
    from cockpit.model.job import Job
    from cockpit.model.node import Node
    from cockpit.model.reasons import Reason
    from cockpit.model.spec import JobSpec
    from cockpit.sched.forecast.history import History
    from cockpit.sched.forecast.moves import BoundHistory
    from cockpit.sched.forecast.predict import StartPredictor
    from cockpit.sched.forecast.whatif import Candidate

MOST_HOLDERS = 10
Changed = tuple["Candidate", "Job"]
"""What a job could ask for, and what the cluster would make of it."""


def remember(history: History, body: EventBody, jobs: Mapping[JobId, Job]) -> None:
    """Tell the history of an event that the state `jobs` is of has just taken over."""
    if isinstance(body, JobSubmitted):
        history.submitted(jobs[body.job])
    elif isinstance(body, JobEnded):
        history.ended(jobs[body.job])


def would_be(machine: Machine, specs: Sequence[JobSpec], actor: Actor, now: Millis) -> list[Job] | Refusal:
    """The queued jobs that submitting `specs` would make, an array's tasks each; or why it would be refused."""
    bodies = submit(machine, specs, actor, now=now)
    return bodies if isinstance(bodies, Refusal) else list(_applied(machine, bodies, {}, now).values())


def first_of_each(jobs: Iterable[Job]) -> list[Job]:
    """Without the tasks of an array behind its first."""
    return [job for job in jobs if job.array is None or job.array.array == job.id]


def changes(machine: Machine, job: Job, actor: Actor, foresight: StartPredictor) -> list[Changed]:
    """What a queued job, or one that nobody has submitted, could ask for instead and the cluster would accept."""
    now, reserved = foresight.snapshot.now, foresight.plan.reservation
    reserved_at = reserved.reserved_at if reserved is not None and reserved.job != job.id else None
    found = []
    named = [*named_bounds(job.spec, reasons_of(foresight.plan, job), now)]
    known = {(each.change, each.after) for each in named}
    others = [
        each for each in candidates(foresight.snapshot, job, reserved_at) if (each.change, each.after) not in known
    ]
    for each in (*named, *others):
        if job.id in machine.queue:
            bodies = edit(machine, job, each.spec, actor=actor, now=now)
        else:
            bodies = submit(machine, [each.spec], actor, now=now)
        if not isinstance(bodies, Refusal):
            before = {job.id: job} if job.id in machine.queue else {}
            made = next(iter(_applied(machine, bodies, before, now).values()))
            found.append((each, replace(made, id=job.id)))
    return found


def outlook(
    foresight: StartPredictor, job: Job, changed: Iterable[Changed], moves: tuple[BoundMove, ...] = ()
) -> Outlook:
    """All that can be said of one job of the foresight's snapshot; `moves`: of its latest start.

    A defect met on the way is reported in its stead.
    """
    try:
        return _outlook(foresight, job, changed, moves)
    except Exception as error:  # noqa: BLE001 - of several jobs asked about, the others have their answers
        foresight.faults.setdefault(job.id, error)
        failure = foresight.failure(job.id)
        return Outlook(
            job=job.id,
            name=job.spec.name,
            position=1,
            explanation=Explanation(job=job.id, reason=NotEvaluated(failure), position=1, ahead=()),
            forecast=Forecast(),
            failure=failure,
        )


def _outlook(foresight: StartPredictor, job: Job, changed: Iterable[Changed], moves: tuple[BoundMove, ...]) -> Outlook:
    explanation = foresight.explanation(job.id)
    forecast = replace(foresight.forecast(job.id), moves=moves)
    tried = (
        WhatIf(
            *(each.change, each.before, each.after, each.spec),
            foresight.if_instead(other, None if each.named else forecast.likely_at),
            each.named,
        )
        for each, other in ([] if forecast.now else changed)
    )
    held = holders(foresight.snapshot, job, explanation.reason) if explanation is not None else ()
    return Outlook(
        holders=held,
        holders_in_all=len(held),
        unavailable=unavailable(foresight.snapshot.nodes, explanation.reason if explanation is not None else None),
        condition=_condition(foresight.snapshot.jobs, explanation),
        job=job.id,
        name=job.spec.name,
        position=explanation.position if explanation is not None else 1,
        explanation=explanation,
        forecast=forecast,
        what_ifs=tuple(_worth_saying(tried)),
        failure=foresight.failure(job.id),
    )


def shown_outlook(actor: Actor, found: Outlook, jobs: Mapping[JobId, Job]) -> Outlook:
    """Without the jobs that the actor may not see; of the others, what they hold."""
    shown = shown_to(actor, jobs)
    own = found.job not in jobs or is_owner(actor, jobs[found.job])
    explanation = found.explanation and shown_explanation(shown, found.explanation, own=own)
    forecast = _shown_forecast(shown, found.forecast)
    held = tuple(job for job in found.holders if shown(job) != HIDDEN_JOB)[:MOST_HOLDERS]
    causes = [getattr(one, "job", None) for move in forecast.moves for one in move.causes]
    named = [*(explanation.ahead if explanation is not None else ()), *(each.job for each in forecast.after), *held]
    named += [job for job in causes if job]
    seen = found.condition is not None and (own or shown(found.condition.job) != HIDDEN_JOB)
    return replace(
        found,
        holders=held,
        condition=found.condition if seen else None,
        explanation=explanation,
        forecast=forecast,
        what_ifs=tuple(replace(each, forecast=replace(each.forecast, after=())) for each in found.what_ifs),
        named=tuple(_holding(jobs[job]) for job in dict.fromkeys(named) if job in jobs),
    )


def unavailable(nodes: Mapping[NodeName, Node], reason: Reason | None) -> tuple[tuple[NodeName, str], ...]:
    """The nodes out of service that the reason names, and why they are."""
    named = reason.out_of_service if isinstance(reason, NoEligibleNode) else ()
    return tuple((name, nodes[name].why_out) for name in named if name in nodes)


def condition_of(job: Job) -> Condition:
    """What a dependency on it has to wait for."""
    runs = job.attempt is not None and job.state in OCCUPYING
    ends_by = job.attempt.counts_from + 1000 * job.spec.time_limit_seconds if runs and job.attempt is not None else None
    return Condition(job.id, job.spec.name, job.state, Millis(ends_by) if ends_by is not None else None)


def _condition(jobs: Mapping[JobId, Job], explanation: Explanation | None) -> Condition | None:
    if explanation is None or not isinstance(explanation.reason, WaitsForJob | DependencyNever):
        return None
    awaited = jobs.get(explanation.reason.job)
    return condition_of(awaited) if awaited is not None else None


def expected(
    actor: Actor, foresight: StartPredictor, jobs: Iterable[JobId], history: BoundHistory
) -> Iterator[Expected]:
    """The starts of these queued jobs as the actor may see them, of those of which one is known, and the defects that
    kept others from being predicted."""
    shown = shown_to(actor, foresight.snapshot.jobs)
    for job in jobs:
        found = foresight.start(job)
        if found.likely_at is not None:
            whole = _shown_forecast(shown, replace(found, moves=history.of(job)))
            yield Expected(job, found.likely_at, whole)
        elif failure := foresight.failure(job):
            yield Expected(job, None, failure=failure)


def _shown_forecast(shown: Shown, forecast: Forecast) -> Forecast:
    return replace(
        forecast,
        after=tuple(replace(each, job=shown(each.job)) for each in forecast.after),
        moves=tuple(
            replace(each, causes=tuple(_shown_cause(shown, one) for one in each.causes)) for each in forecast.moves
        ),
    )


def _shown_cause(shown: Shown, cause: MoveCause) -> MoveCause:
    job: JobId | None = getattr(cause, "job", None)
    if job is None:
        return cause
    return replace(cause, job=shown(job) if job > 0 else HIDDEN_JOB)  # below 0: what another cluster's jobs hold here


def _worth_saying(tried: Iterable[WhatIf]) -> Iterator[WhatIf]:
    """Every bound that the reason names; and of each kind the one that starts soonest, of equally soon ones the least
    change. The soonest first, of equally soon ones those that the reason names."""
    best: dict[str, WhatIf] = {}
    told: list[WhatIf] = []
    for each in tried:
        if each.named:
            told.append(each)
        if each.forecast.likely_at is not None and (
            each.change not in best or _starts(each) < _starts(best[each.change])
        ):
            best[each.change] = each
    told += (each for each in best.values() if not each.named)
    yield from sorted(told, key=_starts)


def _starts(each: WhatIf) -> int:
    at = each.forecast.likely_at
    return at if at is not None else NEVER


def _holding(job: Job) -> Holding:
    if job.state in OCCUPYING and job.attempt is not None:
        held = job.attempt.placement
        sums = [
            sum(each) for each in zip(*((part.cpus, part.memory_mib, part.card_milli) for part in held), strict=True)
        ]
        return Holding(job.id, job.spec.name, job.submitter.name, True, len(held), *sums)
    nodes, asked, spread = job.spec.nodes, job.spec.specs[0], job.spec.spread
    sums = [nodes * each for each in (asked.cpus, asked.memory_mib, asked.card_milli)]
    if spread is not None:
        tasks = (spread.each.cpus, spread.each.memory_mib, spread.each.card_milli)
        sums = [max(amount, spread.tasks * each) for amount, each in zip(sums, tasks, strict=True)]
    return Holding(job.id, job.spec.name, job.submitter.name, False, nodes, *sums)


def _applied(machine: Machine, bodies: Iterable[EventBody], jobs: Mapping[JobId, Job], now: Millis) -> dict[JobId, Job]:
    """What the events make of these jobs, on a state of their own."""
    known = machine.state
    scratch = ClusterState(jobs=dict(jobs), cluster=known.cluster, accounts=known.accounts)
    for seq, body in enumerate(bodies, 1):
        apply(scratch, EventRecord(seq=seq, at=now, actor="", origin="", body=body))
    return scratch.jobs
