"""Removes what a user may not see from reasons, explanations, jobs and events.

The ids of jobs that the user may not see become `HIDDEN_JOB`; secrets in the environment of other users' jobs become
`MASK`, also for administrators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from cockpit.engine.access import may_see
from cockpit.model import events, reasons
from cockpit.model.ids import JobId
from cockpit.model.masking import withheld_spec
from cockpit.model.pod_reasons import QueueWaits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.engine.access import Actor
    from cockpit.model.attempt import Suspension
    from cockpit.model.job import Job
    from cockpit.model.jobdetail import GrowthObstacle
    from cockpit.model.reasons import Explanation, Reason
    from cockpit.model.spec import Dependency, JobSpec

HIDDEN_JOB = JobId(0)
"""The placeholder for the id of a job that the user may not see."""

Shown = Callable[[JobId], JobId]
"""Returns a job's id, or `HIDDEN_JOB` if the user may not see the job."""

Body = TypeVar("Body", bound=events.EventBody)


def shown_to(actor: Actor, jobs: Mapping[JobId, Job]) -> Shown:
    """Return the function that hides jobs from the actor. Jobs that `jobs` does not have are hidden too."""

    def shown(job: JobId) -> JobId:
        record = jobs.get(job)
        return job if actor.admin or (record is not None and may_see(actor, record)) else HIDDEN_JOB

    return shown


def shown_reason(shown: Shown, reason: Reason | None, *, own: bool = True) -> Reason | None:
    """Return the reason with hidden jobs replaced; the same object if there are none.

    `own`: the reason is about the actor's own job, whose dependencies the actor has named and so may see.
    """
    match reason:
        case reasons.EvictionPending() | reasons.SuspendedReason() | QueueWaits() if reason.jobs:
            visible = tuple(map(shown, reason.jobs))
            return replace(reason, jobs=visible) if visible != reason.jobs else reason
        case reasons.WouldDelay() | reasons.BehindHead():
            ahead = shown(reason.ahead)
            return replace(reason, ahead=ahead) if ahead != reason.ahead else reason
        case reasons.QuotaWaits() if reason.after is not None:
            after = shown(reason.after)
            return replace(reason, after=after) if after != reason.after else reason
        # The id 0 is a singleton's dependency, which names no job.
        case reasons.WaitsForJob() | reasons.DependencyNever() if reason.job and not own:
            job = shown(reason.job)
            return replace(reason, job=job) if job != reason.job else reason
        case _:
            return reason


def shown_obstacle(shown: Shown, obstacle: GrowthObstacle, *, own: bool) -> GrowthObstacle:
    """Return what keeps a job from growing without the ids of hidden jobs."""
    return replace(
        obstacle,
        limit=shown_reason(shown, obstacle.limit, own=own),
        reserved_for=tuple(map(shown, obstacle.reserved_for)),
        held_by=tuple(map(shown, obstacle.held_by)),
    )


def shown_explanation(shown: Shown, explanation: Explanation, *, own: bool = True) -> Explanation:
    """Return the explanation without hidden jobs. The position in the queue still counts them."""
    ahead = tuple(job for job in explanation.ahead if shown(job) != HIDDEN_JOB)
    reason = shown_reason(shown, explanation.reason, own=own) or explanation.reason
    return replace(explanation, reason=reason, ahead=ahead)


def shown_job(shown: Shown, job: Job, *, own: bool) -> Job:
    """Return a job that the actor may see, without the ids of hidden jobs. `own`: it is the actor's own job; of others
    the secrets are left out too."""
    ending = job.ending
    # Owners have named these jobs themselves; jobs that took its resources were chosen by the scheduler.
    named = (lambda other: other) if own else shown
    return replace(
        job,
        spec=_spec(named, job.spec if own else withheld_spec(job.spec)),
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
    """Return an event of a job that the actor may see, with the ids of hidden jobs replaced."""
    # Each event that can name another job needs a case; those without one are returned as they are.
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
        case events.EvictionsDecided():
            changes = {"others": tuple(map(shown, body.others))}
        case events.JobSuspended():
            changes = {"suspension": _suspension(shown, body.suspension)}
    return replace(body, **changes) if changes else body


def jobs_named(body: events.EventBody) -> set[JobId]:
    """Return the ids of all jobs that an event names: its own job and others."""
    named: set[JobId] = set()

    def note(job: JobId) -> JobId:
        named.add(job)
        return job

    shown_body(note, body)  # calls `note` with each id that it might replace
    return named | ({body.job} if hasattr(body, "job") else set())


def _spec(shown: Shown, spec: JobSpec) -> JobSpec:
    return replace(spec, dependencies=tuple(_condition(shown, each) for each in spec.dependencies))


def _condition(shown: Shown, condition: Dependency) -> Dependency:
    return replace(condition, job=shown(condition.job)) if condition.job else condition


def _suspension(shown: Shown, suspension: Suspension) -> Suspension:
    return replace(suspension, for_jobs=tuple(map(shown, suspension.for_jobs)))
