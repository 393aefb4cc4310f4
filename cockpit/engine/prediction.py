"""Answers a user's question when a job will start, and what it could ask for to start sooner.

1. `hypothetical_jobs`: job specifications become queued jobs, by the same code as a submission, but on a copy of the
   state.
2. `changes`: what a job could ask for instead becomes jobs too, by the same code as an edit.
3. `outlook`: the scheduler predicts the start of the job and of its changed versions (`StartPredictor`).
4. `shown_outlook`: what the user may not see of other users' jobs is left out.

Step 3 may take seconds, so it reads the frozen snapshot of its predictor, never the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import is_owner
from cockpit.engine.apply.events import apply
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import edit, submit
from cockpit.engine.views.redaction import HIDDEN_JOB, shown_explanation, shown_to
from cockpit.model.events import EventRecord, JobEnded, JobSubmitted
from cockpit.model.forecast import Condition, ExpectedStart, Forecast, HoldingJob, Outlook, WhatIf
from cockpit.model.ids import Millis
from cockpit.model.job import OCCUPYING
from cockpit.model.reasons import DependencyNever, Explanation, NoEligibleNode, NotEvaluated, WaitsForJob
from cockpit.model.refusal import Refusal
from cockpit.model.spec import NO_LIMIT_SECONDS
from cockpit.sched.explain import NEVER, reasons_of
from cockpit.sched.fleet.by_member import member_outlooks
from cockpit.sched.forecast.named_bounds import named_bounds
from cockpit.sched.forecast.whatif import candidates
from cockpit.sched.rules.counters import holders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cockpit.engine.access import Actor
    from cockpit.engine.machine import Machine
    from cockpit.engine.views.redaction import Shown
    from cockpit.model.events import EventBody
    from cockpit.model.fleetoutlook import MemberOutlook
    from cockpit.model.forecast import MoveCause, StartMove
    from cockpit.model.ids import JobId, NodeName
    from cockpit.model.job import Job
    from cockpit.model.node import Node
    from cockpit.model.reasons import Reason
    from cockpit.model.spec import JobSpec
    from cockpit.sched.forecast.history import History
    from cockpit.sched.forecast.predict import StartPredictor
    from cockpit.sched.forecast.whatif import Candidate

MOST_HOLDERS = 10
"""The most jobs that an answer names as holders of the resources that a job waits for."""
Changed = tuple["Candidate", "Job"]
"""A change of a job's specification, and the job that it would lead to."""
WithMoves = Callable[["JobId", Forecast], Forecast]
"""A function that adds to a forecast how the job's start has moved."""


def remember(history: History, body: EventBody, jobs: Mapping[JobId, Job]) -> None:
    """Add a submitted or ended job to the history of runtimes. `jobs`: those of the state after the event."""
    if isinstance(body, JobSubmitted):
        history.submitted(jobs[body.job])
    elif isinstance(body, JobEnded):
        history.ended(jobs[body.job])


def hypothetical_jobs(machine: Machine, specs: Sequence[JobSpec], actor: Actor, now: Millis) -> list[Job] | Refusal:
    """Return the queued jobs that submitting `specs` would create (one per task of an array), or the refusal."""
    bodies = submit(machine, specs, actor, now=now)
    return bodies if isinstance(bodies, Refusal) else list(_applied(machine, bodies, {}, now).values())


def first_of_each(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs without the tasks of arrays, except the first task of each."""
    return [job for job in jobs if job.array is None or job.array.array == job.id]


def changes(machine: Machine, job: Job, actor: Actor, predictor: StartPredictor) -> list[Changed]:
    """Return the changes of a queued or not yet submitted job that might start it sooner and that the cluster accepts.

    1. The bounds that the job's waiting reasons name, each moved as far as the reason says.
    2. The general candidates (fewer nodes, a shorter time limit …) that are not among the former.
    3. Each is submitted or edited on a copy of the state; a refused one is dropped.
    """
    now, reservation = predictor.snapshot.now, predictor.plan.reservation
    # The gap before another job's reservation suggests a shorter time limit; before its own there is none.
    reserved_at = reservation.reserved_at if reservation is not None and reservation.job != job.id else None
    accepted = []
    named = [*named_bounds(job.spec, reasons_of(predictor.plan, job), now)]
    known = {(each.change, each.after) for each in named}
    general = candidates(predictor.snapshot, job, reserved_at)
    others = [each for each in general if (each.change, each.after) not in known]
    for each in (*named, *others):
        # A what-if must be one that the user could really ask for, so the same code as for a request judges it.
        if job.id in machine.queue:
            bodies = edit(machine, job, each.spec, actor=actor, now=now)
        else:
            bodies = submit(machine, [each.spec], actor, now=now)
        if not isinstance(bodies, Refusal):
            # An edit applies to the job as it is; a submission makes a new one in an empty state.
            before = {job.id: job} if job.id in machine.queue else {}
            made = next(iter(_applied(machine, bodies, before, now).values()))
            # The predictor's plan knows the job by its own id, not by that of the trial submission.
            accepted.append((each, replace(made, id=job.id)))
    return accepted


def outlook(
    predictor: StartPredictor, job: Job, changed: Iterable[Changed], with_moves: WithMoves | None = None
) -> Outlook:
    """Return everything that can be predicted of one job of the predictor's snapshot.

    `changed`: the changes of `changes`, each predicted too. `with_moves`: adds how its
    start has moved; None for a job that is not submitted.
    An exception on the way becomes the outlook's `failure`, so that the answers for other jobs are not lost.
    """
    try:
        return _outlook(predictor, job, changed, with_moves)
    except Exception as error:  # noqa: BLE001 - a failed prediction of one job must not cost the others their answers
        # The first defect is the cause; later ones may only follow from it.
        predictor.faults.setdefault(job.id, error)
        failure = predictor.failure(job.id)
        return Outlook(
            job=job.id,
            name=job.spec.name,
            shown_id=job.shown_id,
            position=1,
            explanation=Explanation(job=job.id, reason=NotEvaluated(failure), position=1, ahead=()),
            forecast=Forecast(),
            failure=failure,
        )


def _outlook(predictor: StartPredictor, job: Job, changed: Iterable[Changed], with_moves: WithMoves | None) -> Outlook:
    """Return the outlook, as `outlook` does, but raise what goes wrong."""
    # A job that starts now needs no what-if: nothing could be sooner.
    explanation = predictor.explanation(job.id)
    forecast = predictor.forecast(job.id)
    if with_moves is not None:
        forecast = with_moves(job.id, forecast)
    # A generator: the what-ifs are predicted one by one, each until it is known to be later than the likely start.
    # Those that a reason names are predicted to the end, since the user is shown them in any case.
    tried = (
        WhatIf(
            *(each.change, each.before, each.after, each.spec),
            predictor.if_instead(other, None if each.named else forecast.likely_at),
            each.named,
        )
        for each, other in ([] if forecast.now else changed)
    )
    held = holders(predictor.snapshot, job, explanation.reason) if explanation is not None else ()
    # Every user sees the number of holders; `shown_outlook` leaves out those that the user may not see.
    return Outlook(
        holders=held,
        holders_in_all=len(held),
        unavailable=unavailable(predictor.snapshot.nodes, explanation.reason if explanation is not None else None),
        condition=_condition(predictor.snapshot.jobs, explanation),
        job=job.id,
        name=job.spec.name,
        shown_id=job.shown_id,
        position=explanation.position if explanation is not None else 1,
        explanation=explanation,
        forecast=forecast,
        what_ifs=tuple(_worth_showing(tried)),
        members=() if forecast.now or not changed else tuple(_on_members(predictor, job)),
        failure=predictor.failure(job.id),
    )


def _on_members(predictor: StartPredictor, job: Job) -> Iterator[MemberOutlook]:
    """Yield what each member of a fleet has for the job, with the start that it would have on this member alone."""
    for each in member_outlooks(predictor.plan.index, predictor.snapshot, job):
        alone = predictor.if_instead(replace(job, partitions=(each.cluster,)), None)
        yield replace(each, starts_now=alone.now, likely_at=alone.likely_at)


def shown_outlook(actor: Actor, outlook: Outlook, jobs: Mapping[JobId, Job]) -> Outlook:
    """Return the outlook without the jobs that the actor may not see, and with the resources of the others."""
    shown = shown_to(actor, jobs)
    # A job that is not submitted yet is the actor's own.
    own = outlook.job not in jobs or is_owner(actor, jobs[outlook.job])
    explanation = outlook.explanation and shown_explanation(shown, outlook.explanation, own=own)
    forecast = _shown_forecast(shown, outlook.forecast)
    held = tuple(job for job in outlook.holders if shown(job) != HIDDEN_JOB)[:MOST_HOLDERS]
    # What is gathered here has been redacted above: hidden jobs have the id 0, which no job of `jobs` has.
    causes = [getattr(one, "job", None) for move in (*forecast.moves, *forecast.likely_moves) for one in move.causes]
    named = [*(explanation.ahead if explanation is not None else ()), *(each.job for each in forecast.after), *held]
    named += [job for job in causes if job]
    seen = outlook.condition is not None and (own or shown(outlook.condition.job) != HIDDEN_JOB)
    return replace(
        outlook,
        holders=held,
        condition=outlook.condition if seen else None,
        explanation=explanation,
        forecast=forecast,
        what_ifs=tuple(replace(each, forecast=replace(each.forecast, after=())) for each in outlook.what_ifs),
        named=tuple(_holding(jobs[job]) for job in dict.fromkeys(named) if job in jobs),
    )


def unavailable(nodes: Mapping[NodeName, Node], reason: Reason | None) -> tuple[tuple[NodeName, str], ...]:
    """Return the nodes out of service that the reason names, each with why it is out."""
    named = reason.out_of_service if isinstance(reason, NoEligibleNode) else ()
    return tuple((name, nodes[name].why_out) for name in named if name in nodes)


def condition_of(job: Job) -> Condition:
    """Return what a user needs to know of a job that another depends on: its state, and when its time limit ends it."""
    limit, attempt = job.spec.time_limit_seconds, job.attempt
    has_end = job.state in OCCUPYING and limit < NO_LIMIT_SECONDS
    ends_by = attempt.counts_from + 1000 * limit if has_end and attempt is not None else None
    return Condition(job.id, job.spec.name, job.state, Millis(ends_by) if ends_by is not None else None, job.shown_id)


def _condition(jobs: Mapping[JobId, Job], explanation: Explanation | None) -> Condition | None:
    """Return the job on which the explained job depends; None: it waits for another reason."""
    if explanation is None or not isinstance(explanation.reason, WaitsForJob | DependencyNever):
        return None
    awaited = jobs.get(explanation.reason.job)
    return condition_of(awaited) if awaited is not None else None


def expected(
    actor: Actor, predictor: StartPredictor, jobs: Iterable[JobId], with_moves: WithMoves
) -> Iterator[ExpectedStart]:
    """Yield the predicted start, or the failure of the prediction, of each of these queued jobs that has either.

    `actor`: the user who asks; jobs that the user may not see are left out of the forecasts.
    """
    shown = shown_to(actor, predictor.snapshot.jobs)
    for job in jobs:
        forecast = predictor.start(job)
        if forecast.likely_at is not None:
            complete = _shown_forecast(shown, with_moves(job, forecast))
            yield ExpectedStart(job, forecast.likely_at, complete)
        elif failure := predictor.failure(job):
            yield ExpectedStart(job, None, failure=failure)


def _shown_forecast(shown: Shown, forecast: Forecast) -> Forecast:
    """Return the forecast with the jobs that the user may not see replaced by a placeholder."""
    return replace(
        forecast,
        after=tuple(replace(each, job=shown(each.job)) for each in forecast.after),
        moves=_shown_moves(shown, forecast.moves),
        likely_moves=_shown_moves(shown, forecast.likely_moves),
    )


def _shown_moves(shown: Shown, moves: Iterable[StartMove]) -> tuple[StartMove, ...]:
    return tuple(replace(each, causes=tuple(_shown_cause(shown, one) for one in each.causes)) for each in moves)


def _shown_cause(shown: Shown, cause: MoveCause) -> MoveCause:
    job: JobId | None = getattr(cause, "job", None)
    if job is None:
        return cause
    return replace(cause, job=shown(job) if job > 0 else HIDDEN_JOB)  # below 0: what another cluster's jobs hold here


def _worth_showing(tried: Iterable[WhatIf]) -> Iterator[WhatIf]:
    """Select the what-ifs that are worth showing, the soonest start first.

    These are all that a waiting reason names, and of each kind of change the one that starts soonest. `tried` has the
    smallest change of each kind first, so that of equally soon ones the smallest wins.
    """
    best: dict[str, WhatIf] = {}
    selected: list[WhatIf] = []
    for each in tried:
        if each.named:
            selected.append(each)
        if each.forecast.likely_at is not None and (
            each.change not in best or _starts(each) < _starts(best[each.change])
        ):
            best[each.change] = each
    selected += (each for each in best.values() if not each.named)
    yield from sorted(selected, key=_starts)  # stable: of equally soon ones those that a reason names come first


def _starts(each: WhatIf) -> int:
    """Return when the changed job would start, in milliseconds UTC; `NEVER` if that is unknown."""
    at = each.forecast.likely_at
    return at if at is not None else NEVER


def _holding(job: Job) -> HoldingJob:
    """Return the resources that a running job occupies, or that any other job asks for."""
    if job.state in OCCUPYING and job.attempt is not None:
        held, runs = job.attempt.placement, True
        nodes = len(held)
        sums = [
            sum(each) for each in zip(*((part.cpus, part.memory_mib, part.card_milli) for part in held), strict=True)
        ]
    else:
        # A waiting job asks for its first alternative, as its row says.
        nodes, per_node, spread, runs = job.spec.nodes, job.spec.specs[0], job.spec.spread, False
        sums = [nodes * each for each in (per_node.cpus, per_node.memory_mib, per_node.card_milli)]
        if spread is not None:
            tasks = (spread.each.cpus, spread.each.memory_mib, spread.each.card_milli)
            sums = [max(amount, spread.tasks * each) for amount, each in zip(sums, tasks, strict=True)]
    cpus, memory_mib, card_milli = sums
    return HoldingJob(
        job=job.id,
        name=job.spec.name,
        user=job.submitter.name,
        running=runs,
        nodes=nodes,
        cpus=cpus,
        memory_mib=memory_mib,
        card_milli=card_milli,
        shown_id=job.shown_id,
    )


def _applied(machine: Machine, bodies: Iterable[EventBody], jobs: Mapping[JobId, Job], now: Millis) -> dict[JobId, Job]:
    """Apply the events to a copy of the state that has only these jobs, and return the jobs afterwards."""
    # Only what the rules of these events read: to copy the state of a hundred thousand jobs would take too long.
    known = machine.state
    scratch = ClusterState(jobs=dict(jobs), cluster=known.cluster, accounts=known.accounts)
    for seq, body in enumerate(bodies, 1):
        apply(scratch, EventRecord(seq=seq, at=now, actor="", origin="", body=body))
    return scratch.jobs
