"""PriorityFlags INCREMENT_ONLY: what priorities have been, kept in the state, so that a restart forgets nothing.

Priorities move by age and usage at the passes over usage, and by new rules and nodes: before each of these the ones
that the queue has are written down. What a person changes in one job counts for that job at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.cluster import PriorityFlag
from cockpit.model.job import JobState
from cockpit.sched.priority.priorities import highest
from cockpit.sched.snapshot import Snapshot

if TYPE_CHECKING:
    from cockpit.engine.apply.rules import Rule
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import JobId

_OF_ONE = (events.JobEdited, events.SiteFactorSet)
PRIORITIES_MOVE = (
    events.UsageDecayed,
    events.ClusterConfigured,
    events.AccountsChanged,
    events.NodesChanged,
    events.NodeDrained,
    events.NodeResumed,
    *_OF_ONE,
)
"""Events by which priorities move, or may move, at once."""


def keeping_highest(rule: Rule) -> Rule:
    """The rule of such an event, which writes down before it what priorities have been."""

    def keeping(body: events.EventBody, state: ClusterState, record: events.EventRecord) -> None:
        if _only_increments(state):
            state.highest = _highest(state, body)
        rule(body, state, record)
        if state.highest and not _only_increments(state):
            state.highest = {}

    return keeping


def _only_increments(state: ClusterState) -> bool:
    return PriorityFlag.INCREMENT_ONLY in state.cluster.priority.flags


def _highest(state: ClusterState, body: events.EventBody) -> dict[JobId, dict[str, int]]:
    if isinstance(body, _OF_ONE):
        return {job: kept for job, kept in state.highest.items() if job != body.job}
    return highest(_view(state))


def _view(state: ClusterState) -> Snapshot:
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
