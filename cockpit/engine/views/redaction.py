"""What an actor is told of others' jobs: where one is named that the actor may not see, there stands `HIDDEN_JOB`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from cockpit.engine.access import may_see
from cockpit.model import events, reasons
from cockpit.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.engine.access import Actor
    from cockpit.model.attempt import Suspension
    from cockpit.model.job import Job
    from cockpit.model.reasons import Explanation, Reason
    from cockpit.model.spec import Dependency, JobSpec

HIDDEN_JOB = JobId(0)
"""Stands for a job that the asker may not see."""

Shown = Callable[[JobId], JobId]
"""The job as it is told: itself, or `HIDDEN_JOB`."""

Body = TypeVar("Body", bound=events.EventBody)


def shown_to(actor: Actor, jobs: Mapping[JobId, Job]) -> Shown:
    """`jobs`: those that are known; of others nothing is told."""

    def shown(job: JobId) -> JobId:
        found = jobs.get(job)
        return job if actor.admin or (found is not None and may_see(actor, found)) else HIDDEN_JOB

    return shown


def shown_reason(shown: Shown, reason: Reason | None, *, own: bool = True) -> Reason | None:
    """The same value where it names no other job, or none that is hidden. `own`: of the actor's own job, which waits
    for those that the actor has named."""
    match reason:
        case reasons.MakingRoom() | reasons.StandsStill() if reason.jobs:
            told = tuple(map(shown, reason.jobs))
            return replace(reason, jobs=told) if told != reason.jobs else reason
        case reasons.WouldDelay() | reasons.BehindHead():
            ahead = shown(reason.ahead)
            return replace(reason, ahead=ahead) if ahead != reason.ahead else reason
        case reasons.WaitsForJob() | reasons.DependencyNever() if reason.job and not own:
            job = shown(reason.job)
            return replace(reason, job=job) if job != reason.job else reason
        case _:
            return reason


def shown_explanation(shown: Shown, explanation: Explanation, *, own: bool = True) -> Explanation:
    """It names only jobs that may be seen; the place in the queue counts all."""
    ahead = tuple(job for job in explanation.ahead if shown(job) != HIDDEN_JOB)
    reason = shown_reason(shown, explanation.reason, own=own) or explanation.reason
    return replace(explanation, reason=reason, ahead=ahead)


def shown_job(shown: Shown, job: Job, *, own: bool) -> Job:
    """A job that the actor may see, with what it says of others."""
    ending = job.ending
    named = (lambda other: other) if own else shown
    return replace(
        job,
        spec=_spec(named, job.spec),
        waits_for=tuple(_condition(named, each) for each in job.waits_for),
        never=named(job.never) if job.never is not None else None,
        clears=tuple(map(shown, job.clears)),
        leaving=tuple(
            replace(each, for_job=shown(each.for_job)) if each.for_job is not None else each for each in job.leaving
        ),
        suspension=_suspension(shown, job.suspension) if job.suspension is not None else None,
        ending=replace(ending, for_job=shown(ending.for_job)) if ending and ending.for_job is not None else ending,
    )


def shown_body(shown: Shown, body: Body) -> Body:
    """An event of a job that the actor may see."""
    changes: dict[str, object] = {}
    match body:
        case events.JobSubmitted() | events.JobEdited() if body.spec.dependencies:
            changes = {"spec": _spec(shown, body.spec)}
        case events.DependencyMet():
            changes = {"dependency": _condition(shown, body.dependency)}
        case events.DependencyFailed():
            changes = {"dependency": _condition(shown, body.dependency), "because": shown(body.because)}
        case events.EndingBegan() | events.WorkersRecalled() if body.for_job is not None:
            changes = {"for_job": shown(body.for_job)}
        case events.RoomMade():
            changes = {"others": tuple(map(shown, body.others))}
        case events.JobSuspended():
            changes = {"suspension": _suspension(shown, body.suspension)}
    return replace(body, **changes) if changes else body


def jobs_named(body: events.EventBody) -> set[JobId]:
    """Every job that an event names, first of all whose it is."""
    found: set[JobId] = set()

    def note(job: JobId) -> JobId:
        found.add(job)
        return job

    shown_body(note, body)
    return found | ({body.job} if hasattr(body, "job") else set())


def _spec(shown: Shown, spec: JobSpec) -> JobSpec:
    return replace(spec, dependencies=tuple(_condition(shown, each) for each in spec.dependencies))


def _condition(shown: Shown, condition: Dependency) -> Dependency:
    return replace(condition, job=shown(condition.job)) if condition.job else condition


def _suspension(shown: Shown, suspension: Suspension) -> Suspension:
    return replace(suspension, for_jobs=tuple(map(shown, suspension.for_jobs)))
