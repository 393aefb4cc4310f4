"""Decides the events that follow from the passing of time: the ends of limits, holds, grace periods, reservations and
waits. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.timers import (
    early_signal_at,
    given_up_at,
    latest_end,
    next_decay,
    next_due,
    recalled_until,
)
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.events import EventBody, HoldEndCause
from cockpit.model.ids import Millis
from cockpit.model.job import Job, JobState
from cockpit.model.resilience import AfterWait
from cockpit.sched.priority.usage import reset_due

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine


def due(machine: Machine, now: Millis) -> list[EventBody]:
    """Return the events that are due at `now`: those of jobs in order of their moments, then those of
    reservations, exclusions and usage."""
    decided: list[EventBody] = [_due(machine.state.jobs[job], now) for job in machine.timers.due(now)]
    decided += [
        events.ReservationEnded(name) for name, each in machine.state.reservations.items() if each.end_at <= now
    ]
    decided += [
        events.NodeReadmitted(job, node)
        for node, each in machine.state.failed_prechecks.items()
        for job, until in each.items()
        if until <= now
    ]
    return [*decided, *_decay_due(machine, now)]


def _decay_due(machine: Machine, now: Millis) -> list[EventBody]:
    state = machine.state
    at = next_decay(state, busy=machine.busy)
    if at is None or at > now:
        return []
    return [events.UsageDecayed(reset_due(state.cluster.priority.usage_reset, state.usage_reset_at, now))]


def _due(job: Job, now: Millis) -> EventBody:
    """Return the event that is due for this job at `now`; there is one, since its moment has come."""
    assert (next_due(job) or now) <= now
    # The tests come in the order of `timers.next_due`, which has found the moment.
    if job.state is JobState.QUEUED:
        return _due_of_queued(job, now)
    if job.held_until is not None:
        return events.HoldEnded(job.id, HoldEndCause.EXPIRED)
    if job.ended:
        return events.JobArchived(job.id)
    if job.ending is not None:
        return events.GraceEnded(job.id)
    return recalled(job) or given_up(job) if given_up_at(job) is not None else _due_of_running(job, now)


def _due_of_queued(job: Job, now: Millis) -> EventBody:
    # First: a job that misses its deadline must not be left waiting by one of the others.
    if too_late(job, now):
        return missed_deadline(job)
    if job.waits_until is not None and job.waits_until <= now:
        fails = job.spec.elastic is not None and job.spec.elastic.after_wait is AfterWait.FAIL
        return events.JobEnded(job.id, JobState.ERROR, EndCause.BELOW_MIN) if fails else events.WaitEnded(job.id)
    # Of a queued job's moments only its begin time is left.
    return events.AgeBegan(job.id)


def _due_of_running(job: Job, now: Millis) -> EventBody:
    """Return the due event of a running job: the end of its recalled workers' grace period, the early signal for its
    batch script, or the end by its time limit."""
    if (kill_at := recalled_until(job)) is not None and kill_at <= now:
        return events.GraceEnded(job.id)
    # An engine that was down may look only after the limit, when a warning before it makes no sense any more.
    if early_signal_at(job) is not None and (latest_end(job) or now) > now:
        return events.JobWarned(job.id)
    return events.EndingBegan(job.id, EndCause.TIME_LIMIT, Millis(now + job.spec.end_grace_seconds * 1000))


def missed_deadline(job: Job) -> events.JobEnded:
    """Return the event that ends a queued job which can no longer end by its deadline.

    Its state is `error`: as in Slurm, such a job has failed, so that dependencies of kind `afternotok` on it are met.
    """
    return events.JobEnded(job.id, JobState.ERROR, EndCause.DEADLINE)


def too_late(job: Job, now: Millis) -> bool:
    """Tell whether a queued job can no longer end by its deadline."""
    latest = job.spec.latest_start_at
    return latest is not None and now > latest


def recalled(job: Job) -> events.RemotePartChanged | None:
    """Return the event that asks the next member over a link for a part back that it may have started; None: all were
    asked. Of a gang the parts that run are asked for, too: it runs as a whole or not at all.

    The placement is given up only once these members have answered (`fleet.courier`).
    """
    attempt = job.attempt
    assert attempt is not None
    part = next((each for each in attempt.remote if each.is_released and not each.is_recalled), None)
    return None if part is None else events.RemotePartChanged(job.id, attempt.number, replace(part, is_recalled=True))


def given_up(job: Job) -> events.BindingGivenUp:
    """Return the event that ends a placement which a cluster could not start for all of its toleration (`purgeMode:
    Immediately`). The job is scheduled again, in other clusters if possible. With `suspension.scheduling` it is revoked
    instead: it returns to its queue behind the jobs that wait there."""
    attempt = job.attempt
    assert attempt is not None
    # The clusters that failed come last in the job's list, so that the next pass tries the others first.
    others = [name for name in job.partitions if name not in {*attempt.awaits, attempt.partition}]
    failed = [name for name in job.partitions if name not in others]
    return events.BindingGivenUp(
        job.id,
        attempt.number,
        attempt.awaits,
        (*others, *failed),
        revoked=job.spec.suspension.scheduling,
    )
