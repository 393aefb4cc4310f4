"""Settings of a job for changes (more or fewer workers, restarts after failures, resuming from checkpoints), and the
reasons why an elastic job does not grow."""

from __future__ import annotations

from enum import StrEnum

import msgspec

RECLAIM_SECONDS = 300
"""The time between the notice that a node is reclaimed, or too short of memory for best-effort jobs, and the kill."""


class JobRestart(StrEnum):
    """Whether a failed elastic job is requeued (arena's --job-restart-policy)."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"


class WorkerRestart(StrEnum):
    """Whether a worker that has ended is replaced (arena's --worker-restart-policy)."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    EXIT_CODE = "ExitCode"
    """Only after an exit code of 128 to 255, a signal or a lost container; a lower code is a permanent error."""
    ALWAYS = "Always"
    """After any end, success included."""


class ReclaimSignal(StrEnum):
    """The signal that a worker gets as soon as it is recalled. The file of workers names recalled ones in any case."""

    NONE = "none"
    SIGTERM = "SIGTERM"


class AfterWait(StrEnum):
    """What happens to a job that was suspended below its least number of workers for as long as it waits."""

    QUEUE = "queue"
    FAIL = "fail"


class Elastic(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an elastic job, which runs with a varying number of workers, one on each of its nodes."""

    workers: int
    """The number of workers that it starts with, if they fit; the job's `nodes`."""
    min_workers: int = 1
    """The least number of workers with which it runs."""
    max_workers: int
    """The number of workers to which it may grow."""
    allow_scaling: bool = True
    """Whether it may grow while it runs."""
    job_restart_policy: JobRestart = JobRestart.NEVER
    backoff_limit: int = 3
    """The most retries of the job and its workers together."""
    worker_restart_policy: WorkerRestart = WorkerRestart.NEVER
    reclaim_signal: ReclaimSignal = ReclaimSignal.NONE
    grace_seconds: int | None = None
    """The time between the notice to a recalled worker and its kill; None: the grace period of evicted jobs, and
    `RECLAIM_SECONDS` where a machine is reclaimed."""
    max_wait_seconds: int = 600
    """The longest time that it stays suspended for lack of workers, and that a worker may not answer."""
    after_wait: AfterWait = AfterWait.QUEUE
    spot: bool = False
    """Whether it may use spot nodes, which their provider may reclaim at any time."""
    max_price_milli: int | None = None
    """The highest price of nodes that it starts and grows on, in thousandths; None: any price."""
    shrink_above_price: bool = False
    """Whether its workers leave nodes whose present price rises above that."""
    best_effort: bool = False
    """Whether its workers request no CPUs and memory, and have no limits (`alibabacloud.com/compute-qos: best-effort`).
    """
    supervised: bool = False
    """Whether workers are notified before they are evicted (`job-supervisor.kube-ai.io/managed-by-job-supervisor`)."""
    launcher_selector: dict[str, str] = {}
    """Labels that the launcher's node must have."""


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a job that is requeued after a failure, under the same id."""

    max_restarts: int
    lost_only: bool = False
    """Whether only a failed node or a lost container restarts it (sbatch's --requeue), and not a failed command."""


class ElasticResume(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a resumable job that may start with fewer nodes than it asks for."""

    min_nodes: int
    """The least number of nodes with which it starts."""
    allow_scaling: bool = False
    """Whether it takes more nodes while it runs, up to its `nodes`."""


class OnSlow(StrEnum):
    """What happens when a job's iterations are slow."""

    ALERT = "alert"
    """Its owner is notified."""
    RESCHEDULE = "reschedule-and-alert"
    """Its owner is notified, and the job is moved to other nodes."""


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """The watch over a job that prints for each iteration its hardware time and its time from end to end."""

    threshold: float
    """The share of the hardware time in the whole above which an iteration is slow, from 0 to 1."""
    action: OnSlow = OnSlow.ALERT


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a job that resumes from the checkpoints in its output folder after an interruption."""

    max_resumes: int
    """The most retries after failures. Evictions do not count."""
    grace_seconds: int
    """The grace period, in place of the job's own and also for evictions: time to write a checkpoint."""
    elastic: ElasticResume | None = None
    """Settings for fewer nodes, from which `sizes` makes the job's `elastic`; None: it always has all its nodes."""
    performance: Performance | None = None

    def sizes(self, nodes: int) -> Elastic | None:
        """Return the job's elastic settings if it may run with fewer than `nodes` nodes, else None."""
        if self.elastic is None:
            return None
        return Elastic(
            workers=nodes,
            min_workers=self.elastic.min_nodes,
            # The job asked for `nodes`; it never gets more than that.
            max_workers=nodes,
            allow_scaling=self.elastic.allow_scaling,
        )


class NoGrowth(StrEnum):
    """The first reason why a running elastic job takes no further worker now."""

    AT_MAXIMUM = "most"
    """The job has its largest number of workers."""
    SCALING_OFF = "fixed"
    """The job was submitted with `allow_scaling` off."""
    WORKERS_MISSING = "not_whole"
    """Not all of its workers run: some start or have ended, or the job is suspended."""
    BEING_EVICTED = "gives_way"
    """The job or some of its workers are being evicted for another job."""
    NO_FREE_NODE = "no_room"
    """No node has enough free resources for another worker."""
    RESERVED = "kept"
    """The free resources are reserved for queued jobs."""
    PRICE_TOO_HIGH = "price"
    """The nodes with enough free resources cost more than the job's `max_price` now."""
    LIMIT_REACHED = "rules"
    """A limit or a quota is reached."""


class ScalePhase(StrEnum):
    """How far a change of a job's number of workers is."""

    WAITING = "waiting"
    """Its controller has not begun."""
    RUNNING = "running"
    FAILED = "failed"


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an elastic job's number of workers that a controller of its cluster carries out."""

    name: str
    """The kind and the name of the change: `ScaleOut train-x7k2p`."""
    change: int
    """By how many workers the job is to change; negative: fewer."""
    phase: ScalePhase
    message: str = ""
    """Why it has failed, in the controller's words."""
