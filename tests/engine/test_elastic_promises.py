"""Elastic jobs under reclaims, failures, silence, prices and time, compared after each step with a plain model of what
is required. `COCKPIT_EXAMPLES` sets the number of runs.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cockpit.engine import decide
from cockpit.engine.effects import SignalKind, SignalReplica, WriteWorkersFile
from cockpit.engine.nodes import pricing, service
from cockpit.engine.workers import handle_silent_worker, unblock
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.job import ENDED, OCCUPYING, JobState
from cockpit.model.resilience import AfterWait, Elastic, JobRestart, WorkerRestart
from tests.builders import SECOND, a_node, a_spec
from tests.engine import elastic_model as model
from tests.engine.driver import HOLD_SECONDS, EngineDriver

NODES = [f"n{number}" for number in range(1, 6)]
DEAR, CHEAP = 500, 300
"""Prices of a node, in thousandths, of which jobs pay `MOST_PRICE` at most."""
MOST_PRICE = 400
GRACE = 20
PICK = st.integers(0, 99)


class ElasticPromises(RuleBasedStateMachine):
    """Five nodes, on each of which one worker fits."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = EngineDriver(*(a_node(name, cpus=4, cards=1) for name in NODES))
        self.jobs: dict[JobId, model.ModelJob] = {}
        self.others: set[JobId] = set()
        """Jobs of a fixed size, which only occupy cards."""
        self.prices = dict.fromkeys(NODES, CHEAP)
        self.drained: set[str] = set()
        self.count = 0
        self.prompt = False

    @initialize(prompt=st.sampled_from([True, True, False]))
    def choose(self, prompt: bool) -> None:
        """`prompt`: whether the scheduler runs after each step, as it mostly does."""
        self.prompt = prompt

    # what can be chosen

    def running(self) -> list[JobId]:
        return [job for job, each in self.jobs.items() if each.state == model.RUNNING]

    def unended(self) -> list[tuple[JobId, int]]:
        """The workers whose commands may still end."""
        return [
            (job, rank) for job in self.running() for rank, each in self.jobs[job].workers.items() if each.code is None
        ]

    def free(self) -> list[str]:
        taken = {part.node for held in self.engine.machine.occupied.values() for part in held}
        return [name for name in NODES if name not in taken | self.drained]

    # rules

    @precondition(lambda self: sum(each.state in model.LIVE for each in self.jobs.values()) < 3)
    @rule(
        least=st.integers(1, 2),
        more=st.integers(0, 2),
        most=st.integers(0, 2),
        grows=st.sampled_from([True, True, False]),
        grace=st.sampled_from([None, None, 30]),
        max_wait=st.sampled_from([60, 600]),
        after=st.sampled_from(AfterWait),
        workers=st.sampled_from(WorkerRestart),
        job=st.sampled_from(JobRestart),
        limit=st.sampled_from([0, 1, 3]),
        pays=st.sampled_from([None, None, False, True]),
        late=st.sampled_from([False, False, True]),
    )
    def submit(
        self,
        least: int,
        more: int,
        most: int,
        grows: bool,
        grace: int | None,
        max_wait: int,
        after: AfterWait,
        workers: WorkerRestart,
        job: JobRestart,
        limit: int,
        pays: bool | None,
        late: bool,
    ) -> None:
        """`pays`: whether it leaves nodes that become too dear for it; None: it pays any price."""
        self.count += 1
        price = None if pays is None else MOST_PRICE
        sizes = Elastic(
            workers=least + more,
            min_workers=least,
            max_workers=least + more + most,
            allow_scaling=grows,
            grace_seconds=grace,
            max_wait_seconds=max_wait,
            after_wait=after,
            worker_restart_policy=workers,
            job_restart_policy=job,
            backoff_limit=limit,
            spot=price is not None,
            max_price_milli=price,
            shrink_above_price=bool(pays),
        )
        spec = a_spec(
            f"job-{self.count}", cpus=4, card_milli=1000, nodes=least + more, elastic=sizes, grace_seconds=GRACE,
            time_limit_seconds=10**7,
        )  # fmt: skip
        (number,) = self.engine.submit(spec)
        fails = after is AfterWait.FAIL
        self.jobs[number] = model.ModelJob(
            model.Policy(
                least, least + more, least + more + most, grows, grace, max_wait, fails, workers, job, limit, price,
                bool(pays),
            )
        )  # fmt: skip
        self.schedule(late)

    @precondition(lambda self: self.running() and len(self.others) < 2)
    @rule(nodes=st.integers(1, 2))
    def occupy(self, nodes: int) -> None:
        self.count += 1
        self.others |= set(
            self.engine.submit(
                a_spec(f"job-{self.count}", cpus=4, card_milli=1000, nodes=nodes, time_limit_seconds=10**7)
            )
        )

    @precondition(lambda self: self.others)
    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        job = sorted(self.others)[pick % len(self.others)]
        self.others.remove(job)
        self.engine.act(decide.cancel(self.engine.job(job), self.engine.now, None))
        if self.engine.job(job).state in OCCUPYING:
            for rank in range(self.engine.job(job).spec.nodes):
                self.engine.ended(job, rank, code=0)

    @precondition(lambda self: any(each.state in model.LIVE for each in self.jobs.values()))
    @rule(late=st.booleans())
    def schedule(self, late: bool) -> None:
        """`late`: the commands of the new workers start later."""
        self._schedule()
        if not late:
            self.start()

    def _schedule(self) -> None:
        free = self.free()
        waiting = [job for job, each in self.jobs.items() if each.state in {model.QUEUED, model.SUSPENDED}]
        others = any(self.engine.job(job).state is JobState.QUEUED for job in self.others)
        growing = [job for job in self.running() if self.jobs[job].may_grow]
        self.engine.schedule()
        for job in waiting:
            self._is_started_well(job, free)
        for job in self.running():
            if job not in waiting:
                self._has_grown_well(job, free, may=job in growing)
        if len(waiting) == 1 and not others:
            self._started_if_it_fits(waiting[0], free)
        if not waiting and not others:
            for job in growing:
                self._grew_if_it_fits(job)
        for job in self.others:
            if self.engine.job(job).state in OCCUPYING:
                self.engine.started(job)

    @precondition(
        lambda self: not all(each.started for job in self.running() for each in self.jobs[job].workers.values())
    )
    @rule()
    def start(self) -> None:
        for job in self.running():
            self.engine.started(job)
            self.jobs[job].start()

    @precondition(lambda self: self.running())
    @rule(node=st.sampled_from(NODES), seconds=st.sampled_from([0, 10, 300]))
    def reclaim(self, node: str, seconds: int) -> None:
        self._recalls(
            {node}, seconds, service.take_back(self.engine.machine, node, "spot", "root", self.engine.now, seconds)
        )
        self.drained.add(node)

    @precondition(lambda self: self.drained)
    @rule(nodes=st.sets(st.sampled_from(NODES), min_size=1))
    def resume_nodes(self, nodes: set[str]) -> None:
        for node in nodes & self.drained:
            self.engine.act(service.resume(self.engine.machine, node, "root"))
        self.drained -= nodes

    @precondition(lambda self: self.running())
    @rule(dear=st.sets(st.sampled_from(NODES[3:])))
    def change_prices(self, dear: set[str]) -> None:
        self.prices = {name: DEAR if name in dear else CHEAP for name in NODES}
        prices = {NodeName(name): price for name, price in self.prices.items()}
        self._recalls(dear, None, pricing.prices_changed(self.engine.machine, prices, self.engine.now))

    def _recalls(self, nodes: set[str], seconds: int | None, decision: object) -> None:
        """The model and the engine let jobs leave the nodes; every worker of these jobs is notified, and none is killed
        before its time."""
        before = {job: str(each) for job, each in self.jobs.items()}
        for each in self.jobs.values():
            if seconds is not None or each.policy.leaves_dear_nodes:
                each.leaves(nodes, seconds, self.engine.now)
        self.engine.effects.clear()
        self.engine.act(decision)
        changed = [job for job, each in self.jobs.items() if str(each) != before[job]]
        told = {each.replica for each in self.engine.effects if isinstance(each, WriteWorkersFile)}
        expected = {
            self._replica(job, rank)
            for job in changed
            for rank, each in self.jobs[job].workers.items()
            if each.code is None
        }
        assert told == expected, "every worker gets the notice"
        self._kills_are_due()

    @precondition(lambda self: self.unended())
    @rule(pick=PICK, code=st.sampled_from([0, 0, 1, 127, 128, 139, 255]))
    def exit(self, pick: int, code: int) -> None:
        job, rank = self.unended()[pick % len(self.unended())]
        self.jobs[job].exits(rank, code, self.engine.now)
        self._ends(job, rank, ExitStatus(code=code))

    @precondition(lambda self: any(self.jobs[job].ending or self.jobs[job].is_shrinking for job in self.running()))
    @rule(pick=PICK, code=st.sampled_from([0, 1, 255]))
    def exit_those_that_have_to(self, pick: int, code: int) -> None:
        """As scripts do that have got the notice."""
        jobs = [job for job in self.running() if self.jobs[job].ending or self.jobs[job].is_shrinking]
        job = jobs[pick % len(jobs)]
        whole = bool(self.jobs[job].ending)
        for rank, each in list(self.jobs[job].workers.items()):
            if each.code is None and (whole or each.kill_at is not None):
                self.jobs[job].exits(rank, code, self.engine.now)
                self._ends(job, rank, ExitStatus(code=code))

    @precondition(lambda self: self.unended())
    @rule(pick=PICK)
    def lose(self, pick: int) -> None:
        job, rank = self.unended()[pick % len(self.unended())]
        if all(each.started for each in self.jobs[job].workers.values()):
            self.jobs[job].lost(rank, self.engine.now)
            self._ends(job, rank, ExitStatus(lost="its container disappeared"))

    @precondition(lambda self: self.unended())
    @rule(pick=PICK, waited=st.booleans(), recalled=st.booleans())
    def fall_silent(self, pick: int, waited: bool, recalled: bool) -> None:
        """`waited`: so long that the job's longest wait is over; `recalled`: rather a worker that has to end."""
        leaving = [(job, rank) for job, rank in self.unended() if self.jobs[job].workers[rank].kill_at is not None]
        among = leaving if recalled and leaving else self.unended()
        job, rank = among[pick % len(among)]
        if not all(each.started for each in self.jobs[job].workers.values()):
            return
        wait = self.jobs[job].policy.max_wait
        self.pass_time(wait if waited else 1)
        silent = SECOND * (wait if waited else wait - 1)
        if waited:
            self.jobs[job].silent(rank, self.engine.now)
        self.engine.act(handle_silent_worker(self.engine.machine, self._replica(job, rank), silent, self.engine.now))

    @precondition(lambda self: self.jobs)
    @rule(seconds=st.sampled_from([1, 10, 20, 60, 300, 600]))
    def pass_time(self, seconds: int) -> None:
        self.engine.effects.clear()
        self.engine.pass_time(seconds * SECOND)
        self.engine.pass_time(0)
        for each in self.jobs.values():
            each.passes(self.engine.now)
        self._kills_are_due()

    @precondition(lambda self: any(self.jobs[job].blocked for job in self.running()))
    @rule(pick=PICK)
    def lift_the_block_list(self, pick: int) -> None:
        jobs = [job for job in self.running() if self.jobs[job].blocked]
        job = jobs[pick % len(jobs)]
        node = sorted(self.jobs[job].blocked)[pick % len(self.jobs[job].blocked)]
        assert self.engine.act(unblock(self.engine.job(job), NodeName(node))) is None
        self.jobs[job].blocked.remove(node)

    @precondition(lambda self: any(each.state in model.LIVE for each in self.jobs.values()))
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        jobs = [job for job, each in self.jobs.items() if each.state in model.LIVE and each.ending in model.GOES_ON]
        if jobs:
            job = jobs[pick % len(jobs)]
            self.jobs[job].stop(self.engine.now, GRACE)
            self.engine.act(decide.cancel(self.engine.job(job), self.engine.now, None))

    # comparisons

    def _replica(self, job: JobId, rank: int) -> ReplicaId:
        attempt = self.engine.job(job).attempt
        assert attempt is not None
        return ReplicaId(job, attempt.number, rank)

    def _ends(self, job: JobId, rank: int, status: ExitStatus) -> None:
        self.engine.act(
            decide.replica_ended(self.engine.machine, self._replica(job, rank), status, self.engine.now, HOLD_SECONDS)
        )

    def _kills_are_due(self) -> None:
        """No worker is killed before its grace period is over, and none gets SIGTERM for its reclaim alone (EL-02)."""
        for each in self.engine.effects:
            if not isinstance(each, SignalReplica) or each.replica.job not in self.jobs:
                continue
            job = self.jobs[each.replica.job]
            worker = job.workers[each.replica.rank]
            if job.ending in {"failed", "stopped"}:
                continue
            assert each.force is SignalKind.KILL
            assert self.engine.now >= min(
                [job.kill_at] * bool(job.ending) + [worker.kill_at] * (worker.kill_at is not None)
            )

    def _placement(self, job: JobId) -> dict[int, str]:
        found = self.engine.job(job)
        return {} if found.attempt is None or found.state not in OCCUPYING else {
            part.rank: str(part.node) for part in found.attempt.placement
        }  # fmt: skip

    def _is_started_well(self, job: JobId, free: list[str]) -> None:
        """EL-01: with at least its least number of workers, and at most as many as it starts with."""
        places, promised = self._placement(job), self.jobs[job]
        if not places:
            return
        assert promised.policy.least <= len(places) <= promised.policy.wanted
        promised.placed(places, self.engine.now)
        assert all(node in free and promised.admits(node, self.prices[node]) for node in places.values())

    def _has_grown_well(self, job: JobId, free: list[str], *, may: bool) -> None:
        promised = self.jobs[job]
        new = {rank: node for rank, node in self._placement(job).items() if rank not in promised.workers}
        if not new:
            return
        assert may
        assert min(new) >= promised.ranks_used, "no rank is used twice"
        assert len(promised.workers) + len(new) <= promised.policy.most
        assert all(node in free and promised.admits(node, self.prices[node]) for node in new.values())
        promised.grown(new, self.engine.now)

    def _started_if_it_fits(self, job: JobId, free: list[str]) -> None:
        """A job that waits alone starts with what is free."""
        fresh = model.ModelJob(self.jobs[job].policy)
        eligible = [name for name in free if fresh.admits(name, self.prices[name])]
        if len(eligible) >= fresh.policy.least:
            assert len(self.jobs[job].workers) == min(len(eligible), fresh.policy.wanted)

    def _grew_if_it_fits(self, job: JobId) -> None:
        """Where nobody waits, a job that may grow has what is free."""
        promised = self.jobs[job]
        if len(promised.workers) < promised.policy.most:
            assert [name for name in self.free() if promised.admits(name, self.prices[name])] == []

    @invariant()
    def the_engine_keeps_the_promises(self) -> None:
        self._compare()
        if self.prompt and self.jobs:
            self._schedule()
            self._compare()

    def _compare(self) -> None:
        for job, promised in self.jobs.items():
            found = self.engine.job(job)
            assert self._state(job) == promised.state
            assert found.retries == promised.retries
            assert self._placement(job) == {rank: each.node for rank, each in promised.workers.items()}
            if promised.state == model.RUNNING:
                assert bool(found.ending) == bool(promised.ending)
                assert {each.rank: each.kill_at for each in found.leaving} == {
                    rank: each.kill_at for rank, each in promised.workers.items() if each.kill_at is not None
                }
                assert found.attempt is not None
                assert found.attempt.blocked == promised.blocked
                if not promised.ending:
                    assert promised.policy.least <= len(promised.workers) <= promised.policy.most

    def _state(self, job: JobId) -> str:
        found = self.engine.job(job)
        if found.state in OCCUPYING:
            return model.RUNNING
        return str(found.state if found.state in ENDED else found.shown_state)


TestElasticPromises = pytest.mark.req("EL-02", "EL-05", "EL-07")(ElasticPromises.TestCase)
TestElasticPromises.settings = settings(
    max_examples=int(os.environ.get("COCKPIT_EXAMPLES", "100")),
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)
