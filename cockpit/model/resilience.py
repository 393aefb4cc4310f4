"""How a job gets on when things change: with more or fewer workers, once more after a failure, from its checkpoints."""

from __future__ import annotations

from enum import StrEnum

import msgspec

RECLAIM_SECONDS = 300
"""Between the notice that a machine is taken back, or best effort is not enough any more, and the kill."""


class JobRestart(StrEnum):
    """Whether a failed elastic job begins again (arena's --job-restart-policy)."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"


class WorkerRestart(StrEnum):
    """Whether another takes the place of a worker that has ended (arena's --worker-restart-policy)."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    EXIT_CODE = "ExitCode"
    """Only after an exit of 128 to 255, a signal or a loss: what lies below is a fault that stays."""
    ALWAYS = "Always"
    """However it ended."""


class ReclaimSignal(StrEnum):
    """What a worker is sent as soon as it is recalled. All of them learn of it through the workers' file."""

    NONE = "none"
    SIGTERM = "SIGTERM"


class AfterWait(StrEnum):
    """What becomes of a job that has been suspended below its min for as long as it wants to wait."""

    QUEUE = "queue"
    FAIL = "fail"


class Elastic(msgspec.Struct, frozen=True, kw_only=True):
    """A job that runs with more or fewer workers, one on each of its nodes, as there is room for them."""

    workers: int
    """So many it takes when it starts, if they are free; the job's `nodes`."""
    min_workers: int = 1
    """With fewer it does not run."""
    max_workers: int
    """It grows no further."""
    allow_scaling: bool = True
    """It may grow while it runs."""
    job_restart_policy: JobRestart = JobRestart.NEVER
    backoff_limit: int = 3
    """How often the job and its workers begin again after failures, all in all."""
    worker_restart_policy: WorkerRestart = WorkerRestart.NEVER
    reclaim_signal: ReclaimSignal = ReclaimSignal.NONE
    grace_seconds: int | None = None
    """Between the notice to a recalled worker and its kill; None: as long as an evicted job has, and where a machine is
    taken back `RECLAIM_SECONDS`."""
    max_wait_seconds: int = 600
    """So long it is suspended for want of workers, and so long a worker may not answer."""
    after_wait: AfterWait = AfterWait.QUEUE
    spot: bool = False
    """Also on nodes that their provider takes back when it likes."""
    max_price_milli: int | None = None
    """Only on nodes whose label `price` is no higher, in thousandths; None: whatever they cost."""
    best_effort: bool = False
    """Its workers ask for neither CPUs nor memory, and have no limits (`alibabacloud.com/compute-qos: best-effort`)."""
    supervised: bool = False
    """They are told before they are evicted (`job-supervisor.kube-ai.io/managed-by-job-supervisor: "true"`)."""
    launcher_selector: dict[str, str] = {}
    """Labels that the launcher's node must have."""


class Restart(msgspec.Struct, frozen=True, kw_only=True):
    """A job that fails begins again, under its id."""

    max_restarts: int
    lost_only: bool = False
    """Only where its node fails or its container is lost, as sbatch's --requeue; not where its command fails."""


class ElasticResume(msgspec.Struct, frozen=True, kw_only=True):
    """It starts with fewer nodes where there is not room for all of them."""

    min_nodes: int
    allow_scaling: bool = False
    """One that has fewer takes more while it runs, up to its `nodes`."""


class OnSlow(StrEnum):
    """What follows where iterations are found to be slow."""

    ALERT = "alert"
    """Its owner is told."""
    RESCHEDULE = "reschedule-and-alert"
    """And it goes on elsewhere."""


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """The job prints for each iteration how long its hardware took, and how long it took from end to end."""

    threshold: float
    """More of the whole than this is slow."""
    action: OnSlow = OnSlow.ALERT


class Resume(msgspec.Struct, frozen=True, kw_only=True):
    """A job that is interrupted goes on from its checkpoints, which are in its output folder."""

    max_resumes: int
    """So often after failures. Giving way to another job is none."""
    grace_seconds: int
    """In place of the job's own grace period, also where it gives way: time to write a checkpoint."""
    elastic: ElasticResume | None = None
    """Where it is given, the job has the `elastic` that `sizes` gives."""
    performance: Performance | None = None

    def sizes(self, nodes: int) -> Elastic | None:
        """With how many of its nodes it runs; None: with all."""
        if self.elastic is None:
            return None
        return Elastic(
            workers=nodes,
            min_workers=self.elastic.min_nodes,
            max_workers=nodes,
            allow_scaling=self.elastic.allow_scaling,
        )
