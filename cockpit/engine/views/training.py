"""Computes the progress of an elastic job's training from what its workers report: speed, steps lost, likely ends."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cockpit.engine.steps import leader
from cockpit.engine.timers import latest_end
from cockpit.engine.views.spending import attempts, extra_of
from cockpit.model.attempt import EndCause
from cockpit.model.ids import Millis, ReplicaId
from cockpit.model.job import JobState
from cockpit.model.steps import Interruption, SizeForecast, SizeSpeed, SpeedSource, Training
from cockpit.sched.eviction.shrinking import staying

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cockpit.engine.steps import StepLog
    from cockpit.model.attempt import Attempt
    from cockpit.model.job import Job
    from cockpit.model.steps import StepReport

LEAST_STEPS: Final = 3
"""Steps with a number of workers from which their speed counts as measured."""
_UNINTERRUPTED: Final = frozenset({None, EndCause.START_FAILED})
"""Causes of an attempt's end that cost no step, as nothing had run."""


def training(job: Job, log: StepLog, now: Millis) -> Training | None:
    """Return the progress of an elastic job's training; None: the job is not elastic."""
    if job.spec.elastic is None:
        return None
    last = _last_report(job, log)
    speeds = _speeds(job, log)
    resumptions = tuple([each for attempt in attempts(job) for each in attempt.resumptions])
    limit_at = latest_end(job) if job.state is JobState.RUNNING else None
    return Training(
        step=last.step if last is not None else None,
        total=last.total if last is not None else None,
        # Also of workers that have left: the checkpoint outlives the worker that saved it.
        checkpoint=max((each.checkpoint for each in _reports(job, log) if each.checkpoint is not None), default=None),
        counted=last is not None and last.counted,
        speeds=tuple(speeds),
        resumptions=resumptions,
        unknown=_unknown(job),
        ends=tuple(_ends(job, last, speeds, now)) if limit_at is not None else (),
        limit_at=limit_at,
        extra=extra_of(job, now),
    )


def _last_report(job: Job, log: StepLog) -> StepReport | None:
    """Return the report that says how far the training is: that of the running ring, else of the last attempt."""
    first = leader(job, log)
    if first is not None:
        return first[1]
    for attempt in reversed(attempts(job)):
        stored = [each.steps for each in attempt.replicas if each.steps is not None]
        if stored:
            return max(stored, key=lambda each: each.step)
    return None


def _speeds(job: Job, log: StepLog) -> list[SizeSpeed]:
    """Return what was measured by number of workers, over all workers and attempts: each has measured the same ring."""
    sums: defaultdict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for report in _reports(job, log):
        for each in report.speeds:
            steps, ms = sums[each.workers]
            sums[each.workers] = steps + each.steps, ms + each.ms
    return [SizeSpeed(workers, *sums[workers]) for workers in sorted(sums)]


def _reports(job: Job, log: StepLog) -> Iterator[StepReport]:
    for attempt in attempts(job):
        for replica in attempt.replicas:
            report = replica.steps or log.of(ReplicaId(job.id, attempt.number, replica.rank))
            if report is not None:
                yield report


def _unknown(job: Job) -> int:
    """Return the number of interruptions after which it is not known how the training went on."""
    ran = [each for each in attempts(job) if each.ran]
    # Each attempt that follows another one begins with a checkpoint, of which its first resumption tells.
    restarts = sum(1 for before, after in pairwise(ran) if _is_unknown(before, after))
    ring = job.attempt.ring if job.attempt is not None and job.attempt.ran else None
    # Growth may cost steps too, but a script that does not report them has not been interrupted by others.
    if job.attempt is None or ring is None or ring.cause is Interruption.GREW:
        return restarts
    return restarts + all(each.workers_version != ring.version for each in job.attempt.resumptions)


def _is_unknown(before: Attempt, after: Attempt) -> bool:
    if before.cause in _UNINTERRUPTED:
        return False
    first = next(iter(after.resumptions), None)
    return first is None or first.lost is None


def _ends(job: Job, last: StepReport | None, speeds: Sequence[SizeSpeed], now: Millis) -> Iterator[SizeForecast]:
    """Yield the predicted end with each number of workers that is of interest; none without a measured speed."""
    measured = {each.workers: each.per_second for each in speeds if each.steps >= LEAST_STEPS and each.per_second}
    if job.attempt is None or not measured:
        return
    present = max(1, len(staying(job.attempt.placement, job)))
    least, most = job.spec.least_nodes, job.spec.most_nodes
    for workers in sorted({least, present, (present + most + 1) // 2, most}):
        per_second, source = speed_with(workers, {size: speed for size, speed in measured.items() if speed})
        left = max(0, last.total - last.step) if last is not None and last.total is not None else None
        end = None if left is None or not per_second else Millis(now + int(1000 * left / per_second))
        yield SizeForecast(workers=workers, per_second=per_second, source=source, end_at=end)


def speed_with(workers: int, measured: Mapping[int, float]) -> tuple[float, SpeedSource]:
    """Return the steps per second with a number of workers, and how it is known. `measured`: by number of workers.

    A step takes a part that more workers do not shorten and a part that they share: t(n) = a + b / n, Amdahl's law.
    Both are fitted to the measured sizes by least squares. One size alone says nothing about a: then it is taken as 0.
    """
    if workers in measured:
        return measured[workers], SpeedSource.MEASURED
    if len(measured) == 1:
        ((size, per_second),) = measured.items()
        return per_second * workers / size, SpeedSource.PROPORTIONAL
    parts = [(1 / size, 1 / per_second) for size, per_second in measured.items()]
    mean_x, mean_t = (sum(each) / len(parts) for each in zip(*parts, strict=True))
    slope = sum((x - mean_x) * (t - mean_t) for x, t in parts) / sum((x - mean_x) ** 2 for x, _ in parts)
    # Neither part can be negative; noise in the measurement can make it look so.
    shared = min(max(slope, 0.0), mean_t / mean_x)
    fixed = mean_t - shared * mean_x
    return 1 / (fixed + shared / workers), SpeedSource.ESTIMATED
