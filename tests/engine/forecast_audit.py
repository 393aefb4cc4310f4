"""Compares what users of a random cluster are shown with what happens afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from cockpit.engine.prediction import changes, expected, outlook
from cockpit.engine.submission.submit import edit
from cockpit.model.forecast import Forecast, Replanned
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.reasons import Explanation, Held, LimitReached, WouldDelay, never_starts
from cockpit.sched.explain import explain, reason_of
from cockpit.sched.forecast.moves import BoundHistory
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.shortage import with_shortage_changed
from tests.engine.audited_cluster import ADMIN, AuditedCluster, Future

A_MOMENT_MS = 100


def without_moments(told: Explanation | None) -> Explanation | None:
    """The explanation without moments of reservations: these move when a job begins to end, which needs no pass.
    Also without the number of jobs that it might preempt, which is known only if its turn to preempt came."""
    if told is None:
        return None
    reason = told.reason
    if isinstance(reason, LimitReached):
        reason = replace(reason, used=round(reason.used, 2))
    told = replace(told, reason=reason)
    reason = replace(told.reason, reserved_at=0) if isinstance(told.reason, WouldDelay) else told.reason
    return replace(
        told, reason=with_shortage_changed(reason, lambda one: replace(one, preemptable=None)), reserved_at=None
    )


def alike(one: Millis | None, other: Millis | None) -> bool:
    """Whether two moments differ by no more than the milliseconds between passes that follow each other at once."""
    return one == other if one is None or other is None else abs(one - other) < A_MOMENT_MS


class Audit:
    """A cluster over some hours, and the contradictions found so far."""

    def __init__(self, seed: int) -> None:
        self.cluster, self.history = AuditedCluster(seed), BoundHistory()
        self.cluster.settle()
        self.found: list[str] = []
        self.counts: Counter[str] = Counter()
        self.bounds: dict[JobId, Millis] = {}
        self.never: dict[JobId, object] = {}
        self.before: dict[JobId, Millis] = {}

    def run(self, steps: int) -> list[str]:
        for number in range(steps):
            what = self.cluster.step()
            try:
                for line in self.check():
                    self.found.append(f"step {number} ({what}): {line}")
            except Exception as error:
                self.found.append(f"step {number} ({what}): {type(error).__name__}: {error}")
                raise
            if self.found:
                return self.found
        return self.found

    def check(self) -> Iterator[str]:
        cluster, predictor = self.cluster, self.cluster.predictor()
        moves = dict(self.history._moves)
        self.history.follow(predictor.basis)
        forecasts = {job.id: predictor.start(job.id) for job in cluster.queue}
        yield from self.check_bounds(forecasts, moves)
        yield from self.check_never(predictor)
        yield from self.check_places(predictor)
        yield from self.check_rows(predictor, forecasts)
        if self.cluster.count % 4 == 0 and cluster.queue:
            yield from self.check_course(forecasts)
            yield from self.check_what_ifs(predictor, cluster.random.choice(cluster.queue))
        for job, error in predictor.faults.items():
            yield f"fault of {job}: {error!r}"

    def check_bounds(self, forecasts: dict[JobId, Forecast], moves: dict) -> Iterator[str]:
        """A job starts by the bound that was shown, or the move of the bound has a cause."""
        cluster = self.cluster
        for job_id, bound in self.bounds.items():
            job = cluster.machine.state.jobs.get(job_id)
            if job is None or job.ended:
                continue
            if job.state is not JobState.QUEUED:
                if job.attempt.placed_at > bound:
                    yield f"job {job_id} started at {job.attempt.placed_at}, its bound was {bound}"
                continue
            noted = self.history.of(job_id)
            if noted != moves.get(job_id, ()):
                self.counts.update(type(each).__name__ for each in noted[-1].causes)
                if Replanned() in noted[-1].causes:
                    yield f"bound of {job_id} moved from {bound} to {noted[-1].after}: replanned"
            elif forecasts[job_id].latest_at != bound:
                yield f"bound of {job_id} moved unnoticed from {bound} to {forecasts[job_id].latest_at}"
            if job.spec.begin_at is not None and bound < job.spec.begin_at:
                yield f"bound of {job_id} before its begin time"
        self.bounds = {job: each.latest_at for job, each in forecasts.items() if each.latest_at is not None}
        self.counts["bounds"] += len(self.bounds)

    def check_never(self, predictor: StartPredictor) -> Iterator[str]:
        """A job that never starts has no predicted start, and starts only after a change of itself or the rules."""
        cluster = self.cluster
        for job_id, stamp in self.never.items():
            job = cluster.machine.state.jobs.get(job_id)
            if job is not None and job.attempt is not None and job.state in OCCUPYING and stamp == self.stamp(job):
                yield f"job {job_id} would never start, and did"
        self.never = {}
        for job in cluster.queue:
            told = reason_of(cluster.plan, job)
            if never_starts(told):
                self.counts["never"] += 1
                self.never[job.id] = self.stamp(job)
                if (at := predictor.start(job.id).likely_at) is not None:
                    yield f"job {job.id} never starts ({told}), and is predicted for {at}"

    def stamp(self, job: Job) -> object:
        state = self.cluster.machine.state
        nodes = [replace(each, state=None, state_reason="") for each in state.nodes.values()]
        reservations = state.reservations if job.spec.reservation else None
        return job.spec, job.partitions, state.cluster, state.accounts, state.quota, repr(nodes), reservations

    def check_places(self, predictor: StartPredictor) -> Iterator[str]:
        """Places are 1, 2, … without those that never start or are held."""
        cluster, places = self.cluster, []
        plan, snapshot = cluster.plan, predictor.snapshot
        never = {job.id for job in cluster.queue if never_starts(reason_of(plan, job))}
        for job in cluster.queue:
            told = explain(snapshot, plan, job.id)
            if told is None:
                yield f"job {job.id} starts by the plan that was carried out"
                continue
            if not never.isdisjoint(told.ahead):
                yield f"{never.intersection(told.ahead)} never start, and are ahead of {job.id}"
            if told.position != len(told.ahead) + 1 and len(told.ahead) < 10:
                yield f"job {job.id} is at {told.position} behind {told.ahead}"
            if (told.place is None) != (job.id in never or isinstance(told.reason, Held)):
                yield f"job {job.id} has place {told.place}: {told.reason}"
            if told.place is not None:
                places.append(told.place)
        if sorted(places) != [*range(1, len(places) + 1)]:
            yield f"places {places}"

    def check_rows(self, predictor: StartPredictor, forecasts: dict[JobId, Forecast]) -> Iterator[str]:
        """The row, the panel and a prediction without any cache say the same."""
        cluster = self.cluster
        anew = cluster.predictor(anew=True)
        # started jobs change which of two equal nodes is chosen for a reservation
        plan = cluster.repeated() if cluster.plan.starts else cluster.plan

        def with_moves(job: JobId, forecast: Forecast) -> Forecast:
            return replace(forecast, moves=self.history.of(job))

        rows = {each.job: each for each in expected(ADMIN, predictor, forecasts, with_moves)}
        for job in cluster.queue:
            panel = outlook(predictor, job, (), with_moves)
            row = rows[job.id].forecast if job.id in rows else Forecast()
            if replace(panel.forecast, after=(), moves=()) != replace(row, after=(), moves=()):
                yield f"row of {job.id}: {row}, panel: {panel.forecast}"
            if anew.start(job.id) != forecasts[job.id]:
                yield f"start of {job.id} with caches {forecasts[job.id]}, without {anew.start(job.id)}"
            if panel.forecast.now:
                yield f"job {job.id} starts now, and the pass left it"
            told = explain(predictor.snapshot, plan, job.id)
            # the plan is older where nothing but time has passed since
            if plan.now == cluster.now and without_moments(panel.explanation) != without_moments(told):
                yield f"job {job.id}: panel {panel.explanation}, pass {told}"

    def is_certain(self) -> bool:
        """Whether the order of the queue does not change, as far as the simulation assumes."""
        state = self.cluster.machine.state
        return state.cluster.priority.kind == "priority/basic" and self.cluster.prompt

    def check_course(self, forecasts: dict[JobId, Forecast]) -> Iterator[str]:
        """Without a history, the likely start is what happens if every job uses its whole time limit."""
        if not self.is_certain():
            return
        really = Future(self.cluster).run()
        for job, forecast in forecasts.items():
            self.counts["course"] += 1
            if not alike(forecast.likely_at, really.get(job)):
                yield f"job {job} is predicted for {forecast.likely_at}, and starts at {really.get(job)}"

    def check_what_ifs(self, predictor: StartPredictor, job: Job) -> Iterator[str]:
        cluster = self.cluster
        told = outlook(predictor, job, changes(cluster.machine, job, ADMIN, predictor))
        for each in told.what_ifs:
            self.counts["what-ifs"] += 1
            if each.forecast.likely_at is None or not (self.is_certain() or each.forecast.now):
                continue
            future = Future(cluster)
            refused = future.act(edit(future.machine, future.job(job.id), each.spec, actor=ADMIN, now=future.now))
            if refused is not None:
                yield f"what-if of {job.id}: {each.change} {each.after} is refused: {refused}"
                continue
            really = future.run().get(job.id)
            if not alike(really, each.forecast.likely_at):
                promised = f"{each.change} {each.after} promises {each.forecast.likely_at}"
                yield f"what-if of {job.id}: {promised}, really {really}"
