"""Everything that a face shows of one job: its record, what happened, what it uses, its steps."""

from __future__ import annotations

import msgspec

from cockpit.model.events import EventRecord
from cockpit.model.growth import NoGrowth
from cockpit.model.ids import JobRef, Millis
from cockpit.model.job import Job
from cockpit.model.jobrow import JobRow
from cockpit.model.priority import Breakdown
from cockpit.model.reasons import Explanation, Waited
from cockpit.model.spec import JobSpec
from cockpit.model.usage import Sample, Used


class ReplicaUse(msgspec.Struct, frozen=True):
    """What a replica's container has really used so far, as kernel and drivers count it; None: nobody measures that
    here."""

    rank: int
    cpu_ms: int | None = None
    """Of all its processes together."""
    memory_mib: int | None = None
    """Just now, with its files in memory."""
    peak_memory_mib: int | None = None
    """The most that it had at any moment."""
    card_percent: int | None = None
    """How busy its cards are just now, on average over all of them."""
    card_memory_mib: int | None = None
    """Of all its cards together, just now."""
    mean_card_percent: int | None = None
    """Since it started."""
    peak_card_percent: int | None = None
    peak_card_memory_mib: int | None = None
    course: tuple[Sample, ...] = ()
    """Its whole life, in few stretches, the oldest first."""

    @property
    def total(self) -> Used:
        """What would be kept if it ended now."""
        return Used(
            cpu_ms=self.cpu_ms,
            peak_memory_mib=self.peak_memory_mib,
            card_percent=self.mean_card_percent,
            peak_card_percent=self.peak_card_percent,
            peak_card_memory_mib=self.peak_card_memory_mib,
        )


def in_the_end(rank: int, used: Used) -> ReplicaUse:
    """What is kept of a replica, as it is shown."""
    return ReplicaUse(
        rank,
        cpu_ms=used.cpu_ms,
        peak_memory_mib=used.peak_memory_mib,
        mean_card_percent=used.card_percent,
        peak_card_percent=used.peak_card_percent,
        peak_card_memory_mib=used.peak_card_memory_mib,
    )


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """What another scheduler started within a job, one command at a time: its script (`batch`), or one `srun`."""

    name: str
    """`batch`, `extern`, `interactive`, or a number from 0."""
    command: str
    state: str
    """In the scheduler's own words, in lower case."""
    nodes: int
    tasks: int | None
    started_at: Millis | None
    ended_at: Millis | None
    exit_code: int | None = None
    cpu_ms: int | None = None
    peak_memory_mib: int | None = None
    """Of its largest task."""
    output: str = ""
    """The file that it writes by itself, of several tasks with `%t` for each; empty: it writes into its job's."""


class JobDetail(msgspec.Struct, frozen=True):
    """Everything about one job."""

    row: JobRow
    job: Job
    explanation: Explanation | None
    events: tuple[EventRecord, ...]
    log_tail: str = ""
    """Last lines of the failed replica's stderr (else stdout), undecoded bytes replaced."""
    priority: tuple[Breakdown, ...] = ()
    """While it is queued: one for each of its partitions, the best first."""
    waited: tuple[Waited, ...] = ()
    """What it waited for as far as this engine has seen it, the oldest first."""
    use: tuple[ReplicaUse, ...] = ()
    """Of the replicas of the last attempt that are, or were, measured."""
    growth: NoGrowth | None = None
    """Of an elastic job that runs: why it has no more workers; None: nobody knows yet."""
    tasks: tuple[JobRow, ...] = ()
    """Of a batch's task or a sweep's trial: all that are known, itself among them, in order of their indices."""
    batch: JobSpec | None = None
    """Of a batch's task: what would ask for all of these again."""

    recorded: bool = False
    """The cluster tells no history: `events` and `waited` are what a cockpit saw while it was connected."""
    steps: tuple[StepRow, ...] = ()
    """On another scheduler's cluster: what ran within it, in its order."""
    address: str = ""
    """Of a session whose command has printed where it can be reached: that, as it was printed."""
    log_left_out_mib: int = 0
    """Of the logs of the last attempt, where they are longer than their limit."""

    def named_by(self, ref: JobRef) -> JobSpec:
        """The spec that is meant by what this was asked for with: the id of a batch means all its tasks."""
        array = self.job.array
        if self.batch is None or array is None or ref.task is not None or ref.job != array.array:
            return self.job.spec
        return self.batch
