"""Elastic jobs in the engine: workers are placed last and recalled first, and no other job suffers while they leave."""

from __future__ import annotations

import os
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from cockpit.engine import decide, evictions
from cockpit.engine.apply.events import apply
from cockpit.engine.effects import RemoveContainer, SignalKind, SignalReplica, StartReplica, WriteWorkersFile
from cockpit.engine.faults import prolog_failed
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.views.spending import spans
from cockpit.model import events
from cockpit.model.accounts import Accounts, Association, AssocKey, Qos
from cockpit.model.attempt import EndCause, EvictionMode, ExitStatus, Grounds
from cockpit.model.cluster import Cluster, Preemption
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.refusal import Refusal
from cockpit.model.resilience import Elastic, ReclaimSignal
from cockpit.model.spec import HoldCards, JobSpec
from cockpit.sched.cycle import cycle
from cockpit.sched.plan import Plan
from cockpit.sched.policy import Policy
from tests.builders import SECOND, a_node, a_spec
from tests.engine.driver import HOLD_SECONDS, EngineDriver

LOW, HIGH = Qos(name="low", grace_seconds=20), Qos(name="high", priority=9, preempt=("low",))


def engine(nodes: int = 4, mode: str = "REQUEUE") -> EngineDriver:
    driver = EngineDriver(*(a_node(f"n{number}", cpus=4, cards=1) for number in range(1, nodes + 1)))
    accounts = Accounts().associations | {
        each.key: each for each in (Association(account="lab"), Association(account="lab", user="ann"))
    }
    driver.tell(
        events.ClusterConfigured(Cluster(preemption=Preemption(kind="preempt/qos", mode=(mode,)))),
        events.AccountsChanged(tuple(accounts.values()), (LOW, HIGH)),
    )
    return driver


def elastic(name: str, least: int, wanted: int, most: int, **fields) -> JobSpec:
    policies = {name: fields.pop(name) for name in Elastic.__struct_fields__ if name in fields}
    grows = fields.pop("grows", True)
    sized = Elastic(workers=wanted, min_workers=least, max_workers=most, allow_scaling=grows, **policies)
    return a_spec(name, **{"cpus": 4, "nodes": wanted, "elastic": sized, "qos": "low", **fields})


def begun(driver: EngineDriver, *specs: JobSpec) -> list[JobId]:
    jobs = driver.run(*specs)
    driver.pass_time(SECOND)
    return jobs


def grow(driver: EngineDriver) -> None:
    driver.schedule()
    for job in driver.machine.state.jobs.values():
        if job.state in OCCUPYING:
            driver.started(job.id)


def ranks(driver: EngineDriver, job: JobId) -> list[int]:
    return [part.rank for part in driver.job(job).attempt.placement]


def ends(driver: EngineDriver, job: JobId, rank: int, **status: object) -> None:
    replica = next(each for each in driver.replicas(job) if each.rank == rank)
    driver.act(decide.replica_ended(driver.machine, replica, ExitStatus(**status), driver.now, HOLD_SECONDS))


def told(driver: EngineDriver, kind: type) -> list:
    return [each.body for each in driver.journal if isinstance(each.body, kind)]


@pytest.mark.req("EL-01", "SC-09")
def test_an_elastic_job_starts_with_the_free_nodes_and_grows_when_more_are_free() -> None:
    driver = engine()
    (other, job) = begun(driver, a_spec("other", cpus=4, nodes=2), elastic("train", 1, 3, 4))
    assert ranks(driver, job) == [0, 1]
    driver.schedule()
    assert ranks(driver, job) == [0, 1], "nothing is free"
    for rank in (0, 1):
        ends(driver, other, rank, code=0)
    driver.effects.clear()
    driver.schedule()
    assert ranks(driver, job) == [0, 1, 2, 3]
    assert [each.replica.rank for each in driver.effects if isinstance(each, StartReplica)] == [2, 3]
    assert driver.job(job).state is JobState.RUNNING


@pytest.mark.req("EL-01")
def test_an_elastic_job_grows_only_where_permitted_and_after_all_its_workers_run() -> None:
    driver = engine()
    (still, starting) = driver.submit(elastic("still", 1, 1, 4, grows=False), elastic("starting", 1, 1, 4))
    driver.schedule()
    driver.started(still)
    driver.schedule()
    assert (ranks(driver, still), ranks(driver, starting)) == ([0], [0])
    driver.started(starting)
    driver.schedule()
    assert (ranks(driver, still), ranks(driver, starting)) == ([0], [0, 1, 2])


@pytest.mark.req("EL-02", "JT-26")
def test_a_recalled_worker_gets_its_requested_signal_at_once_and_its_own_grace() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 4, 4, reclaim_signal=ReclaimSignal.SIGTERM, grace_seconds=300))
    driver.submit(a_spec("urgent", cpus=4, qos="high"))
    driver.effects.clear()
    driver.schedule()
    (recalled,) = told(driver, events.WorkersRecalled)
    assert recalled.kill_at == driver.now + 300 * SECOND
    assert [each for each in driver.effects if isinstance(each, SignalReplica)] == [
        SignalReplica(each, SignalKind.TERM) for each in driver.replicas(job) if each.rank in recalled.ranks
    ]


@pytest.mark.req("EL-01", "SC-09")
def test_a_shrinking_job_releases_its_newest_workers_and_continues() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 4, 4))
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.effects.clear()
    driver.schedule()
    kill_at = Millis(driver.now + 20 * SECOND)
    assert told(driver, events.WorkersRecalled) == [events.WorkersRecalled(job, (2, 3), kill_at, urgent, Grounds.QOS)]
    assert told(driver, events.EvictionsDecided) == [
        events.EvictionsDecided(urgent, (job,), EvictionMode.SHRINK, Grounds.QOS)
    ]
    asked = [(each.replica.rank, each.force) for each in driver.effects if isinstance(each, SignalReplica)]
    assert asked == [], "they learn of it by the workers' file"
    assert {each.replica.rank for each in driver.effects if isinstance(each, WriteWorkersFile)} == {0, 1, 2, 3}
    ends(driver, job, 3, code=255)
    assert ranks(driver, job) == [0, 1, 2]
    driver.schedule()
    assert driver.job(urgent).state is JobState.QUEUED
    driver.pass_time(20 * SECOND)
    last = [(each.replica.rank, each.force) for each in driver.effects if isinstance(each, SignalReplica)][-1]
    assert last == (2, SignalKind.KILL)
    ends(driver, job, 2, signal=9)
    assert [each.replica.rank for each in driver.effects if isinstance(each, RemoveContainer)] == [3, 2]
    driver.schedule()
    assert driver.job(urgent).state is JobState.STARTING
    assert (driver.job(job).state, driver.job(job).ending) == (JobState.RUNNING, None)


@pytest.mark.req("EL-01", "EL-02")
def test_the_exit_code_of_a_recalled_worker_does_not_end_the_job() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 2, 2, terminal=True))
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, nodes=3, qos="high"))
    driver.schedule()
    ends(driver, job, 0, code=0)
    assert not driver.job(job).ended, "one of its workers still has its grace"
    ends(driver, job, 1, code=255)
    found = driver.job(job)
    assert (found.state, found.exit.code, found.kept) == (JobState.SUCCEEDED, 0, False)
    driver.schedule()
    assert driver.job(urgent).state is JobState.STARTING


@pytest.mark.req("EL-01", "JT-20")
def test_a_failed_elastic_job_holds_the_containers_of_its_remaining_workers() -> None:
    driver = engine()
    hold = a_spec("x").debug_hold
    spec = elastic("train", 1, 3, 3, terminal=True, card_milli=1000, debug_hold=replace(hold, cards=HoldCards.KEEP))
    (job,) = begun(driver, spec)
    driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.schedule()
    ends(driver, job, 2, code=255)
    ends(driver, job, 1, code=3)
    ends(driver, job, 0, signal=15)
    found = driver.job(job)
    assert (found.state, found.exit.code, found.kept) == (JobState.ERROR, 3, True)
    assert [each.rank for each in driver.replicas(job)] == [0, 1]
    assert [part.node for part in driver.machine.occupied[job]] == ["n1", "n2"]


@pytest.mark.req("EL-01", "SC-02")
def test_usage_counts_the_resources_an_elastic_job_had_at_each_time() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 3, 3, account="lab", grace_seconds=0))
    driver.pass_time(9 * SECOND)
    driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high", account="lab"))
    driver.schedule()
    ends(driver, job, 2, code=0)
    driver.pass_time(10 * SECOND)
    ends(driver, job, 0, code=0)
    ends(driver, job, 1, code=0)
    used = driver.machine.state.usage[AssocKey("lab/ann")]
    assert used.tres_seconds["cpu"] == pytest.approx(12 * 10 + 8 * 10, rel=0.001)
    assert used.wall_seconds == pytest.approx(20, rel=0.001)
    (span,) = spans(driver.job(job), driver.now)
    assert (span.cpus, span.until_at - span.from_at) == (10, 20 * SECOND)


@pytest.mark.req("EL-01", "SC-08")
def test_an_elastic_job_shrinks_before_eviction_and_is_evicted_whole_below_its_minimum() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 3, 4, 4))
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, nodes=2, qos="high"))
    driver.schedule()
    assert told(driver, events.WorkersRecalled) == []
    assert [(each.job, each.cause, each.for_job) for each in told(driver, events.EndingBegan)] == [
        (job, EndCause.PREEMPTED, urgent)
    ]


@pytest.mark.req("EL-01")
def test_no_shell_opens_in_a_worker_that_has_left() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 4, 4))
    driver.submit(a_spec("urgent", cpus=4, qos="high"))
    driver.schedule()
    ends(driver, job, 3, code=0)
    refused = decide.open_shell(driver.job(job), 3, ())
    assert isinstance(refused, Refusal)
    assert refused.message == f"Replica 3 of job {job} has left, and its job keeps running without it."
    driver.pass_time(SECOND)
    assert decide.open_shell(driver.job(job), 2, ()) == [events.ShellOpened(job, 2, ())]


def fixed_size(spec: JobSpec) -> JobSpec:
    return spec if spec.elastic is None else replace(spec, elastic=replace(spec.elastic, allow_scaling=False))


def moments(plan: Plan) -> list[tuple[JobId, Millis]]:
    return [(each.job, each.reserved_at) for each in plan.reservations]


@pytest.mark.req("EL-01", "SC-09")
def test_a_worker_that_is_done_leaves_at_once_for_another_job() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 4, 4))
    ends(driver, job, 3, code=0)
    (urgent,) = driver.submit(a_spec("urgent", cpus=4, qos="high"))
    driver.schedule()
    assert (ranks(driver, job), driver.job(job).leaving) == ([0, 1, 2], ())
    driver.schedule()
    assert driver.job(urgent).state is JobState.STARTING


@pytest.mark.req("EL-01", "JT-24")
def test_a_job_continues_without_a_new_worker_whose_node_fails() -> None:
    driver = engine()
    (other, job) = begun(driver, a_spec("other", cpus=4, nodes=2), elastic("train", 2, 2, 4))
    for rank in (0, 1):
        ends(driver, other, rank, code=0)
    driver.schedule()
    (_, _, third, fourth) = driver.replicas(job)
    driver.act(prolog_failed(driver.machine, third, "no card", driver.now))
    assert (driver.job(job).state, ranks(driver, job)) == (JobState.RUNNING, [0, 1, 3])
    assert driver.job(job).attempt.replicas[2].exit.lost == "no card"
    driver.act(decide.replica_started(driver.machine, fourth, "cgroup v1"))
    driver.schedule()
    assert ranks(driver, job) == [0, 1, 3], "the node is drained"


class ElasticEngine(RuleBasedStateMachine):
    """Five nodes of four CPUs, elastic and other jobs of two ranks; the driver checks all promises after each event,
    `min <= n <= max` among them."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = engine(5)
        self.count = 0

    def running(self) -> list[Job]:
        return [job for job in self.engine.machine.state.jobs.values() if job.state in OCCUPYING]

    @rule(seed=st.integers(0, 2**32))
    def submit_some(self, seed: int) -> None:
        random = Random(seed)
        for _ in range(random.choice((1, 2, 4))):
            self.submit(random)
        self.schedule(late=random.random() < 0.2)

    def submit(self, random: Random) -> None:
        self.count += 1
        name, least, limit = f"job-{self.count}", random.choice((1, 1, 2, 3)), random.choice((60, 600))
        fields = {
            "cpus": random.choice((2, 4)),
            "qos": random.choice(("low", "low", "high")),
            "time_limit_seconds": limit,
        }
        wanted = least + random.choice((0, 1, 2))
        if random.random() < 0.5:
            self.engine.submit(elastic(name, least, wanted, wanted + random.choice((0, 1, 3)), **fields))
        else:
            self.engine.submit(a_spec(name, nodes=least, **fields))

    @rule(late=st.booleans())
    def schedule(self, late: bool) -> None:
        """`late`: commands that start do so later."""
        self.growth_delays_nobody()
        nominated = self.engine.machine.peek(self.engine.now).nominated
        self.engine.schedule()
        if not nominated:
            self.nobody_goes_who_could_shrink()
        for job in [] if late else self.running():
            self.engine.started(job.id)

    def growth_delays_nobody(self) -> None:
        """What waits has the same starts and reservations with growth as without."""
        snapshot = self.engine.machine.peek(self.engine.now)
        plan = cycle(snapshot, None, Policy())
        if plan.evictions or not plan.growths:
            return
        jobs = {job: replace(each, spec=fixed_size(each.spec)) for job, each in snapshot.jobs.items()}
        fixed = cycle(replace(snapshot, jobs=jobs), None, Policy())
        assert plan.starts == fixed.starts
        assert moments(plan) == moments(fixed)

    def nobody_goes_who_could_shrink(self) -> None:
        plan = self.engine.plan
        whole = [each for each in plan.evictions if each.mode is not EvictionMode.SHRINK]
        if len({each.for_job for each in plan.evictions}) != 1 or plan.starts or not whole:
            return
        spare = {(job.id, part.rank) for job in self.running() for part in self.given_up(job, whole)}
        used = dict.fromkeys(self.engine.machine.state.nodes, 0)
        for job, held in self.engine.machine.occupied.items():
            for part in held:
                used[part.node] += part.cpus * ((job, part.rank) not in spare)
        asked = self.engine.job(whole[0].for_job).spec
        assert sum(4 - cpus >= asked.specs[0].cpus for cpus in used.values()) < asked.least_nodes

    def given_up(self, job: Job, evicted: list) -> list:
        """What the job, which was not evicted for being in the way altogether, could do without."""
        if job.spec.elastic is None or job.qos != "low" or job.state is JobState.SUSPENDED:
            return []
        if job.ending is not None and job.id not in {each.job for each in evicted}:
            return []
        return list(job.attempt.placement[job.spec.elastic.min_workers :])

    @precondition(lambda self: self.running())
    @rule(data=st.data(), code=st.sampled_from([0, 0, 255]))
    def end_one(self, data: st.DataObject, code: int) -> None:
        job = data.draw(st.sampled_from(self.running()))
        there = [each.rank for each in job.attempt.present_replicas if each.ended_at is None]
        ends(self.engine, job.id, data.draw(st.sampled_from(there)), code=code)

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.gone(data.draw(st.sampled_from(self.running())), code=0)
        self.schedule(late=False)

    def gone(self, job: Job, **status: object) -> None:
        for each in job.attempt.present_replicas:
            if each.ended_at is None:
                ends(self.engine, job.id, each.rank, **status)

    @rule()
    def whoever_was_told_to_goes(self) -> None:
        for job in self.running():
            if job.ending is not None:
                self.gone(job, signal=15)
            for each in self.engine.job(job.id).leaving:
                ends(self.engine, job.id, each.rank, signal=15)
        self.schedule(late=False)

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.running()))
        now = self.engine.now
        decisions = [
            lambda: decide.cancel(job, now, None),
            lambda: evictions.suspend(job, "ann"),
            lambda: evictions.resume(self.engine.machine, job),
            lambda: evictions.requeue(self.engine.machine, job, now),
        ]
        self.engine.act(data.draw(st.sampled_from(decisions))())

    @rule(seconds=st.sampled_from([1, 5, 20, 70]))
    def pass_time(self, seconds: int) -> None:
        self.engine.pass_time(seconds * SECOND)

    @rule()
    def restart(self) -> None:
        encoded = msgspec.msgpack.encode(self.engine.machine.state)
        self.engine.machine = Machine(msgspec.msgpack.decode(encoded, type=ClusterState))
        self.engine.plan = None

    @invariant()
    def the_journal_replays_to_the_same_state(self) -> None:
        if len(self.engine.journal) % 8:
            return
        replayed = ClusterState()
        for record in self.engine.journal:
            apply(replayed, msgspec.json.decode(msgspec.json.encode(record), type=events.EventRecord))
        assert replayed == self.engine.machine.state


TestElasticEngine = pytest.mark.req("EL-01", "SC-09")(ElasticEngine.TestCase)
TestElasticEngine.settings = settings(
    max_examples=int(os.environ.get("COCKPIT_EXAMPLES", "80")),
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)
