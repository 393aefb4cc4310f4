"""A job's record as the engine keeps it. Frozen: a change makes a new value."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cockpit.model.attempt import Attempt, EndCause, Ending, ExitStatus, Leaving, Suspension
from cockpit.model.fleet import FleetPart
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.spec import Dependency, JobKind, JobSpec


class JobState(StrEnum):
    """The words a person sees. `engine.lifecycle` says which may follow which."""

    __hash__ = str.__hash__  # as equality; Enum's own is made by name, in Python, for each of a hundred thousand rows

    QUEUED = "queued"
    PRECHECKING = "prechecking"
    STAGING = "staging"
    STARTING = "starting"
    RUNNING = "running"
    RESUMING = "resuming"
    SUSPENDED = "suspended"
    SUCCEEDED = "succeeded"
    ERROR = "error"
    EXPIRED = "expired"
    STOPPED = "stopped"


QUEUED: Final = JobState.QUEUED
STARTING: Final = JobState.STARTING
RUNNING: Final = JobState.RUNNING
SUSPENDED: Final = JobState.SUSPENDED
SUCCEEDED: Final = JobState.SUCCEEDED
ERROR: Final = JobState.ERROR
EXPIRED: Final = JobState.EXPIRED
"""For what is done for every event: to look up an enumeration's member takes Python 3.11 ten times as long."""

ENDED = frozenset({JobState.SUCCEEDED, JobState.ERROR, JobState.EXPIRED, JobState.STOPPED})
OCCUPYING = frozenset(
    {
        JobState.PRECHECKING,
        JobState.STAGING,
        JobState.STARTING,
        JobState.RUNNING,
        JobState.RESUMING,
        JobState.SUSPENDED,
    }
)
"""States in which a job holds resources."""


BEGINNING = (JobState.PRECHECKING, JobState.STAGING, JobState.STARTING, JobState.RESUMING)
"""States of a job that has its place and does not run yet."""


class Submitter(msgspec.Struct, frozen=True):
    """Whose job it is, as the kernel said at submission; the command runs with exactly these credentials."""

    name: UserName
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


class ArrayTask(msgspec.Struct, frozen=True):
    """Which task of which array a job is: shown as `123_4`."""

    array: JobId
    """The id of the array: that of its first task."""
    index: int
    at_once: int = 0
    """How many tasks of the array may run at the same time; 0: all."""
    count: int = 1
    """How many tasks the array has; their ids are `array` … `array + count - 1`, in order of their indices."""
    first: int = 0
    """The lowest index of the array."""
    last: int = 0
    batch: bool = False
    """The array is a batch: its tasks have commands of their own."""


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything the engine knows of one job."""

    id: JobId
    spec: JobSpec
    submitter: Submitter
    project: str
    submitted_at: Millis
    state: JobState = JobState.QUEUED
    state_since: Millis
    held_by: str = ""
    """Who holds it back from starting; empty when nobody."""
    held_since: Millis | None = None
    attempt: Attempt | None = None
    """The current or last attempt."""
    ending: Ending | None = None
    exit: ExitStatus | None = None
    """Of the first replica that failed, else of rank 0."""
    end_cause: EndCause | None = None
    ended_at: Millis | None = None
    held_until: Millis | None = None
    """While its failed containers are kept; None otherwise."""
    deleted: bool = False
    """A person took it off the lists."""
    version: int = 0
    """Sequence number of the last event that changed it."""
    account: str = ""
    """What it is charged to; empty: nothing."""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    """Where it may run; empty: the cluster has no partitions."""
    array: ArrayTask | None = None
    waits_for: tuple[Dependency, ...] = ()
    """Conditions that have not come true yet."""
    never: JobId | None = None
    """The job whose end made one of its conditions impossible: the first of `waits_for`."""
    accrues_from: Millis | None = None
    """When its age began to count; None: not yet."""
    direct_priority: int | None = None
    """Set by an administrator, in place of the computed one."""
    site_factor: int = 0
    """Added to the computed priority by an administrator (scontrol's SiteFactor)."""
    retries: int = 0
    """How often it has begun again by itself after a failure; a person who has it begin anew gives all of them back."""
    earlier: tuple[Attempt, ...] = ()
    """The attempts before the current or last one, oldest first."""
    suspension: Suspension | None = None
    """While it stands still."""
    clears: tuple[JobId, ...] = ()
    """While it is queued: those who were made to go for its sake. The room that they leave is its own."""

    leaving: tuple[Leaving, ...] = ()
    """Workers that are on their way out while the job goes on."""
    part: FleetPart | None = None
    """What of which job of a fleet it is; None: it was submitted here."""
    in_vain: dict[str, Millis] = {}
    """By cluster of a fleet: when it was given up there last, for want of room."""
    below_min_at: Millis | None = None
    """Since when it is suspended for want of room for its fewest workers; it waits among those that are queued."""
    rests_until: Millis | None = None
    """Of best effort that a node had too little for: it does not start again before."""
    revoked_at: Millis | None = None
    """When it went back to its queue: its place there is that of a job that came then."""
    ended_by: str = ""
    """The user who stopped it; empty: no user did."""

    def is_meant(self, condition: Dependency) -> bool:
        """Whether the condition is on this job, by itself or as a task of the array."""
        if self.array is not None and condition.job == self.array.array:
            return condition.task in {None, self.array.index}
        return condition.job == self.id and condition.task is None

    @property
    def kind(self) -> JobKind:
        """Of a batch's task: that of the batch. Its own spec is a regular job's."""
        return JobKind.BATCH if self.array is not None and self.array.batch else self.spec.kind

    @property
    def shown_state(self) -> JobState:
        """As faces tell it: one that is below its min waits in the queue, and is suspended."""
        return self.state if self.below_min_at is None else JobState.SUSPENDED

    @property
    def waits_until(self) -> Millis | None:
        """Until when it is suspended below its min, at most; None: it is not."""
        if self.below_min_at is None or self.spec.elastic is None:
            return None
        return Millis(self.below_min_at + 1000 * self.spec.elastic.max_wait_seconds)

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def kept(self) -> bool:
        return self.held_until is not None
