"""Applies events to the plain state. No rule decides anything or reads a clock: all data comes from the event.

Under Slurm's PriorityFlags=INCREMENT_ONLY priorities must not fall. They change when usage is decayed and ages advance,
and through new rules and nodes. Before each event of these kinds, the priorities of all queued jobs are stored in the
state, where a restart finds them; the scheduler then uses the higher of the stored and the computed one. When a user
edits one job, its stored priority is dropped, so that the edit takes effect at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.apply import attempts, cluster, queue, workers
from cockpit.model import events
from cockpit.model.cluster import PriorityFlag
from cockpit.model.job import JobState
from cockpit.sched.priority.priorities import highest
from cockpit.sched.snapshot import Snapshot

if TYPE_CHECKING:
    from cockpit.engine.apply.rules import Rule
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import JobId

_SINGLE_JOB_EVENTS = (events.JobEdited, events.SiteFactorSet)
_PRIORITIES_MOVE = (
    events.UsageDecayed,
    events.ClusterConfigured,
    events.AccountsChanged,
    events.NodesChanged,
    events.NodeDrained,
    events.NodeResumed,
    events.PricesChanged,
    *_SINGLE_JOB_EVENTS,
)
"""Events that may change priorities at once."""


def _keeping_highest(rule: Rule) -> Rule:
    """Wrap the rule of one of `_PRIORITIES_MOVE`, so that it stores the priorities before the event changes them."""

    def keeping(body: events.EventBody, state: ClusterState, record: events.EventRecord) -> None:
        # Before the rule, while the state still gives the old priorities.
        if _only_increments(state):
            state.highest = _highest(state, body)
        rule(body, state, record)
        # `ClusterConfigured` may have removed the flag: stored priorities must not come back with it later.
        if state.highest and not _only_increments(state):
            state.highest = {}

    return keeping


def _only_increments(state: ClusterState) -> bool:
    return PriorityFlag.INCREMENT_ONLY in state.cluster.priority.flags


def _highest(state: ClusterState, body: events.EventBody) -> dict[JobId, dict[str, int]]:
    """Return the priorities to store before this event, by job and partition."""
    if isinstance(body, _SINGLE_JOB_EVENTS):
        return {job: priorities for job, priorities in state.highest.items() if job != body.job}
    return highest(_view(state))


def _view(state: ClusterState) -> Snapshot:
    """Return a snapshot with what priorities depend on; it has no occupied resources."""
    return Snapshot(
        version=state.seq,
        now=state.at,
        nodes=state.nodes,
        nodes_version=state.seq,
        queue=tuple(job for job in state.jobs.values() if job.state is JobState.QUEUED),
        occupied={},
        ends={},
        changes=(),
        changes_from=state.seq,
        jobs=state.jobs,
        cluster=state.cluster,
        accounts=state.accounts,
        usage=state.usage,
        qos_usage=state.qos_usage,
        usage_at=state.usage_at,
        highest=state.highest,
    )


_PLAIN = queue.RULES | attempts.RULES | workers.RULES | cluster.RULES
RULES = _PLAIN | {kind: _keeping_highest(_PLAIN[kind]) for kind in _PRIORITIES_MOVE}
"""The rule for each type of event. A rule raises `IllegalTransition` or `KeyError` if the event does not fit the state,
which only a damaged journal or a defect of the engine can cause."""


def apply(state: ClusterState, record: events.EventRecord) -> None:
    """Apply one journal record to `state`. Raises `IllegalTransition` or `KeyError` if it does not fit."""
    RULES[type(record.body)](record.body, state, record)
    state.seq, state.at = record.seq, record.at
