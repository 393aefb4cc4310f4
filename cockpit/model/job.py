"""The record of a job as the engine keeps it. Records are frozen: a change makes a new one."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cockpit.model.alerts import Alert
from cockpit.model.attempt import Attempt, EndCause, Ending, ExitStatus, Leaving, Suspension
from cockpit.model.fleet import FleetPart
from cockpit.model.ids import JobId, Millis, UserName, is_apart, job_words
from cockpit.model.spec import Dependency, JobKind, JobSpec


class JobState(StrEnum):
    """The state of a job, by the word that users see. `engine.lifecycle` says which state may follow which."""

    # Enum hashes the member's name in Python code, which takes its time in lists of a hundred thousand jobs.
    __hash__ = str.__hash__

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
# These constants are for code that runs for every event: in Python 3.11 looking up a member of an enumeration takes ten
# times as long as a global name.

ENDED = frozenset({JobState.SUCCEEDED, JobState.ERROR, JobState.EXPIRED, JobState.STOPPED})
"""States in which a job has ended; only a requeue leaves them."""
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
"""States of a job that has been placed on nodes and does not run yet."""


class Submitter(msgspec.Struct, frozen=True):
    """The owner of a job, as the kernel named the submitting process; the command runs with these credentials."""

    name: UserName
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


class ArrayTask(msgspec.Struct, frozen=True):
    """The position of a job in its array, shown as `123_4`."""

    array: JobId
    """The array's id, which is that of its first task."""
    index: int
    at_once: int = 0
    """The number of tasks of the array that may run at the same time; 0: all."""
    count: int = 1
    """The number of tasks of the array; their ids are `array` … `array + count - 1`, in order of their indices."""
    first: int = 0
    """The lowest index of the array."""
    last: int = 0
    batch: bool = False
    """Whether the array is a batch, whose tasks have commands of their own."""


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything that the engine knows of one job."""

    id: JobId
    spec: JobSpec
    submitter: Submitter
    project: str
    submitted_at: Millis
    state: JobState = JobState.QUEUED
    state_since: Millis
    held_by: str = ""
    """The user who holds the queued job; empty: it is not held."""
    held_since: Millis | None = None
    attempt: Attempt | None = None
    """The current or last attempt."""
    ending: Ending | None = None
    """How the job is being ended, and until when; None: it is not."""
    exit: ExitStatus | None = None
    """The exit status of the first replica that failed, else of rank 0."""
    end_cause: EndCause | None = None
    ended_at: Millis | None = None
    held_until: Millis | None = None
    """The end of the debug hold of its failed containers; None: no container is held."""
    deleted: bool = False
    """Whether a user removed the ended job from the lists."""
    version: int = 0
    """Sequence number of the last event that changed it."""
    account: str = ""
    """The account that its usage is charged to; empty: none."""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    """The partitions in which it may run; empty: the cluster has no partitions."""
    array: ArrayTask | None = None
    """The job's position in an array; None: it is no task."""
    waits_for: tuple[Dependency, ...] = ()
    """Dependencies that are not met yet."""
    never: JobId | None = None
    """The job whose end made a dependency impossible, the first of `waits_for`; None: all may still be met."""
    accrues_from: Millis | None = None
    """When its age began to count towards its priority; None: it does not count yet."""
    direct_priority: int | None = None
    """A priority that an administrator set in place of the computed one; None: the computed one holds."""
    site_factor: int = 0
    """A number that an administrator adds to the computed priority (scontrol's SiteFactor)."""
    retries: int = 0
    """The number of requeues after failures so far. A requeue by a user resets it to 0."""
    # In the record, so that a page that shows them need not read the journal.
    earlier: tuple[Attempt, ...] = ()
    """The attempts before the current or last one, oldest first."""
    suspension: Suspension | None = None
    """Why the job is suspended; None: it is not."""
    clears: tuple[JobId, ...] = ()
    """The jobs that are evicted for this queued job. The resources that they release are reserved for it."""
    leaving: tuple[Leaving, ...] = ()
    """Workers of a running elastic job that were recalled and have not ended yet."""
    part: FleetPart | None = None
    """The job of a fleet that this job is a part of; None: it was submitted here."""
    in_vain: dict[str, Millis] = {}
    """On a fleet: by member cluster, when a placement there was last given up for lack of free resources."""
    below_min_at: Millis | None = None
    """Since when the job is suspended for lack of resources for its least number of workers; None: it is not. Such a
    job is in state `queued`, so that the scheduler starts it again."""
    rests_until: Millis | None = None
    """A best-effort job is not started before this time after a node ran short of memory for it; None: it may start."""
    revoked_at: Millis | None = None
    """When a fleet put the job back into its queue, where this counts as its submission; None: never."""
    ended_by: str = ""
    """The user who stopped it; empty: no user did."""
    alerts: tuple[Alert, ...] = ()
    """The last alert of each kind about it, oldest first."""

    @property
    def shown_id(self) -> str:
        """The id as users write it: `123`, or `123_4` for a task of an array."""
        # An id of another cluster's scheduler says by itself which task it is, or that it is all that remain.
        if self.array is None or is_apart(self.id):
            return job_words(self.id)
        return f"{job_words(self.array.array)}_{self.array.index}"

    def is_meant(self, condition: Dependency) -> bool:
        """Tell whether the dependency names this job, by its own id or as a task of an array."""
        # An array's id is also that of its first task: a condition on it without an index means all tasks.
        if self.array is not None and condition.job == self.array.array:
            return condition.task in {None, self.array.index}
        return condition.job == self.id and condition.task is None

    @property
    def kind(self) -> JobKind:
        """The kind of job that users see: `batch` for a task of a batch, whose own spec is that of a regular job."""
        return JobKind.BATCH if self.array is not None and self.array.batch else self.spec.kind

    @property
    def shown_state(self) -> JobState:
        """The state that users see: an elastic job below its least number of workers is shown as suspended."""
        return self.state if self.below_min_at is None else JobState.SUSPENDED

    @property
    def waits_until(self) -> Millis | None:
        """Return how long the job waits while suspended below its least number of workers; None: it is not."""
        if self.below_min_at is None or self.spec.elastic is None:
            return None
        return Millis(self.below_min_at + 1000 * self.spec.elastic.max_wait_seconds)

    @property
    def ended(self) -> bool:
        """Whether the job has ended, in any way."""
        return self.state in ENDED

    @property
    def kept(self) -> bool:
        """Whether the ended job's containers are held."""
        return self.held_until is not None
