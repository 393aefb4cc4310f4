"""Why a job waits, by Slurm's code, as a reason with its data: what is known of the job itself and of what it names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from cockpit.backends.slurm.mapping import states, values
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.model.cluster import Reservation
from cockpit.model.ids import Millis
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
    PartitionRefuses,
    Reason,
    SchedulerReason,
    SuspendedReason,
    WaitsForJob,
    WouldDelay,
)

_NO_RESERVATIONS: Mapping[str, Reservation] = {}
_OF_CORE: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("Resources", (NotEnoughFree, NodesReserved)),
    ("Priority", (WouldDelay,)),
    # Codes are compared by their beginnings: these two are followed by a list of nodes, and limits by what they limit.
    ("ReqNodeNotAvail", (NoEligibleNode, NodesReserved)),
    ("Nodes required for job", (NoEligibleNode, NotEnoughFree, NodesReserved, WouldDelay)),
    ("Assoc", (LimitReached,)),
    ("QOS", (LimitReached,)),
    ("Max", (LimitReached,)),
    ("Partition", (PartitionRefuses,)),
)
"""Reason types of the embedded scheduler, by Slurm's code with the same meaning; the core's reason has the figures."""


_NEVER = frozenset(
    {
        "AccountNotAllowed",
        "BadConstraints",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "PartitionConfig",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "QOSNotAllowed",
    }
)
"""Codes of jobs that start only after a user has changed them or the cluster."""


def never_starts(listed: Listed) -> bool:
    """Return whether the job waits for a user's action; a start that Slurm planned earlier means nothing then."""
    return bool(listed.held_by) or listed.code in _NEVER


def reason(listed: Listed, reservations: Mapping[str, Reservation] = _NO_RESERVATIONS) -> Reason | None:
    """Return the reason of a job; None if it neither waits nor is suspended."""
    # First, since such a state has no kind of its own: it counts as running or queued by its nodes.
    if not states.is_known(listed.state):
        return SchedulerReason(listed.state, "a state that cockpit does not know")
    if listed.kind is JobState.SUSPENDED:
        return SuspendedReason()
    if listed.kind is not JobState.QUEUED:
        return None
    if by := listed.held_by:
        return Held(by, None)
    return _by_code(listed, reservations) or _cached_reason(listed.code, _about(listed))


def with_figures(by_slurm: Reason, core: Reason | None) -> Reason:
    """Return the core's reason if it has the meaning of Slurm's code, else Slurm's."""
    # Other types were built from the job's own fields and have their figures already.
    if not isinstance(by_slurm, SchedulerReason) or core is None:
        return by_slurm
    # squeue prints blanks where scontrol prints underscores (`Nodes required for job …`).
    code = by_slurm.code.replace("_", " ")
    kinds = next((kinds for lead, kinds in _OF_CORE if code.startswith(lead)), ())
    return core if isinstance(core, kinds) else by_slurm


@lru_cache(maxsize=4096)
def _cached_reason(code: str, about: str) -> SchedulerReason:
    """Return one shared reason for equal codes: ten thousand jobs wait for few reasons."""
    return SchedulerReason(code, about)


def _by_code(listed: Listed, reservations: Mapping[str, Reservation]) -> Reason | None:
    """Return the reason for a code of Slurm that names more than itself; None for any other code."""
    match listed.code:
        case "BeginTime" if (begin := listed.begin_at) is not None:
            return BeginsLater(begin)
        case "Dependency" | "DependencyNeverSatisfied":
            return _of_dependency(listed)
        case "JobArrayTaskLimit" if listed.array is not None:
            return ArrayFull(listed.array.array, listed.array.at_once)
        # A reservation that is not listed (private, or just deleted) is left to Slurm's own code.
        case "Reservation" if (reservation := reservations.get(listed.fields.get("Reservation", ""))) is not None:
            return InReservation(reservation.name, Millis(reservation.start_at))
    return None


def _of_dependency(listed: Listed) -> Reason | None:
    if not listed.job.waits_for:
        return None
    first, *more = listed.job.waits_for
    if listed.code == "Dependency":
        return WaitsForJob(first.kind, first.job, len(more), first.task)
    return DependencyNever(first.kind, first.job, first.task)


def _about(listed: Listed) -> str:
    """Return whose limit it is, which the code does not say."""
    code, fields = listed.code, listed.fields
    if code.startswith("QOS"):
        return f"QOS {values.text(fields['QOS'])}"
    if code.startswith("Assoc"):
        return f"{fields['UserName']} in account {values.text(fields['Account'])}"
    if code.startswith("Partition"):
        return f"partition {', '.join(values.names(fields['Partition']))}"
    if code.startswith("Reservation"):
        return f"reservation {values.text(fields.get('Reservation', ''))}"
    return ""
