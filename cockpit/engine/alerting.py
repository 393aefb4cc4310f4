"""Decides which events of a job raise an alert. One kind of alert about one job is raised at most once in a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.engine.retries import retried_causes
from cockpit.model import events
from cockpit.model.alerts import Alert, AlertKind
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.catalogue import UserEntry
from cockpit.model.job import ERROR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.engine.state import ClusterState
    from cockpit.model.events import EventBody
    from cockpit.model.ids import Millis, NodeName
    from cockpit.model.job import Job

_TAKEN_BACK: Final = frozenset({Grounds.RECLAIM, Grounds.PRESSURE})
"""Grounds of an eviction that no job and no setting of the job's own stand behind."""


def alerts_raised(
    machine: Machine, decided: Sequence[EventBody], now: Millis, pause_ms: int
) -> list[events.AlertRaised]:
    """Return the alerts that follow from `decided`, which has not been applied yet.

    `pause_ms`: the least time between two alerts of one kind about one job.
    """
    raised: list[events.AlertRaised] = []
    known: set[tuple[int, AlertKind]] = set()
    for body in decided:
        if not isinstance(body, _ALERTING) or (job := machine.state.jobs.get(body.job)) is None:
            continue
        for alert in _alerts_of(job, body, now):
            recent = any(each.kind is alert.kind and each.at > now - pause_ms for each in job.alerts)
            if not recent and (job.id, alert.kind) not in known:
                known.add((job.id, alert.kind))
                raised.append(events.AlertRaised(job.id, alert))
    return raised


def owner_address(state: ClusterState, user: str) -> str:
    """Return the user's e-mail address in the catalogue; empty: there is none."""
    entries = (each for each in state.catalogue.values() if isinstance(each, UserEntry) and each.name == user)
    return next((each.email for each in entries), "")


_ALERTING = (
    events.PerformanceFell
    | events.FaultFound
    | events.WorkersRecalled
    | events.EndingBegan
    | events.JobRequeued
    | events.WaitEnded
    | events.WorkersLeft
    | events.JobEnded
)


def _alerts_of(job: Job, body: _ALERTING, now: Millis) -> Iterator[Alert]:
    """Yield the alert that an event of the job raises, if it does."""
    match body:
        case events.PerformanceFell():
            yield Alert(
                kind=AlertKind.PERFORMANCE, at=now, nodes=body.elsewhere, slow=body.slow, threshold=body.threshold
            )
        case events.FaultFound():
            yield Alert(kind=AlertKind.FAULT, at=now, nodes=(body.node,), because=body.because)
        case events.WorkersRecalled() if body.grounds in _TAKEN_BACK:
            nodes = _nodes_of(job, body.ranks)
            yield Alert(kind=AlertKind.RECLAIM, at=now, nodes=nodes, ranks=body.ranks, kill_at=body.kill_at)
        case events.EndingBegan() if body.grounds in _TAKEN_BACK:
            yield Alert(kind=AlertKind.RECLAIM, at=now, kill_at=body.kill_at, continues=False)
        case events.JobRequeued() if body.below_min:
            yield Alert(kind=AlertKind.SUSPENDED, at=now)
        case events.WaitEnded():
            yield Alert(kind=AlertKind.WAITING, at=now)
        case events.WorkersLeft() if body.because:
            nodes = _nodes_of(job, body.ranks)
            yield Alert(kind=AlertKind.BLOCKED, at=now, nodes=nodes, ranks=body.ranks, because=body.because)
        case events.JobEnded() if body.cause is EndCause.BELOW_MIN and body.state is ERROR:
            yield Alert(kind=AlertKind.WAITING, at=now, continues=False)
        case events.JobEnded() if _has_used_up_retries(job, body):
            yield Alert(kind=AlertKind.EXHAUSTED, at=now, continues=False, retries=job.retries, exit=body.exit)


def _has_used_up_retries(job: Job, ended: events.JobEnded) -> bool:
    most = max(job.spec.most_retries, job.spec.most_worker_retries)
    return ended.state is ERROR and ended.cause in retried_causes(job.spec) and 0 < most <= job.retries


def _nodes_of(job: Job, ranks: tuple[int, ...]) -> tuple[NodeName, ...]:
    placement = job.attempt.placement if job.attempt is not None else ()
    return tuple(dict.fromkeys(part.node for part in placement if part.rank in ranks))
