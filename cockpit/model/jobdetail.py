"""Everything that a face shows of one job: its record, what happened, what it uses, its steps."""

from __future__ import annotations

import msgspec

from cockpit.model.events import EventRecord
from cockpit.model.fleet_placement import FleetPlacement
from cockpit.model.ids import JobId, JobRef, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.jobrow import JobRow
from cockpit.model.priority import Breakdown
from cockpit.model.reasons import Explanation, Reason, Waited
from cockpit.model.resilience import NoGrowth, Scaling
from cockpit.model.spec import JobSpec
from cockpit.model.steps import Training
from cockpit.model.usage import ReplicaTotals, Sample


class ReplicaUse(msgspec.Struct, frozen=True):
    """The resources that a replica's container has really used so far, as kernel and drivers count them; None: not
    measured."""

    rank: int
    cpu_ms: int | None = None
    """CPU time of all its processes together."""
    memory_mib: int | None = None
    """Just now, with its files in memory."""
    peak_memory_mib: int | None = None
    """The most that it had at any moment."""
    card_percent: int | None = None
    """Present utilization of its cards, on average over all of them."""
    card_memory_mib: int | None = None
    """Present memory use of all its cards together."""
    mean_card_percent: int | None = None
    """Average utilization of its cards since it started."""
    peak_card_percent: int | None = None
    peak_card_memory_mib: int | None = None
    course: tuple[Sample, ...] = ()
    """Samples over the replica's whole life, thinned to a few intervals, the oldest first."""

    @property
    def total(self) -> ReplicaTotals:
        """Return the figures that would be stored if the replica ended now."""
        return ReplicaTotals(
            cpu_ms=self.cpu_ms,
            peak_memory_mib=self.peak_memory_mib,
            card_percent=self.mean_card_percent,
            peak_card_percent=self.peak_card_percent,
            peak_card_memory_mib=self.peak_card_memory_mib,
        )


def in_the_end(rank: int, used: ReplicaTotals) -> ReplicaUse:
    """Return the stored figures of an ended replica in the form that is shown."""
    return ReplicaUse(
        rank,
        cpu_ms=used.cpu_ms,
        peak_memory_mib=used.peak_memory_mib,
        mean_card_percent=used.card_percent,
        peak_card_percent=used.peak_card_percent,
        peak_card_memory_mib=used.peak_card_memory_mib,
    )


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """A step of another scheduler's job: its script (`batch`), or the command of one `srun`."""

    name: str
    """`batch`, `extern`, `interactive`, or a number from 0."""
    command: str
    state: str
    """The state as the scheduler writes it, in lower case."""
    nodes: int
    tasks: int | None
    started_at: Millis | None
    ended_at: Millis | None
    exit_code: int | None = None
    cpu_ms: int | None = None
    peak_memory_mib: int | None = None
    """Peak memory of its largest task."""
    output: str = ""
    """The file that it writes by itself, of several tasks with `%t` for each; empty: it writes into its job's."""


class GrowthObstacle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What keeps a running elastic job from one more worker: other jobs, a limit, or the price."""

    limit: Reason | None = None
    """The limit or quota that one more worker would exceed, with its figures."""
    reserved_for: tuple[JobId, ...] = ()
    """The queued jobs for which the free resources are reserved, the first in the queue first."""
    held_by: tuple[JobId, ...] = ()
    """The jobs on nodes that could hold another worker, those first that hold most of what it needs."""
    too_dear: tuple[NodeName, ...] = ()
    """Nodes with enough free resources whose price is above the job's `max_price`."""
    blocked: tuple[NodeName, ...] = ()
    """Nodes on the job's block list."""


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
    """The reasons for which the job waited as far as this engine observed them, the oldest first."""
    use: tuple[ReplicaUse, ...] = ()
    """The use of the last attempt's replicas that were measured."""
    growth: NoGrowth | None = None
    """For a running elastic job: why it has no more workers; None: not known yet."""
    obstacle: GrowthObstacle | None = None
    """What keeps it from more workers where `growth` is due to other jobs, a limit or the price; None: not known."""
    tasks: tuple[JobRow, ...] = ()
    """For a batch's task or a sweep's trial: all known tasks, including this one, in order of their indices."""
    batch: JobSpec | None = None
    """For a batch's task: the spec that would submit the whole batch again."""

    recorded: bool = False
    """The cluster provides no history: `events` and `waited` are what a cockpit saw while it was connected."""
    steps: tuple[StepRow, ...] = ()
    """On another scheduler's cluster: the job's steps, in their order."""
    address: str = ""
    """For a session: the address that its command has printed; empty: none yet."""
    training: Training | None = None
    """The progress of an elastic job's training; None: the job is not elastic, or its cluster does not know."""
    log_left_out_mib: int = 0
    """The size of what the logs of the last attempt leave out, where they are longer than their limit."""
    scaling: Scaling | None = None
    """On Kubernetes: the change of its number of workers that is not done, or that was tried last and failed."""
    fleet: FleetPlacement | None = None
    """On the host of a fleet of Kubernetes clusters: what the fleet tells of the job; None: the cluster is none."""

    def named_by(self, ref: JobRef) -> JobSpec:
        """Return the spec that is meant by what this was asked for with: the id of a batch means all its tasks."""
        array = self.job.array
        if self.batch is None or array is None or ref.task is not None or ref.job != array.array:
            return self.job.spec
        return self.batch
