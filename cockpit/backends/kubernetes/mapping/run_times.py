"""How long jobs run and when they end: by their deadlines, and by how long similar jobs of the user ran.

A job of which neither says anything has no known run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.planning import job_record
from cockpit.backends.kubernetes.objects.meta import millis
from cockpit.model.attempt import Attempt
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import ENDED, Job
from cockpit.model.spec import NO_LIMIT_SECONDS
from cockpit.sched.forecast.history import History, history_of
from cockpit.sched.forecast.runtime_predictors import MeanRuntimePredictor, RuntimePredictor


class RunTimes:
    """Run times by what is known at one moment."""

    def __init__(
        self, jobs: Mapping[JobId, KubeJob], predictor: Callable[[History], RuntimePredictor] = MeanRuntimePredictor
    ) -> None:
        """`jobs`: all that the cluster still has. `predictor`: makes the likely run time of the history, or a careful
        one."""
        self._predictor = predictor(_history(jobs.values()))

    def run_ms(self, job: KubeJob, number: JobId, elapsed_ms: int = -1) -> int | None:
        """Return how long the job runs from its start; None: unknown. `elapsed_ms`: how long it has run already, below
        0: it has not started."""
        run = self._predictor.run_ms(_of_user(job, number), elapsed_ms)
        return run if run < 1000 * NO_LIMIT_SECONDS else None

    def end_at(self, job: KubeJob, number: JobId, now: Millis) -> Millis | None:
        """Return when a job without waiting pods ends; None: unknown."""
        starts = [millis(pod.now.start_time) for pod in job.placed]
        begun = millis(job.workload.now.start_time) if job.workload is not None else None
        begun = begun or min((each for each in starts if each is not None), default=None)
        # A deadline runs from the moment when the job or pod was accepted, also while its image is pulled.
        since = job.started_at or (begun if job.deadline_seconds is not None else None)
        if since is None:
            return None
        run = self.run_ms(job, number, now - since)
        if run is None:
            return None
        end_at = (
            since + run
            if job.deadline_seconds is None or begun is None
            else min(since + run, begun + 1000 * job.deadline_seconds)
        )
        # One that has outlived its deadline is about to end.
        return Millis(max(now, end_at))


def _of_user(job: KubeJob, number: JobId) -> Job:
    """Return the record of a job. Jobs without a user count as those of one user for each namespace."""
    record = job_record(job, number)
    owner = UserName(job.user or f"namespace {job.meta.namespace}")
    return replace(record, submitter=replace(record.submitter, name=owner))


def _history(jobs: Iterable[KubeJob]) -> History:
    """Return how long the ended jobs ran that the cluster still has."""
    ended = sorted((job for job in jobs if job.state in ENDED and job.started_at), key=lambda job: job.ended_at or 0)
    return history_of([_ran(_of_user(job, JobId(0)), job.started_at or Millis(0)) for job in ended])


def _ran(record: Job, started_at: Millis) -> Job:
    return replace(record, attempt=Attempt(number=1, spec_index=0, placement=(), placed_at=started_at, replicas=()))
