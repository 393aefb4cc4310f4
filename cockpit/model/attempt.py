"""One run of a job: its replicas, where they are, how they end, and why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.eviction import Grounds
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.node import Allocation, Placement
from cockpit.model.usage import Used


class ExitStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a replica's command ended: by code, by signal, or unknown because its container was lost."""

    code: int | None = None
    signal: int | None = None
    oom: bool = False
    """The kernel killed it for exceeding its memory limit."""
    lost: str = ""
    """Why nothing is known: a sentence; empty when something is."""
    hook: str = ""
    """It is not its command but the script of this name that ended so, before the command was run."""
    unstarted: bool = False
    """Its container's holder died before the command began: nothing of the job has run."""

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def shell_code(self) -> int:
        """As a shell reports it: the code, 128 + signal, or 255 when unknown."""
        if self.code is not None:
            return self.code
        return 128 + self.signal if self.signal is not None else 255


class Replica(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One container of the current attempt."""

    rank: int
    staged_at: Millis | None = None
    """When everything was there that is copied before its container can be made; None: not yet, or nothing is."""
    started_at: Millis | None = None
    ended_at: Millis | None = None
    exit: ExitStatus | None = None
    limits: str = ""
    """How its limits are enforced, as the runtime said: `cgroup v1`, `cgroup v2`, `soft: …`."""
    left_at: Millis | None = None
    """When it was no worker of its elastic job any more; its container is gone."""
    had: Allocation | None = None
    """Once it has left: what it held."""
    blocked: str = ""
    """Why its node is on the job's block list, where no further worker of the attempt comes; empty: it is not."""
    used: Used | None = None
    """Once it has ended: what it used, if anybody measured."""


class EndCause(StrEnum):
    """Why a job ends, or is being ended."""

    __hash__ = str.__hash__  # as equality; Enum's own is made in Python

    EXIT = "exit"
    """Its command ended by itself."""
    STOP = "stop"
    """A person stopped it."""
    TIME_LIMIT = "time_limit"
    START_FAILED = "start_failed"
    """Its container could not be made."""
    LOST = "lost"
    """Its container disappeared (shim killed, machine rebooted)."""
    DEADLINE = "deadline"
    """It could no longer end by its deadline."""
    PREEMPTED = "preempted"
    """Another job takes its room."""
    REQUEUE = "requeue"
    """A person has it begin anew."""
    RECLAIMED = "reclaimed"
    """What it runs on is taken back: a node, or what best effort had of one."""
    FAULT = "fault"
    """Something of a node that it runs on has failed."""
    SLOW = "slow"
    """Its iterations were slow, and it is to go on elsewhere."""
    BELOW_MIN = "below_min"
    """It was suspended for want of workers for longer than it waits."""


BELOW_MIN_CAUSES = frozenset({EndCause.PREEMPTED, EndCause.RECLAIMED, EndCause.BELOW_MIN})
"""Why an elastic job has to give up so many workers that it is suspended."""


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """An iteration that was slow by what the job says of itself."""

    rank: int
    hardware_ms: float
    e2e_ms: float

    @property
    def part(self) -> float:
        """Of the end-to-end time."""
        return self.hardware_ms / self.e2e_ms


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One start of the job: the scheduler's decision and what became of it."""

    number: int
    """From 1."""
    spec_index: int
    """Which of the spec's alternatives was placed."""
    placement: Placement
    """Without the workers that have left. An elastic job's ranks may have gaps: none is ever given twice."""
    placed_at: Millis
    replicas: tuple[Replica, ...]
    """By rank, those that have left included."""
    partition: str = ""
    billing: float = 0.0
    """Of its resources, as the partition weighs them."""
    resumed_at: Millis | None = None
    """When it last went on after standing still; None: it never stood still."""
    suspended_ms: int = 0
    """How long it stood still before that, in all: this is no part of its time limit nor of what is accounted."""
    warned: bool = False
    """Its batch script was sent the signal that it wants before its time limit."""
    ended_at: Millis | None = None
    """When it was over, if the job began anew."""
    cause: EndCause | None = None
    """Why it was over, if the job began anew."""
    members: tuple[str, ...] = ()
    """On a fleet, by rank: the cluster that the replica is bound to."""
    awaits: tuple[str, ...] = ()
    """Clusters of these that have not found room for their part yet. No replica starts before all have."""
    resized_at: Millis | None = None
    """When workers last came or left; None: it holds what it was given at first."""
    launcher: Allocation | None = None
    """Of the first replica, where that is the launcher of an elastic job: what it may use. It is no part of the
    placement, and counts nowhere."""
    slow: Slow | None = None
    """The first of its iterations above the job's threshold."""

    @property
    def counts_from(self) -> Millis:
        """Since when it runs without a pause on what it holds now, if it does."""
        since = self.placed_at if self.resumed_at is None else self.resumed_at
        return since if self.resized_at is None else max(since, self.resized_at)

    @property
    def ran(self) -> bool:
        """Whether any of its commands was started."""
        return any(each.started_at is not None for each in self.replicas)

    @property
    def there(self) -> tuple[Replica, ...]:
        """Its replicas without the workers that have left."""
        return tuple([each for each in self.replicas if each.left_at is None])

    @property
    def blocked(self) -> frozenset[NodeName]:
        """Nodes that take no further worker of it: the job's block list."""
        return frozenset([each.had.node for each in self.replicas if each.blocked and each.had is not None])

    @property
    def everybody(self) -> Placement:
        """By rank: what the launcher may use, if there is one, and what the others hold."""
        return self.placement if self.launcher is None else (self.launcher, *self.placement)

    @property
    def places(self) -> dict[int, Allocation]:
        """What each replica holds, by rank; what those held that have left."""
        left = {each.rank: each.had for each in self.replicas if each.had is not None}
        return left | {part.rank: part for part in self.everybody}

    def held(self, since: Millis, until: Millis) -> list[tuple[Allocation, int]]:
        """What each replica held, and for how many of the milliseconds between: workers of an elastic job come and go,
        all others begin and end together."""
        if self.resized_at is None:
            return [(part, until - since) for part in self.placement]
        places = self.places
        return [
            (places[each.rank], max(0, (each.left_at or until) - max(since, each.started_at or until)))
            for each in self.replicas[self.launcher is not None :]
        ]

    def replica_ids(self, job: JobId) -> tuple[ReplicaId, ...]:
        """Of those that have not left."""
        return tuple(ReplicaId(job, self.number, replica.rank) for replica in self.there)


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """Set while a job is being ended but some replica still runs."""

    cause: EndCause
    at: Millis
    kill_at: Millis
    """When the grace period is over; equal to `at` when there is none."""
    killed: bool = False
    for_job: JobId | None = None
    """Whose room it makes; None: it does not end for another's sake."""
    grounds: Grounds | None = None
    """By what right that one takes it."""
    requeue: bool = False
    """It waits again afterwards."""
    by: str = ""
    """The user who stopped it; empty: no user did."""


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """A worker of an elastic job that was told to end, and has not yet."""

    rank: int
    at: Millis
    kill_at: Millis
    """When its grace is over; equal to `at` when there is none."""
    for_job: JobId | None
    """Whose room it makes; None: nobody's."""
    grounds: Grounds
    """By what right it has to."""
    killed: bool = False


class Suspension(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job stands still."""

    by: str = ""
    """The person who wants it; empty: other jobs have its CPUs."""
    for_jobs: tuple[JobId, ...] = ()
    """Those others. It goes on once none of them needs the CPUs any more."""
    grounds: Grounds | None = None
