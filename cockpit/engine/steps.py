"""Decides what the steps that workers report say about interruptions: where a training went on, and what was lost.

The job's steps are those of its first worker that reports any: all workers of a ring do the same steps.

1. An attempt after the first one begins with a checkpoint. Its first report says which, and the reports of the attempt
   before it say how far that one had come.
2. Within an attempt, the workers that stay go on in a new ring. If their steps fall, they have loaded a checkpoint; if
   they grow, nothing was lost.

Reports are no events: they come every second. Only what follows from them is recorded (`TrainingResumed`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.ids import ReplicaId
from cockpit.model.job import JobState
from cockpit.model.steps import Interruption
from cockpit.sched.eviction.shrinking import staying

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import Attempt
    from cockpit.model.events import EventBody
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.model.steps import RingChange, StepReport

SLACK_MS: Final = 30_000
"""How long before the engine hears of a worker's end the others may have loaded a checkpoint because of it."""
_CAUSES: Final = {
    EndCause.RECLAIMED: Interruption.RECLAIMED,
    EndCause.PREEMPTED: Interruption.PREEMPTED,
    EndCause.FAULT: Interruption.NODE_FAULT,
    EndCause.SLOW: Interruption.MOVED,
    EndCause.REQUEUE: Interruption.REQUEUED,
}
"""The interruption by the cause of an attempt's end; any other is the failure of a worker."""


class _Mark(NamedTuple):
    """Where a worker was when it was first seen in a ring."""

    version: int
    run: int
    step: int


class StepLog:
    """The last report of each worker, as far as this engine process has seen them."""

    def __init__(self) -> None:
        self._reports: dict[ReplicaId, StepReport] = {}
        self._marks: dict[ReplicaId, _Mark] = {}

    def note(self, replica: ReplicaId, report: StepReport) -> None:
        """Note what a worker has reported."""
        self._reports[replica] = report

    def take(self, replica: ReplicaId) -> StepReport | None:
        """Return the last report of a worker that has ended, and forget it."""
        self._marks.pop(replica, None)
        return self._reports.pop(replica, None)

    def of(self, replica: ReplicaId) -> StepReport | None:
        return self._reports.get(replica)

    def went_on(self, replica: ReplicaId, ring: RingChange) -> _Mark | None:
        """Return where the worker was when it was first seen in this ring, if it has done steps in it since then
        without loading a checkpoint; else None."""
        report, mark = self._reports[replica], self._marks.get(replica)
        if mark is None or mark.version != ring.version:
            self._marks[replica] = _Mark(ring.version, report.run, report.step)
            return None
        # More than one: a step that was under way at the change may still have been the old ring's.
        return mark if report.run == mark.run and report.step > mark.step + 1 else None


def first_worker(job: Job) -> ReplicaId | None:
    """Return the first worker of the job's ring; None: it has none."""
    attempt = job.attempt
    parts = staying(attempt.placement, job) if attempt is not None else ()
    return ReplicaId(job.id, attempt.number, parts[0].rank) if attempt is not None and parts else None


def leader(job: Job, log: StepLog) -> tuple[ReplicaId, StepReport] | None:
    """Return the first worker of the job's ring that has reported steps, with its report; None: none has."""
    return next(_reporting(job, log), None)


def _reporting(job: Job, log: StepLog) -> Iterator[tuple[ReplicaId, StepReport]]:
    attempt = job.attempt
    for part in staying(attempt.placement, job) if attempt is not None else ():
        replica = ReplicaId(job.id, attempt.number if attempt is not None else 0, part.rank)
        if (report := log.of(replica)) is not None:
            yield replica, report


def report_steps(machine: Machine, log: StepLog, job_id: JobId) -> list[EventBody]:
    """Return the event by which it is known how the job's training went on, if the last reports say so."""
    job = machine.state.jobs.get(job_id)
    if job is None or job.attempt is None or job.state is not JobState.RUNNING or job.ending is not None:
        return []
    first = leader(job, log)
    # Counted lines of a log start from 0 in each worker, and do not say which checkpoint it has loaded.
    if first is None or first[1].counted:
        return []
    resumed = _after_restart(job, job.attempt, first[1]) or _in_new_ring(job.attempt, log, *first)
    return [resumed] if resumed is not None else []


def _after_restart(job: Job, attempt: Attempt, report: StepReport) -> events.TrainingResumed | None:
    """Return the event of the first report of an attempt that follows one which ran."""
    before = next((each for each in reversed(job.earlier) if each.ran), None)
    if before is None or attempt.resumptions:
        return None
    # A script that reports only after its first step has reported one more than its checkpoint has.
    saved = last_checkpoint(before)
    began = report.began if saved is None or report.began != saved + 1 else saved
    cause = _CAUSES.get(before.cause, Interruption.WORKER_FAILED) if before.cause is not None else None
    return events.TrainingResumed(
        job.id,
        attempt.number,
        cause or Interruption.WORKER_FAILED,
        attempt.workers_version,
        steps_reached(before),
        began,
    )


def _in_new_ring(
    attempt: Attempt, log: StepLog, replica: ReplicaId, report: StepReport
) -> events.TrainingResumed | None:
    """Return the event of a training that went on in the present ring of its attempt, which is not the first one."""
    ring = attempt.ring
    if ring is None:
        return None
    known = [each for each in attempt.resumptions if each.workers_version == ring.version]
    loaded = report.before is not None and report.began_at >= ring.at - SLACK_MS
    # Nothing may have been lost at first, and a checkpoint be loaded after all.
    if loaded and all(not each.lost for each in known) and report.began_at > _last_at(attempt):
        return events.TrainingResumed(
            replica.job, replica.attempt, ring.cause, ring.version, report.before, report.began
        )
    mark = log.went_on(replica, ring)
    if mark is None or known:
        return None
    return events.TrainingResumed(replica.job, replica.attempt, ring.cause, ring.version, mark.step, mark.step)


def _last_at(attempt: Attempt) -> int:
    """Return when it was last known how the training went on."""
    return max((each.at for each in attempt.resumptions), default=0)


def steps_reached(attempt: Attempt) -> int | None:
    """Return the most steps that a worker of an ended attempt has reported; None: none has, or only by its log."""
    return max((each.step for each in _stored(attempt)), default=None)


def last_checkpoint(attempt: Attempt) -> int | None:
    """Return the steps in the last checkpoint that a worker of an ended attempt has reported; None: none has."""
    return max((each.checkpoint for each in _stored(attempt) if each.checkpoint is not None), default=None)


def _stored(attempt: Attempt) -> Iterator[StepReport]:
    return (each.steps for each in attempt.replicas if each.steps is not None and not each.steps.counted)
