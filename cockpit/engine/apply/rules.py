"""The table of rules that apply events to the state, and the changes that several rules share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.model import events
from cockpit.model.cluster import PriorityFlag
from cockpit.model.ids import Millis
from cockpit.model.job import ENDED, Job, JobState
from cockpit.sched.priority import usage

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.cluster import Cluster
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job


_S = JobState

_STOPS = frozenset({_S.STOPPED, _S.ERROR})
_ENDS = ENDED

LEGAL: dict[JobState, frozenset[JobState]] = {
    _S.QUEUED: frozenset({_S.PRECHECKING, _S.STAGING, _S.STARTING, _S.RESUMING}) | _STOPS,
    _S.PRECHECKING: frozenset({_S.QUEUED, _S.STAGING, _S.STARTING, _S.RESUMING}) | _STOPS,
    _S.STAGING: frozenset({_S.QUEUED, _S.STARTING, _S.RESUMING}) | _STOPS,
    _S.STARTING: frozenset({_S.RUNNING, _S.QUEUED}) | _STOPS,
    # Resuming is the start of a later attempt, from a checkpoint; the job was queued in between.
    _S.RESUMING: frozenset({_S.RUNNING, _S.QUEUED}) | _STOPS,
    _S.RUNNING: frozenset({_S.SUSPENDED, _S.QUEUED}) | _ENDS,
    # Its command may have ended just before it was suspended, so any end is possible.
    _S.SUSPENDED: frozenset({_S.RUNNING, _S.QUEUED}) | _ENDS,
    # A requeue keeps the id: the only way out of an end.
    _S.SUCCEEDED: frozenset({_S.QUEUED}),
    _S.ERROR: frozenset({_S.QUEUED}),
    _S.EXPIRED: frozenset({_S.QUEUED}),
    _S.STOPPED: frozenset({_S.QUEUED}),
}


class IllegalTransition(AssertionError):
    """An event would change a job's state in an illegal way: the journal is damaged, or the engine has a defect."""


Rule = Callable[[Any, "ClusterState", events.EventRecord], None]


class Rules(dict[type, Rule]):
    """Maps each type of event to the function that applies it to the state."""

    def of(self, *kinds: type) -> Callable[[Rule], Rule]:
        """Register the decorated function for events of these types."""

        def register(rule: Rule) -> Rule:
            self.update(dict.fromkeys(kinds, rule))
            return rule

        return register


def change(state: ClusterState, record: events.EventRecord, job: JobId, /, **fields: Any) -> None:  # noqa: ANN401 - of Job
    """Replace fields of a job's record. The event's sequence number becomes its version."""
    state.jobs[job] = replace(state.jobs[job], version=record.seq, **fields)


def change_waiting(state: ClusterState, record: events.EventRecord, job: JobId, /, **fields: Any) -> None:  # noqa: ANN401 - of Job
    """Replace fields that keep a queued job from starting (hold, dependencies …), and start or stop its age."""
    changed = replace(state.jobs[job], version=record.seq, **fields)
    state.jobs[job] = replace(changed, accrues_from=accrues_from(changed, record.at, state.cluster))


def since(job: Job, after: JobState, at: Millis) -> Millis:
    """Return since when the job is in state `after`: `at` if it enters it now. Raises `IllegalTransition`."""
    # No transition: an event such as the start of a second replica leaves the job in its state.
    if job.state is after:
        return job.state_since
    if after not in LEGAL[job.state]:
        msg = f"a job cannot go from {job.state} to {after}"
        raise IllegalTransition(msg)
    return at


def free(state: ClusterState, members: Collection[str], at: Millis) -> None:
    """Record that resources were released in these member clusters of a fleet."""
    if members:
        state.freed_at = state.freed_at | dict.fromkeys(members, at)


def ledger(state: ClusterState) -> usage.Ledger:
    """Return the decayed usage of the state."""
    return usage.Ledger(state.usage, state.qos_usage, state.usage_at)


def usage_rules(state: ClusterState) -> usage.Rules:
    """Return what usage is computed from: the cluster's rules, the accounts and the nodes."""
    return usage.Rules(state.cluster, state.accounts, state.nodes)


def write_down(state: ClusterState, ledger: usage.Ledger) -> None:
    """Store a changed usage ledger in the state."""
    state.usage, state.qos_usage, state.usage_at = ledger.associations, ledger.qos, ledger.at


def accrues_from(job: Job, at: Millis, cluster: Cluster) -> Millis | None:
    """Return since when the job's age counts, at the moment `at`; None: it does not count yet.

    It counts while only free resources and priority keep the job from starting, and starts again from zero after a
    hold, as in Slurm. With ACCRUE_ALWAYS it counts from the submission on, whatever keeps the job from starting.
    """
    # The test for any flags comes first: this runs for each submission, and few clusters have flags.
    flags = cluster.priority.flags
    if flags and PriorityFlag.ACCRUE_ALWAYS in flags:
        return job.accrues_from or job.submitted_at
    return (job.accrues_from or at) if is_eligible(job, at) else None


def is_eligible(job: Job, at: Millis) -> bool:
    """Tell whether neither a hold, a dependency nor its begin time keeps the job from starting."""
    return not (job.held_by or job.waits_for or (job.spec.begin_at is not None and job.spec.begin_at > at))
