"""Why a job waits, by Slurm's code, as a reason with its data: what is known of the job itself and of what it names."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.backends.slurm.mapping import states
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.model.cluster import Reservation
from cockpit.model.job import JobState
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    DependencyNever,
    Held,
    InReservation,
    LimitReached,
    NodesReserved,
    NoEligibleNode,
    NotEnoughFree,
    Reason,
    StandsStill,
    Told,
    WaitsForJob,
    WouldDelay,
)

_NO_RESERVATIONS: Mapping[str, Reservation] = {}
_OF_CORE: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("Resources", (NotEnoughFree, NodesReserved)),
    ("Priority", (WouldDelay,)),
    ("ReqNodeNotAvail", (NoEligibleNode, NodesReserved)),
    ("Nodes required for job", (NoEligibleNode,)),
    ("Assoc", (LimitReached,)),
    ("QOS", (LimitReached,)),
    ("Max", (LimitReached,)),
)
"""Where the embedded core, looking at the same cluster, finds a reason of this type, it says the same with figures."""


def reason(listed: Listed, reservations: Mapping[str, Reservation] = _NO_RESERVATIONS) -> Reason | None:
    """None for a job that neither waits nor stands still."""
    job = listed.job
    if not states.known(listed.state):
        return Told(listed.state, "a state that cockpit does not know")
    if job.state is JobState.SUSPENDED:
        return StandsStill()
    if job.state is not JobState.QUEUED:
        return None
    if job.held_by:
        return Held(job.held_by, None)
    return _by_code(listed, reservations) or Told(listed.code, _about(listed))


def with_figures(told: Reason, core: Reason | None) -> Reason:
    """What the core found, where it is what the cluster means; else what the cluster told."""
    if not isinstance(told, Told) or core is None:
        return told
    code = told.code.replace("_", " ")
    kinds = next((kinds for lead, kinds in _OF_CORE if code.startswith(lead)), ())
    return core if isinstance(core, kinds) else told


def _by_code(listed: Listed, reservations: Mapping[str, Reservation]) -> Reason | None:
    job = listed.job
    match listed.code:
        case "BeginTime" if job.spec.begin_at is not None:
            return BeginsLater(job.spec.begin_at)
        case "Dependency" if job.waits_for:
            first, *more = job.waits_for
            return WaitsForJob(first.kind, first.job, len(more), first.task)
        case "DependencyNeverSatisfied" if job.waits_for:
            first = job.waits_for[0]
            return DependencyNever(first.kind, first.job, first.task)
        case "JobArrayTaskLimit" if job.array is not None:
            return ArrayFull(job.array.array, job.array.at_once)
        case "Reservation" if (found := reservations.get(job.spec.reservation)) is not None:
            return InReservation(found.name, found.start_at)  # type: ignore[arg-type] # milliseconds
    return None


def _about(listed: Listed) -> str:
    """The names that a limit's code leaves out."""
    job, code = listed.job, listed.code
    if code.startswith("QOS"):
        return f"QOS {job.qos}"
    if code.startswith("Assoc"):
        return f"{job.submitter.name} in account {job.account}"
    if code.startswith("Partition"):
        return f"partition {', '.join(job.partitions)}"
    if code.startswith("Reservation"):
        return f"reservation {job.spec.reservation}"
    return ""
