"""The state of a job on a fleet, by what its members report to the host."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from cockpit.backends.kubernetes.mapping.fleet_job import FleetJob
from cockpit.backends.kubernetes.objects.fleet import Failover, MemberStatus, TargetCluster
from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.backends.kubernetes.objects.workload import NO_STATUS, WorkloadStatus
from cockpit.model.job import JobState

if TYPE_CHECKING:
    from cockpit.model.ids import Millis

_SUCCESS = frozenset({"Succeeded", "Complete", "Completed"})
FAILED = "Failed"
_RUNNING = "Running"


def own_word(status: WorkloadStatus) -> str:
    """Return the state of an object in its own word, as `kubectl get` prints it: that of its last condition."""
    said = next((each.type for each in reversed(status.conditions or ()) if each.is_true), "")
    # A batch/v1 Job that runs has no condition.
    return said or status.phase or (_RUNNING if status.active else "")


def fleet_state(own: WorkloadStatus, fleet: FleetJob) -> JobState:
    """Return the state of a job that has not ended and has no pods on the host, by its members' reports.

    It runs when a member or the fleet's own object, whose status is `own`, says so. Bound and not running it is
    starting, unbound it is queued.
    """
    words = {own_word(each) for each in _statuses(fleet)}
    if _RUNNING in words or own_word(own) == _RUNNING:
        return JobState.RUNNING
    return JobState.STARTING if bound_to(fleet) else JobState.QUEUED


def fleet_end(fleet: FleetJob) -> JobState | None:
    """Return how a job ended whose end the fleet does not report at its own object; None: it has not.

    It ends with its members, unless a failed placement is given up and made anew.
    """
    words = [own_word(each) for each in _statuses(fleet)]
    if not words or len(words) < len(bound_to(fleet)) or not all(each in {*_SUCCESS, FAILED} for each in words):
        return None
    if FAILED not in words:
        return JobState.SUCCEEDED
    return JobState.ERROR if failover_of(fleet) is None else None


def fleet_started_at(fleet: FleetJob) -> Millis | None:
    """Return when the first member started the job; None: none has reported it."""
    starts = [each.start_time for each in _statuses(fleet) if each.start_time is not None]
    return millis(min(starts, default=None))


def fleet_ended_at(fleet: FleetJob) -> Millis | None:
    """Return when the last member's job ended, by what the members report."""
    ends = [
        each.completion_time or next((one.last_transition_time for one in each.conditions or () if one.is_true), None)
        for each in _statuses(fleet)
    ]
    return millis(max((each for each in ends if each is not None), default=None))


def bound_to(fleet: FleetJob) -> tuple[TargetCluster, ...]:
    return (fleet.binding.spec.clusters or ()) if fleet.binding is not None else ()


def reports_of(fleet: FleetJob) -> Iterator[MemberStatus]:
    """Yield the reports of the members to which the job is bound; others may still have one."""
    names = {each.name for each in bound_to(fleet)}
    reports = (fleet.binding.status.aggregated_status or ()) if fleet.binding is not None else ()
    return (each for each in reports if each.cluster_name in names)


def _statuses(fleet: FleetJob) -> Iterator[WorkloadStatus]:
    return map(status_of, reports_of(fleet))


def status_of(item: MemberStatus) -> WorkloadStatus:
    """Return the status of a member's object."""
    return _decoded(bytes(item.status))


@lru_cache(maxsize=4096)
def _decoded(status: bytes) -> WorkloadStatus:
    try:
        return msgspec.json.decode(status, type=WorkloadStatus | None) or NO_STATUS
    except msgspec.DecodeError:
        # A status that is no job's.
        return NO_STATUS


def is_suspended(fleet: FleetJob, *, dispatching: bool = False) -> bool:
    """Return whether the binding is suspended; before there is one, whether its policy is."""
    own = fleet.binding.spec.suspension if fleet.binding is not None else None
    if fleet.binding is None and fleet.held is not None:
        own = fleet.held.policy.spec.suspension
    return own is not None and bool(own.dispatching if dispatching else own.scheduling)


def failover_of(fleet: FleetJob) -> Failover | None:
    of_policy = fleet.held.policy.spec.failover if fleet.held is not None else None
    found = (fleet.binding.spec.failover if fleet.binding is not None else None) or of_policy
    return found if found is not None and found.application is not None else None


def toleration_of(fleet: FleetJob) -> int | None:
    found = failover_of(fleet)
    return found.application.decision_conditions.toleration_seconds if found is not None and found.application else None
