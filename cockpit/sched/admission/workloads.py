"""Jobs, queues and verdicts of the admission by quotas."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import NamedTuple

import msgspec

from cockpit.model.ids import Millis
from cockpit.sched.admission.quotas import FlavorResource, Usage


class PodSetRequest(NamedTuple):
    """Equal pods of a job, which get one flavor for each group of resources."""

    name: str
    amounts: Mapping[str, int]
    """What all of them request together by resource, in thousandths."""
    excluded: Mapping[str, str] = {}
    """Why they cannot run on nodes of a flavor, such as a taint, by flavor."""


class AdmissionWorkload(msgspec.Struct, frozen=True):
    """A job that waits for its admission or has it."""

    key: str
    queue: str
    priority: int
    since: Millis
    """The time by which jobs of the same priority are ordered."""
    requests: tuple[PodSetRequest, ...] = ()
    usage: Usage = {}
    """What it uses of which flavors; empty while it waits."""
    flavors: Mapping[str, tuple[str, ...]] = {}
    """The flavors that each pod set has, by its name; empty while it waits, and where they are not known."""
    admitted_at: Millis | None = None
    """When it got its quota; None: it waits."""
    ending: bool = False
    """Whether it was preempted already, and uses its quota until it has ended; then it waits again."""


class Preempts(StrEnum):
    """Which jobs a queue's jobs may preempt."""

    __hash__ = str.__hash__

    NEVER = "Never"
    ANY = "Any"
    LOWER = "LowerPriority"
    LOWER_OR_NEWER = "LowerOrNewerEqualPriority"


class FlavorGroup(NamedTuple):
    """Resources that share their flavors, which are tried in this order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


class AdmissionQueue(msgspec.Struct, frozen=True):
    """The rules of one queue."""

    name: str
    groups: tuple[FlavorGroup, ...] = ()
    strict: bool = False
    """Whether the first job of the queue holds up all others (StrictFIFO)."""
    within: Preempts = Preempts.NEVER
    """Jobs of the queue itself that it may preempt."""
    reclaim: Preempts = Preempts.NEVER
    """Jobs of other queues that use borrowed quota."""
    while_borrowing: bool = False
    """Whether it may preempt in the cohort also for what it would borrow itself (borrowWithinCohort)."""
    threshold: int | None = None
    """The highest priority of a job that is preempted so; None: none."""
    next_flavor_before_borrowing: bool = False
    """Whether a further flavor is tried before it borrows."""
    next_flavor_before_preempting: bool = True
    preempts_before_borrowing: bool = False
    """Whether a flavor with preemption is better than one with borrowing."""
    stopped: str = ""
    """Why the queue admits nothing; empty: it does."""


class Mode(IntEnum):
    """How a flavor serves a request, the worst first."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    """Preemption is allowed, but no job may be preempted for it."""
    PREEMPT = 2
    """Jobs of the same queue would be preempted."""
    RECLAIM = 3
    """Only jobs of other queues that borrow would be preempted."""
    FIT = 4


class Shortage(msgspec.Struct, frozen=True):
    """A quota that does not suffice, in thousandths."""

    cell: FlavorResource
    asked: int
    available: int
    potential: int
    """The most that the queue could ever use."""

    @property
    def is_never(self) -> bool:
        return self.asked > self.potential

    @property
    def missing(self) -> int:
        return self.asked - (self.potential if self.is_never else self.available)


class FlavorAttempt(msgspec.Struct, frozen=True):
    """A flavor that was tried for a group of resources of a pod set."""

    pod_set: str
    group: int
    """The index of the group; -1: the queue has no quota for the resource at all."""
    flavor: str
    mode: Mode
    excluded: str = ""
    """Why the pods cannot use the flavor; empty: they can."""
    shortages: tuple[Shortage, ...] = ()


class Cause(IntEnum):
    """Why a job is not admitted, the mildest first."""

    QUOTA = 1
    NEVER = 2
    NO_FLAVOR = 3


class Verdict(msgspec.Struct, frozen=True):
    """What a queue would do with a job now."""

    mode: Mode
    usage: Usage = {}
    """What it would use, unless it does not fit."""
    level: int = 0
    """How far up it would borrow."""
    attempts: tuple[FlavorAttempt, ...] = ()
    victims: tuple[str, ...] = ()
    """The jobs that would be preempted."""
    cause: Cause | None = None
    """Why it does not fit; None: it does, perhaps after preemption."""
    undeclared: str = ""
    """A resource that the queue has no quota for."""
    flavors: Mapping[str, tuple[str, ...]] = {}
    """The flavors that each pod set would get, by its name."""
