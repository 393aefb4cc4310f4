"""Sentences for what interrupts a running job: eviction, suspension, requeue, node faults and slow iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from cockpit.model import events
from cockpit.model.attempt import EndCause, EvictionMode, Grounds, Suspension
from cockpit.model.ids import JobId
from cockpit.model.steps import Interruption, Resumption
from cockpit.present.events.alerts import slow_sentence
from cockpit.present.phrases import listed
from cockpit.present.references import job_shown
from cockpit.present.safe import safe
from cockpit.present.states import exit_sentence
from cockpit.present.units import counted

EvictionEvent = (
    events.EvictionsDecided | events.JobSuspended | events.JobResumed | events.JobRequeued | events.WaitEnded
)

_GROUNDS = {
    Grounds.QOS: "whose QOS may preempt its own",
    Grounds.PARTITION: "whose partition is of a higher tier",
    Grounds.QUOTA: "whose queue reclaims what its own borrowed",
}
_WITHOUT_JOB: Final[Mapping[Grounds | None, str]] = {
    Grounds.RECLAIM: "its node is being reclaimed",
    Grounds.PRICE: "its node costs more than its max_price now",
    Grounds.PRESSURE: "its node runs short of memory, and best effort goes first",
}
_EVICTION_WORDS = {
    EvictionMode.CANCEL: ("ends", "end"),
    EvictionMode.REQUEUE: ("ends, to wait again,", "end, to wait again,"),
    EvictionMode.SUSPEND: ("is suspended", "are suspended"),
    EvictionMode.SHRINK: ("gives up workers", "give up workers"),
}
"""The words for one job and for several jobs, by the mode of eviction."""


def preemption_words(for_job: JobId | None, grounds: Grounds | None) -> str:
    """Return the words for the job that receives the resources and its right to them; without such a job, for the
    grounds."""
    # Some grounds have no job behind them: a provider that takes a machine back, or a node short of memory.
    if for_job is None or grounds in _WITHOUT_JOB:
        return _WITHOUT_JOB.get(grounds, "is preempted")
    return f"is preempted by job {job_shown(for_job)}" + (f", {_GROUNDS[grounds]}" if grounds is not None else "")


def eviction_sentence(body: EvictionEvent) -> str:
    """Return the sentence for a job that is evicted, suspended, resumed or requeued, or that receives their
    resources."""
    match body:
        case events.EvictionsDecided():
            return f"{_jobs(body.others)} {_EVICTION_WORDS[body.mode][len(body.others) > 1]} for it"
        case events.JobSuspended():
            return suspension_sentence(body.suspension)
        case events.JobResumed():
            return "was resumed"
        case events.JobRequeued():
            return _waits_again(body)
        case events.WaitEnded():
            return "was suspended for as long as it waits for its workers, and waits as other jobs do"
        case _:
            assert_never(body)


def _waits_again(body: events.JobRequeued) -> str:
    """Return the sentence for a job that is queued again, by the cause of its attempt's end."""
    # From the particular to the general: a retry says more than the cause that it shares with other ends.
    if body.retry and body.cause in {EndCause.FAULT, EndCause.SLOW}:
        return f"waits again, to resume on other nodes, retry {body.retry}"
    if body.retry:
        how = f" ({exit_sentence(body.exit)})" if body.exit is not None else ""
        return f"failed{how} and begins again, retry {body.retry}"
    if body.cause is EndCause.START_FAILED:
        how = f" ({exit_sentence(body.exit)})" if body.exit is not None else ""
        return f"could not be started{how} and waits for another try"
    if body.below_min:
        return "has fewer workers than it needs: is suspended, and resumes by itself when there is space for them"
    return "waits again" if body.cause is EndCause.REQUEUE else "was preempted, and waits again"


def suspension_sentence(suspension: Suspension) -> str:
    """Return the sentence that says why a job is suspended."""
    if suspension.by:
        return f"was suspended by {safe(suspension.by)}"
    # Without grounds it is time slicing (gang scheduling): the jobs take turns.
    if suspension.grounds is None:
        return f"is suspended while {_jobs(suspension.for_jobs)} {_have(len(suspension.for_jobs))} a turn"
    # The first is named for all of them: they have the same right by the same rule.
    cause = preemption_words(next(iter(suspension.for_jobs), None), suspension.grounds).removeprefix("is ")
    return f"is suspended: {cause}"


def _jobs(jobs: tuple[JobId, ...]) -> str:
    return f"{'job' if len(jobs) == 1 else 'jobs'} {listed(map(job_shown, jobs))}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


CAUSES: Final = {
    Interruption.RECLAIMED: "a reclaim",
    Interruption.PREEMPTED: "a preemption",
    Interruption.WORKER_FAILED: "the end of a worker",
    Interruption.NODE_FAULT: "a fault of a node",
    Interruption.MOVED: "its move to other nodes",
    Interruption.REQUEUED: "its requeue",
    Interruption.GREW: "its growth",
}
"""What has interrupted a training."""


def lost_words(lost: int | None) -> str:
    """Return how many steps an interruption has cost: `20 steps lost`, `no steps lost`, `steps lost: not known`."""
    if lost is None:
        return "how many steps were lost is not known"
    return f"{counted(lost, 'step')} lost" if lost else "no steps lost"


def resumed_sentence(body: events.TrainingResumed | Resumption) -> str:
    """Return the sentence about a training that went on: `trains on after a reclaim: 20 steps lost (step 120 reached,
    resumed from step 100)`."""
    reached = "" if body.reached is None else f"step {body.reached} reached, "
    lost = None if body.reached is None else max(0, body.reached - body.resumed)
    return f"trains on after {CAUSES[body.cause]}: {lost_words(lost)} ({reached}resumed from step {body.resumed})"


PatrolEvent = events.FaultFound | events.PerformanceFell


def patrol_sentence(body: PatrolEvent) -> str:
    """Return the sentence of an event about a node fault or slow iterations."""
    if isinstance(body, events.FaultFound):
        return f"a fault was found on {safe(body.node)}: {safe(body.because)}"
    sentence = slow_sentence(body.slow.part, body.threshold)
    move = f"; it continues on {listed(map(safe, body.elsewhere))}" if body.elsewhere else ""
    return f"{sentence} ({body.slow.hardware_ms:g} of {body.slow.e2e_ms:g} ms in replica {body.slow.rank}){move}"
