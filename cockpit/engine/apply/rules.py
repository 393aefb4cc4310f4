"""The table of rules that apply events to the state, and the changes that several rules share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from cockpit.engine.age import accrues_from
from cockpit.engine.lifecycle import LEGAL, IllegalTransition
from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.job import Job, JobState
from cockpit.sched.priority import usage

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import JobId

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
