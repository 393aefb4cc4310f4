"""The simulated state of the cluster: which job holds what and until when, as jobs start, are evicted, resume and
end."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import msgspec
from msgspec.structs import replace

from cockpit.model.attempt import Attempt, EndCause, Ending, EvictionMode, Leaving, Suspension
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.node import Placement
from cockpit.sched.decisions import Eviction, Growth, SliceSwitch, Start
from cockpit.sched.forecast.runtime_predictors import RuntimePredictor, TimeLimitPredictor, ends_at
from cockpit.sched.snapshot import Snapshot


class JobEnd(msgspec.Struct, frozen=True):
    """The end of a job in the simulation."""

    at: Millis
    job: JobId
    placement: Placement
    ended: Job | None
    """The job as it was until then; None: not known, such as the hold of a container."""
    requeued: Job | None = None
    """The job as it waits again, if it is requeued; else None."""

    @property
    def killed(self) -> bool:
        """Whether the job was ended before it was over, and does not wait again."""
        return self.ended is not None and self.ended.ending is not None and self.requeued is None


class SimulatedState:
    """The simulated state, copied from a snapshot; the snapshot is not changed."""

    def __init__(self, snapshot: Snapshot, predictor: RuntimePredictor) -> None:
        self.jobs, self.occupied, self.ends = dict(snapshot.jobs), dict(snapshot.occupied), dict(snapshot.ends)
        self.nominated, self.suspended = dict.fromkeys(snapshot.nominated), dict.fromkeys(snapshot.suspended)
        self._predictor, self._began_at = predictor, snapshot.now
        # predictions decide when jobs leave; the backfiller still sees `ends`, as it would in reality
        self.leaves_at = {job: self._end_of(self.jobs.get(job), end) for job, end in self.ends.items()}
        """When each job that holds resources is predicted to end; `ends` has the latest moments by time limits."""
        self._leaving = [(at, job) for job, at in self.leaves_at.items()]
        """A heap of predicted ends; entries that are no longer true are skipped."""
        heapify(self._leaving)
        self.elastic = dict.fromkeys(snapshot.elastic)
        self._recalls = [(each.kill_at, job) for job in snapshot.elastic for each in self.jobs[job].leaving]
        """A heap of moments at which workers leave jobs that keep running, with the jobs."""
        heapify(self._recalls)
        self._runs_on = {job: self._remaining(self.jobs[job]) for job in self.suspended}
        """For suspended jobs: how many milliseconds they will run after they resume."""

    def next_end(self) -> Millis | None:
        # a changed end leaves its old entry in the heap; it no longer agrees with `leaves_at`
        while self._leaving and self.leaves_at.get(self._leaving[0][1]) != self._leaving[0][0]:
            heappop(self._leaving)
        return self._leaving[0][0] if self._leaving else None

    def leave(self, until: Millis) -> Iterator[JobEnd]:
        """Let the jobs end whose predicted end has come by then, one after the other."""
        while (at := self.next_end()) is not None and at <= until:
            _, job = heappop(self._leaving)
            yield self._end_job(at, job)

    def begin(self, job: Job, start: Start, now: Millis) -> None:
        """Let a waiting job start: it holds its placement until its predicted end."""
        attempt = Attempt(
            number=1,
            spec_index=start.spec_index,
            placement=start.placement,
            placed_at=now,
            replicas=(),
            partition=start.partition,
            billing=start.billing,
        )
        # straight to running: checks, staging and prolog take no time here
        self.nominated.pop(job.id, None)
        self.jobs[job.id] = replace(job, state=JobState.RUNNING, state_since=now, attempt=attempt, clears=())
        limit = Millis(now + 1000 * job.spec.time_limit_seconds)
        self._hold(job.id, start.placement, limit, Millis(now + self._predictor.run_ms(job)))
        if job.spec.elastic is not None:
            self.elastic[job.id] = None

    def grow(self, growth: Growth) -> None:
        """Add workers to an elastic job."""
        self._resize(growth.job, (*self.occupied[growth.job], *growth.placement))

    def next_shrink(self) -> Millis | None:
        """Return the next moment at which workers leave a job that keeps running; None: there are none."""
        return self._recalls[0][0] if self._recalls else None

    def shrink(self, until: Millis) -> list[JobId]:
        """Let workers leave whose grace is over by then; return their jobs."""
        shrunk: dict[JobId, None] = {}
        while self._recalls and self._recalls[0][0] <= until:
            at, job_id = heappop(self._recalls)
            job = self.jobs.get(job_id)
            # several workers of the job may be due at once: the later entries of the heap then find none left
            out = {each.rank for each in job.leaving if each.kill_at <= at} if job is not None else set()
            if job is not None and out and job_id in self.occupied:
                rest = tuple([each for each in job.leaving if each.rank not in out])
                self.jobs[job_id] = replace(job, leaving=rest)
                self._resize(job_id, tuple([part for part in self.occupied[job_id] if part.rank not in out]))
                shrunk[job_id] = None
        return list(shrunk)

    def _resize(self, job_id: JobId, held: Placement) -> None:
        job = self.jobs[job_id]
        attempt = job.attempt
        assert attempt is not None
        # workers are alike, so the billing follows their number
        billing = attempt.billing * len(held) / len(attempt.placement)
        self.jobs[job_id] = replace(job, attempt=replace(attempt, placement=held, billing=billing))
        self.occupied[job_id] = held

    def _recall(self, each: Eviction, job: Job, now: Millis) -> None:
        # at least 1 ms, so that the simulation gets to a later moment
        kill_at = Millis(now + max(1, 1000 * each.grace_seconds))
        leaving = [
            Leaving(rank=rank, at=now, kill_at=kill_at, for_job=each.for_job, grounds=each.grounds)
            for rank in each.ranks
        ]
        self.jobs[job.id] = replace(job, leaving=(*job.leaving, *leaving))
        heappush(self._recalls, (kill_at, job.id))

    def evict(self, each: Eviction, now: Millis) -> None:
        """Evict a job: suspend it, or let it or some of its workers end after the grace time."""
        job = self.jobs[each.job]
        taker = self.jobs[each.for_job]
        if each.mode is EvictionMode.SUSPEND:
            self._suspend(job, (each.for_job,), now)
            return
        self.jobs[taker.id] = replace(taker, clears=(*taker.clears, job.id))
        # a suspension frees the CPUs at once, so only the other modes nominate the job that they serve
        self.nominated[taker.id] = None
        if each.mode is EvictionMode.SHRINK:
            self._recall(each, job, now)
            return
        kill_at = Millis(now + max(1, 1000 * each.grace_seconds))
        requeue = each.mode is EvictionMode.REQUEUE
        ending = Ending(cause=EndCause.PREEMPTED, at=now, kill_at=kill_at, for_job=each.for_job, requeue=requeue)
        self.jobs[job.id] = replace(job, ending=ending)
        # it may end by itself before its grace time is over
        self._hold(job.id, self.occupied[job.id], kill_at, min(kill_at, self.leaves_at.get(job.id, kill_at)))

    def switch(self, switch: SliceSwitch, now: Millis) -> None:
        """Resume a suspended job, and suspend the jobs whose time slice is over."""
        for other in switch.others:
            self._suspend(self.jobs[other], switch.instead, now)
        job, runs_on = self.jobs[switch.job], self._runs_on.pop(switch.job, 0)
        assert job.attempt is not None
        # the time limit does not run while the job is suspended, so its end moves by that long
        suspended_ms = job.attempt.suspended_ms + now - job.state_since
        attempt = replace(job.attempt, resumed_at=now, suspended_ms=suspended_ms)
        self.jobs[job.id] = replace(job, state=JobState.RUNNING, state_since=now, suspension=None, attempt=attempt)
        self.suspended.pop(job.id, None)
        limit = Millis(attempt.placed_at + suspended_ms + 1000 * job.spec.time_limit_seconds)
        self._hold(job.id, attempt.placement, limit, Millis(now + max(1, runs_on)))

    def _hold(self, job: JobId, placement: Placement, limit: Millis, leaves_at: Millis) -> None:
        self.occupied[job], self.ends[job], self.leaves_at[job] = placement, limit, leaves_at
        heappush(self._leaving, (leaves_at, job))

    def _suspend(self, job: Job, for_jobs: tuple[JobId, ...], now: Millis) -> None:
        suspension = Suspension(for_jobs=for_jobs)
        self.jobs[job.id] = replace(job, state=JobState.SUSPENDED, state_since=now, suspension=suspension)
        # a suspended job keeps its memory and cards, and its time limit does not run
        self.occupied[job.id] = tuple([replace(part, cpus=0) for part in self.occupied[job.id]])
        self.suspended[job.id] = None
        self.ends.pop(job.id, None)
        # the old entry stays in the heap, and is skipped there
        self._runs_on[job.id] = self.leaves_at.pop(job.id, now) - now

    def _end_job(self, at: Millis, job_id: JobId) -> JobEnd:
        """Take the job out of all that it holds; a job that was ended to be requeued waits again."""
        placement = self.occupied.pop(job_id)
        self.ends.pop(job_id, None)
        self.leaves_at.pop(job_id, None)
        self.elastic.pop(job_id, None)
        job = self.jobs.pop(job_id, None)
        # gone from `jobs` too: a dependency on it counts as settled once no live job has its id
        if job is None or job.ending is None or not job.ending.requeue:
            return JobEnd(at, job_id, placement, job)
        self.jobs[job_id] = replace(job, state=JobState.QUEUED, state_since=at, ending=None, leaving=())
        return JobEnd(at, job_id, placement, job, self.jobs[job_id])

    def _end_of(self, job: Job | None, limit: Millis) -> Millis:
        """Return the predicted end of a running job, or the end of the hold of a held container."""
        end = limit
        if job is not None and job.ending is not None:
            # it has its grace to end, by which the scheduler does not plan: its time limit may be over already
            end = job.ending.kill_at
        elif job is not None and job.attempt is not None and job.state in OCCUPYING:
            # for a job that uses its whole limit, the snapshot has the exact end: the limit counts from the start of
            # the command, not from the placement
            usual = ends_at(job, self._predictor, self._began_at)
            whole = ends_at(job, TimeLimitPredictor(), self._began_at)
            end = limit if usual >= whole else min(limit, usual)
        return max(end, Millis(self._began_at + 1))

    def _remaining(self, job: Job) -> int:
        assert job.attempt is not None
        ran = job.state_since - job.attempt.placed_at - job.attempt.suspended_ms
        return max(1, self._predictor.run_ms(job, ran) - ran)
