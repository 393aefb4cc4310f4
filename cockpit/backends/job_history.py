"""Records what happens to jobs by comparing each list with the one before it, for clusters that keep no
events of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cockpit.model import events
from cockpit.model.attempt import EndCause, Suspension
from cockpit.model.events import EventBody, EventRecord
from cockpit.model.ids import JobId, Millis, rest_id
from cockpit.model.job import ENDED, OCCUPYING, Job, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held, Waited
from cockpit.runtime.observed_history import ObservedHistory

JobOf = Callable[[JobId], Job]
Happened = tuple[Millis, EventBody]


class History:
    """The events and waiting times of jobs that were seen; `look` adds those of a new list."""

    def __init__(self, observed: ObservedHistory) -> None:
        self._observed = observed
        self._before: Mapping[JobId, JobRow] | None = None

    def look(self, rows: Mapping[JobId, JobRow], job_of: JobOf, now: Millis) -> None:
        """Record the changes since the previous list. Rows that have not changed must be the same objects as before."""
        before, self._before = self._before, rows
        known = before or {}
        # By identity, so ten thousand unchanged rows cost one pass of pointer comparisons.
        changed = [row for job, row in rows.items() if known.get(job) is not row]
        waiting = [(row.id, row.reason) for row in changed if row.state is JobState.QUEUED and row.reason is not None]
        # The first list has no predecessor: nothing in it can be said to have just happened.
        happened = (
            [] if before is None else [each for row in changed for each in _events_of_row(row, before, job_of, now)]
        )
        self._observed.note(waiting, happened, now)

    def waited(self, job: Job, now: Millis) -> tuple[Waited, ...]:
        return self._observed.waited(_ids(job), now)

    def of(self, job: Job) -> tuple[EventRecord, ...]:
        """Return the events of a job."""
        return tuple(self._observed.events(_ids(job)))

    def events(self, *, after: int, limit: int) -> list[EventRecord]:
        records = self._observed.events(after=after)
        return records[:limit] if after >= 0 else records[-limit:]

    def close(self) -> None:
        self._observed.close()


def _ids(job: Job) -> set[JobId]:
    """Return the ids under which a job was listed; an array task was first listed among its array's pending tasks."""
    return {job.id} if job.array is None else {job.id, rest_id(job.array.array)}


def _events_of_row(row: JobRow, before: Mapping[JobId, JobRow], job_of: JobOf, now: Millis) -> Iterator[Happened]:
    """Yield the events of a changed row, each at the time that the cluster reports, else now."""
    old = before.get(row.id)
    if old is None and row.array is not None and not row.tasks:
        # A task that has just started was part of the array's pending record before.
        old = before.get(rest_id(row.array.array))
    if old is None:
        yield row.submitted_at, _submitted_event(job_of(row.id))
    elif old.state is JobState.QUEUED:
        yield from ((now, each) for each in _while_waiting(row, old))
    else:
        yield from ((now, each) for each in _while_running(row, old))
    # It may have started and ended between two lists: then both events follow.
    if (old is None or old.state is JobState.QUEUED) and row.started_at is not None:
        yield from ((row.started_at, each) for each in _placed_events(job_of(row.id)))
    if row.state in ENDED and (old is None or old.state not in ENDED):
        yield row.ended_at or row.state_since, _ended_event(job_of(row.id))


def _while_waiting(row: JobRow, old: JobRow) -> Iterator[EventBody]:
    held = row.reason if isinstance(row.reason, Held) else None
    if held is not None and not isinstance(old.reason, Held):
        yield events.JobHeld(row.id, held.by)
    elif isinstance(old.reason, Held) and held is None:
        yield events.JobReleased(row.id)


def _while_running(row: JobRow, old: JobRow) -> Iterator[EventBody]:
    """Yield the events of a job that goes on, which follow from how its row changed."""
    if row.state is JobState.QUEUED:
        yield events.JobRequeued(row.id, EndCause.REQUEUE)
    elif row.state is JobState.SUSPENDED and old.state is not JobState.SUSPENDED:
        yield events.JobSuspended(row.id, Suspension(by=""))
    elif old.state is JobState.SUSPENDED and row.state in OCCUPYING:
        yield events.JobResumed(row.id)
    if row.time_limit_seconds != old.time_limit_seconds:
        yield events.TimeLimitSet(row.id, row.time_limit_seconds)


def _submitted_event(job: Job) -> EventBody:
    return events.JobSubmitted(
        job.id, job.spec, job.submitter, job.project, job.account, job.qos, job.partitions, job.array
    )


def _placed_events(job: Job) -> Iterator[EventBody]:
    # Where it ran may be gone by now, as pods are that were deleted.
    if job.attempt is not None:
        yield events.JobPlaced(job.id, job.attempt.number, 0, job.attempt.placement, job.attempt.partition)


def _ended_event(job: Job) -> EventBody:
    return events.JobEnded(job.id, job.state, job.end_cause or EndCause.EXIT, job.exit, job.held_until)
