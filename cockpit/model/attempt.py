"""An attempt is one run of a job: its replicas, where they are placed, how they end, and why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.node import Allocation, Placement
from cockpit.model.steps import Resumption, RingChange, StepReport
from cockpit.model.usage import ReplicaTotals


class EvictionMode(StrEnum):
    """What happens to an evicted job: Slurm's PreemptMode, and `SHRINK`."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    SUSPEND = "suspend"
    SHRINK = "shrink"
    """The job continues with fewer workers. Slurm has no such mode. Elastic jobs are shrunk before any job is evicted.
    """


class Grounds(StrEnum):
    """The rule by which a job is evicted."""

    QOS = "qos"
    """The waiting job's QOS may preempt the evicted job's (preempt/qos)."""
    PARTITION = "partition"
    """The waiting job's partition has a higher tier (preempt/partition_prio)."""
    QUOTA = "quota"
    """The waiting job's queue has less than its guarantee, and the evicted job's queue has borrowed."""
    RECLAIM = "reclaim"
    """The node's provider takes the node back; no job waits for it."""
    PRICE = "price"
    """The node's present price is above what the job pays; no job waits for it."""
    PRESSURE = "pressure"
    """The node runs short of memory, and best-effort jobs are evicted first; no job waits for it."""


# gc=False: see `events`.
class ExitStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a replica's command ended: by code, by signal, or unknown because its container was lost."""

    code: int | None = None
    signal: int | None = None
    oom: bool = False
    """Whether the kernel killed it for exceeding its memory limit."""
    lost: str = ""
    """Why the exit status is unknown, as a sentence; empty: it is known."""
    hook: str = ""
    """The name of the script that ended so, before the command was run; empty: it is the command's own status."""
    unstarted: bool = False
    """Whether nothing of the job has run, because the container's holder died before the command began or the disk was
    full: the engine starts the job again."""

    @property
    def ok(self) -> bool:
        """Whether the command ended with code 0."""
        return self.code == 0

    @property
    def shell_code(self) -> int:
        """The exit status as a shell reports it: the code, 128 + signal, or 255 when unknown."""
        if self.code is not None:
            return self.code
        # 255, as ssh has it for a connection that broke.
        return 128 + self.signal if self.signal is not None else 255


class Replica(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One container of the current attempt."""

    rank: int
    staged_at: Millis | None = None
    """When all files that its container needs had been copied; None: not yet, or the job stages none."""
    started_at: Millis | None = None
    ended_at: Millis | None = None
    exit: ExitStatus | None = None
    limits: str = ""
    """How its limits are enforced, as the runtime said: `cgroup v1`, `cgroup v2`, `soft: …`."""
    left_at: Millis | None = None
    """When the replica left its elastic job, which continues without it; None: it is part of the job."""
    had: Allocation | None = None
    """The resources that it occupied until it left; None: it has not left."""
    blocked: str = ""
    """Why its node was put on the job's block list, which keeps further workers of the attempt away; empty: it was not.
    """
    unblocked_at: Millis | None = None
    """When a user took its node off the block list; None: no user did."""
    restarts: int = 0
    """How often a failed worker was replaced to come to this one."""
    used: ReplicaTotals | None = None
    """The resources that it really used; None: it has not ended, or they could not be measured."""
    steps: StepReport | None = None
    """What it had reported of its training when it ended; None: nothing, or it has not ended."""

    @property
    def is_ready(self) -> bool:
        """Whether its container runs, which READY shows as 1/1."""
        return self.started_at is not None and self.ended_at is None and self.left_at is None


class EndCause(StrEnum):
    """Why a job ends, or is being ended."""

    __hash__ = str.__hash__  # Enum hashes the member's name in Python code, which is slow

    EXIT = "exit"
    """Its command ended by itself."""
    STOP = "stop"
    """A user, or the engine when it stops, stopped it."""
    TIME_LIMIT = "time_limit"
    START_FAILED = "start_failed"
    """Its container could not be made."""
    LOST = "lost"
    """The container disappeared (shim killed, machine rebooted)."""
    DEADLINE = "deadline"
    """The job could not end by its deadline any more."""
    PREEMPTED = "preempted"
    """Another job takes its resources."""
    REQUEUE = "requeue"
    """A user requeued it."""
    RECLAIMED = "reclaimed"
    """The provider takes back its node, or the node ran short of memory for best-effort jobs."""
    FAULT = "fault"
    """A component of a node that it runs on has failed."""
    SLOW = "slow"
    """Its iterations were slow, and it is moved to other nodes."""
    BELOW_MIN = "below_min"
    """The job has fewer workers than it needs, or had for longer than it may wait."""


# Not FAULT and SLOW: these move the job to other nodes, and are no lack of nodes.
BELOW_MIN_CAUSES = frozenset({EndCause.PREEMPTED, EndCause.RECLAIMED, EndCause.BELOW_MIN})
"""Causes for which an elastic job loses so many workers that it is suspended."""


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A slow iteration, by the times that the job itself prints."""

    rank: int
    hardware_ms: float
    e2e_ms: float
    """The time of the whole iteration, from end to end."""

    @property
    def part(self) -> float:
        """The hardware's share of the end-to-end time, from 0 to 1."""
        return self.hardware_ms / self.e2e_ms


class RemotePart(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet has ordered of a member that it reaches over a link, and knows of the answer."""

    member: str
    own: str
    """The member's own id of the part, which is held there until it is released."""
    is_released: bool = False
    """Whether the member may have been told to start it: from then on it may run."""
    is_recalled: bool = False
    """Whether the member was told to end it, since not all members started their parts in time."""
    has_ended: bool = False
    """Whether the member has said, after that, that it does not run it and never will."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One start of the job: the scheduler's decision, and what happened to it."""

    number: int
    """The number of the attempt, from 1."""
    spec_index: int
    """The index of the alternative in the spec that was placed."""
    placement: Placement
    """The resources of each replica, without workers that have left. No rank is used twice, so that an elastic
    job's ranks may have gaps."""
    placed_at: Millis
    replicas: tuple[Replica, ...]
    """All replicas by rank, with those that have left."""
    partition: str = ""
    billing: float = 0.0
    """The billing weight of its resources, by the partition's TRESBillingWeights."""
    resumed_at: Millis | None = None
    """When its last suspension ended; None: it was never suspended, or is for the first time."""
    suspended_ms: int = 0
    """The length of all its suspensions that have ended. It counts neither to the time limit nor to usage."""
    warned: bool = False
    """Whether its batch script was sent the signal that it wants before its time limit."""
    ended_at: Millis | None = None
    """When the attempt ended, if the job was requeued; None otherwise."""
    cause: EndCause | None = None
    """Why the attempt ended, if the job was requeued; None otherwise."""
    members: tuple[str, ...] = ()
    """On a fleet: the member cluster of each replica, by rank."""
    awaits: tuple[str, ...] = ()
    """On a fleet: the members that have not placed their part yet. No replica starts before all have."""
    remote: tuple[RemotePart, ...] = ()
    """On a fleet: the parts that members over a link have, one for each of these members that has answered."""
    resized_at: Millis | None = None
    """When workers were last added or left; None: never."""
    launcher: Allocation | None = None
    """The resources that the launcher of an elastic job, its first replica, may use; None: it has none. They are no
    part of the placement and count to no limit."""
    slow: Slow | None = None
    """The first iteration that was slower than the job's threshold; None: none was."""
    workers_version: int = 0
    """Number of the last event that changed the list of an elastic job's workers, which is the version of that list; 0:
    the attempt was placed before the engine counted these."""
    ring: RingChange | None = None
    """The last change of the workers that train together; None: they are those of the placement."""
    resumptions: tuple[Resumption, ...] = ()
    """How the training of an elastic job went on in this attempt, after each interruption of which it is known."""

    @property
    def counts_from(self) -> Millis:
        """Return the start of the current uninterrupted run on the present resources, provided that the job runs."""
        since = self.placed_at if self.resumed_at is None else self.resumed_at
        return since if self.resized_at is None else max(since, self.resized_at)

    def remote_part(self, member: str) -> RemotePart | None:
        """Return what a member over a link has of the attempt; None: it has not answered an order yet."""
        return next((each for each in self.remote if each.member == member), None)

    @property
    def is_recalled(self) -> bool:
        """Whether members over links are being asked for their parts back, so that it is given up after that."""
        return any(each.is_recalled for each in self.remote)

    @property
    def ran(self) -> bool:
        """Whether any of its commands was started."""
        return any(each.started_at is not None for each in self.replicas)

    @property
    def present_replicas(self) -> tuple[Replica, ...]:
        """The replicas that are part of the job now: all but workers that have left."""
        return tuple([each for each in self.replicas if each.left_at is None])

    @property
    def blocking(self) -> tuple[Replica, ...]:
        """The workers that left and whose nodes are on the job's block list since then, by rank."""
        return tuple(
            [each for each in self.replicas if each.blocked and each.unblocked_at is None and each.had is not None]
        )

    @property
    def blocked(self) -> frozenset[NodeName]:
        """The job's block list: nodes on which no further worker of this attempt is placed."""
        return frozenset([each.had.node for each in self.blocking if each.had is not None])

    @property
    def whole_placement(self) -> Placement:
        """The resources of all present replicas by rank, with those of the launcher if there is one."""
        # The launcher is rank 0.
        return self.placement if self.launcher is None else (self.launcher, *self.placement)

    @property
    def places(self) -> dict[int, Allocation]:
        """The resources of each replica by rank; for workers that have left, those that they occupied."""
        left = {each.rank: each.had for each in self.replicas if each.had is not None}
        return left | {part.rank: part for part in self.whole_placement}

    def held(self, since: Millis, until: Millis) -> list[tuple[Allocation, int]]:
        """Return the resources of each replica, and for how many milliseconds between the two moments it had them.

        Replicas of ordinary jobs have them all the time; workers of an elastic job may be added and leave in between.
        """
        return [(part, ends - begins) for part, begins, ends in self.presence(since, until)]

    def presence(self, since: Millis, until: Millis) -> list[tuple[Allocation, Millis, Millis]]:
        """Return the resources of each replica, and from when to when between the two moments it had them."""
        if self.resized_at is None:
            return [(part, since, until) for part in self.placement]
        places = self.places
        times = [
            # A worker that has not started counts from `until`, so with 0.
            (places[each.rank], max(since, each.started_at or until), each.left_at or until)
            # The launcher, which is the first replica where there is one, is allocated nothing.
            for each in self.replicas[self.launcher is not None :]
        ]
        return [(part, begins, max(begins, ends)) for part, begins, ends in times]

    def replica_ids(self, job: JobId) -> tuple[ReplicaId, ...]:
        """Return the ids of the present replicas. `job`: the id of the attempt's job."""
        return tuple(ReplicaId(job, self.number, replica.rank) for replica in self.present_replicas)


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a job is being ended, while some of its replicas still run."""

    cause: EndCause
    at: Millis
    kill_at: Millis
    """The end of the grace period; equal to `at` when there is none."""
    killed: bool = False
    """Whether the grace period is over and the replicas have been killed."""
    for_job: JobId | None = None
    """The queued job that gets its resources; None: it is not evicted for another job."""
    grounds: Grounds | None = None
    """The rule by which it is evicted; None: it is not."""
    requeue: bool = False
    """Whether the job is requeued afterwards."""
    by: str = ""
    """The user who stopped it; empty: no user did."""


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """A worker of an elastic job that was recalled, and has not ended yet."""

    rank: int
    at: Millis
    kill_at: Millis
    """The end of its grace period; equal to `at` when there is none."""
    for_job: JobId | None
    """The queued job that gets its resources; None: it is not recalled for another job."""
    grounds: Grounds
    """The rule by which it is recalled."""
    killed: bool = False


class Suspension(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job is suspended."""

    by: str = ""
    """The user who suspended it; empty: it was suspended for other jobs."""
    for_jobs: tuple[JobId, ...] = ()
    """The jobs that use its CPUs meanwhile. It is resumed once none of them needs the CPUs any more."""
    grounds: Grounds | None = None
