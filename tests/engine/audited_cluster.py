"""A random cluster with every rule, served by the engine for some hours, and the forecasts that its users are shown.

Everything follows from one seed: nodes with cards and slices, partitions, accounts with limits, a quota tree, advance
reservations, arrays, gangs, dependencies, begin times, deadlines, and what happens to them. A history of fewer steps is
the beginning of a longer one.
"""

from __future__ import annotations

from random import Random

import msgspec
from msgspec.structs import replace

from cockpit.engine import decide, evictions
from cockpit.engine.access import Actor
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import edit, submit
from cockpit.engine.timers import latest_end
from cockpit.model import events
from cockpit.model.accounts import Accounts, Association, Qos, ResourceLimits
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Enforce,
    Partition,
    Preemption,
    Priority,
    PriorityKind,
    Reservation,
    Weights,
)
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import OCCUPYING, Job, JobState, Submitter
from cockpit.model.node import Node, NodeState
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.spec import Array, Dependency, DependencyKind, JobSpec, NodeSpec, WorkerPool
from cockpit.runtime.effects import RECONSIDERED_AFTER
from cockpit.sched.cycle import cycle, next_plan
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import FractionFit, Policy
from tests.builders import a_spec
from tests.engine.driver import EngineDriver
from tests.sched.world import cards, node

USERS = {
    name: Submitter(UserName(name), uid, uid, (uid,), f"/home/{name}") for uid, name in enumerate(("ann", "bob", "cyd"))
}
ADMIN = Actor(Submitter(UserName("root"), 0, 0, (0,), "/root"), admin=True)
MODELS = ("A100", "H100")


class AuditedCluster(EngineDriver):
    """An engine, and what happens to its cluster: one `step` after the other, with a pass after each."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.fit = random.choice(list(FractionFit))
        super().__init__(*(_node(random, f"n{number}") for number in range(1, random.choice((1, 2, 3, 4)) + 1)))
        self.configure()
        if random.random() < 0.3:
            self.tell(events.QuotaApplied(_tree(random)))
        self.prompt = random.random() < 0.8
        """Whether commands start at once."""
        self.count = 0
        self.seen = 0
        """The number of events that the last pass has seen."""

    # time

    def schedule(self) -> None:
        """Run passes and carry out their plans, whenever the host would run one."""
        for _ in range(50):
            if not self.is_due():
                return
            self.seen = len(self.journal)
            self.plan = self._pass()
            self.act(decide.carry_out_plan(self.machine, self.plan))
            if self.prompt:
                self.start_commands()
        raise AssertionError("passes without end")

    def is_due(self) -> bool:
        if self.plan is None or (self.plan.next_at is not None and self.plan.now < self.plan.next_at <= self.now):
            return True
        return any(isinstance(each.body, RECONSIDERED_AFTER) for each in self.journal[self.seen :])

    def _pass(self):
        policy = self.policy
        if self.plan is None:
            return cycle(self.machine.snapshot(self.now), None, policy)
        return next_plan(self.plan, self.machine.snapshot(self.now), policy)

    def repeated(self):
        """Let the scheduler run once more, although nothing asks for it, and return the plan."""
        self.seen = len(self.journal)
        self.plan = self._pass()
        self.act(decide.carry_out_plan(self.machine, self.plan))
        return self.plan

    @property
    def policy(self) -> Policy:
        return Policy(fraction_fit=self.fit, backfill=self.machine.state.cluster.backfill)

    def settle(self) -> None:
        """Pass after pass, until nothing more happens at this moment."""
        for _ in range(50):
            self.schedule()
            if not self.let_killed_go() and not self.is_due():
                return
        raise AssertionError("no end at this moment")

    def let_killed_go(self) -> bool:
        """Jobs whose grace to end is over are gone; return whether there are any."""
        over = [job for job in self.jobs(*OCCUPYING) if job.ending is not None and job.ending.kill_at <= self.now]
        for job in over:
            self.over(job, code=143)
        self.pass_time(0)
        return bool(over)

    def start_commands(self) -> None:
        for job in self.jobs(JobState.PRECHECKING, JobState.STAGING, JobState.STARTING):
            if job.ending is None:
                self.started(job.id)

    def next_moment(self) -> Millis | None:
        """When something happens by itself: a timer, a begin time, a reservation, the end of a time limit."""
        known = [self.machine.next_at, self.plan.next_at if self.plan is not None else None]
        known += [latest_end(job) for job in self.jobs(*OCCUPYING) if job.ending is None]
        return min((each for each in known if each is not None and each > self.now), default=None)

    def wait_until(self, moment: Millis) -> None:
        """Let time pass; jobs end at their time limit, and those that are being ended at the end of their grace."""
        self.now = max(self.now, moment)
        for job in self.jobs(*OCCUPYING):
            end = latest_end(job)
            if job.ending is None and end is not None and end <= self.now and self.ends_in_time(job):
                self.over(job)
        self.pass_time(0)
        self.let_killed_go()

    def ends_in_time(self, job: Job) -> bool:
        return self.random.random() < 0.85

    def over(self, job: Job, code: int = 0) -> None:
        if job.state in (JobState.PRECHECKING, JobState.STAGING, JobState.STARTING):
            self.started(job.id)
        attempt = self.job(job.id).attempt
        for rank, replica in enumerate(attempt.replicas):
            if replica.ended_at is None:
                self.ended(job.id, rank, code=code)

    def jobs(self, *states: JobState) -> list[Job]:
        return [job for job in self.machine.state.jobs.values() if job.state in states]

    @property
    def queue(self) -> list[Job]:
        return list(self.machine.queue.values())

    # what happens

    def step(self) -> str:
        """One thing that happens, and a pass. Returns what it was."""
        random = self.random
        moment, later = self.next_moment(), Millis(self.now + 1000 * random.choice((0, 0, 1, 20, 100, 400, 900)))
        self.wait_until(later if moment is None else min(moment, later))
        what = random.choice(
            ["submit"] * 12 + ["end"] * 5 + ["nothing"] * 3 + ["hold"] * 2 + ["cancel", "edit", "node"]
            + random.choice(([], [], [], ["rules"], ["reserve"], ["requeue"], ["unreserve"], ["fail"]))
        )  # fmt: skip
        getattr(self, what)()
        if not self.prompt and random.random() < 0.5:
            self.start_commands()
        self.settle()
        while self.plan.next_at is not None and self.plan.next_at - self.now == 1:  # it left jobs to a further pass
            self.wait_until(self.plan.next_at)
            self.settle()
        return what

    def nothing(self) -> None:
        pass

    def submit(self) -> None:
        for _ in range(self.random.choice((1, 1, 1, 3))):
            self.count += 1
            spec = self.some_spec()
            who = USERS[self.random.choice(sorted(USERS))]
            self.act(submit(self.machine, [spec], Actor(who, admin=True), now=self.now))

    def end(self) -> None:
        running = [job for job in self.jobs(*OCCUPYING) if job.suspension is None]
        if running:
            self.over(self.random.choice(running))

    def fail(self) -> None:
        running = self.jobs(*OCCUPYING)
        if running:
            self.over(self.random.choice(running), code=3)

    def hold(self) -> None:
        if queue := self.queue:
            job = self.random.choice(queue)
            self.act(decide.release(job) if job.held_by else decide.hold(job, "root"))

    def cancel(self) -> None:
        jobs = [job for job in self.machine.state.jobs.values() if not job.ended]
        if jobs:
            self.act(decide.cancel(self.random.choice(jobs), self.now, self.random.choice((None, 0))))

    def requeue(self) -> None:
        if running := self.jobs(*OCCUPYING):
            self.act(evictions.requeue(self.machine, self.random.choice(running), self.now))

    def edit(self) -> None:
        if queue := self.queue:
            job = self.random.choice(queue)
            other = replace(job.spec, time_limit_seconds=self.random.choice((60, 300, 1200)))
            self.act(edit(self.machine, job, other, actor=ADMIN, now=self.now))

    def node(self) -> None:
        one = self.random.choice(list(self.machine.state.nodes.values()))
        if one.state is NodeState.UP:
            self.tell(events.NodeDrained(one.name, "root", "fan"))
        else:
            self.tell(events.NodeResumed(one.name, "root"))

    def rules(self) -> None:
        self.configure()

    def reserve(self) -> None:
        self.tell(events.ReservationMade(_reservation(self.random, self.now)))

    def unreserve(self) -> None:
        if self.machine.state.reservations:
            self.tell(events.ReservationEnded(self.random.choice(sorted(self.machine.state.reservations))))

    def configure(self) -> None:
        accounts = _accounts(self.random)
        self.tell(
            events.ClusterConfigured(_cluster(self.random)),
            events.AccountsChanged(tuple(accounts.associations.values()), tuple(accounts.qos.values())),
        )

    # jobs

    def some_spec(self) -> JobSpec:
        random, state = self.random, self.machine.state
        partitions = [each.name for each in state.cluster.partitions]
        fields = {}
        if random.random() < 0.1:
            fields["begin_at"] = Millis(self.now + 1000 * random.choice((30, 300, 1500)))
        if random.random() < 0.06:
            fields["deadline_at"] = Millis(self.now + 1000 * random.choice((900, 2000, 6000)))
        if random.random() < 0.15:
            fields["array"] = Array(tuple(range(random.choice((2, 3)))), random.choice((0, 1, 2)))
        if state.reservations and random.random() < 0.15:
            fields["reservation"] = random.choice(sorted(state.reservations))
        if random.random() < 0.1:
            fields["worker_pools"] = tuple(WorkerPool(replicas=1, spec=_node_spec(random)) for _ in range(2))
            fields["specs"] = (fields["worker_pools"][0].spec,)
        nodes = 1 if "worker_pools" in fields or random.random() < 0.7 else random.choice((2, 2, 3))
        specs = tuple(_node_spec(random) for _ in range(random.choice((1, 1, 1, 1, 2))))
        name = f"job-{self.count}" if random.random() < 0.9 else "again"
        return replace(
            a_spec(name, nodes=nodes, **{"specs": specs, **fields}),
            time_limit_seconds=random.choice((60, 120, 300, 600, 1200, 2400)),
            exclusive=random.random() < 0.08,
            grace_seconds=random.choice((0, 30)),
            account=random.choice((None, None, None, "lab")),
            qos=random.choice((None, None, None, "high", "low")),
            project=random.choice((None, None, None, "nlp")),
            partitions=tuple(random.sample(partitions, random.choice((1, min(2, len(partitions))))))
            if partitions
            else (),
            hold=random.random() < 0.05,
            pool=random.choice([None] * 14 + ["east"]),
            dependencies=self.some_conditions(),
        )  # fmt: skip

    def some_conditions(self) -> tuple[Dependency, ...]:
        random, known = self.random, [job.id for job in self.machine.state.jobs.values()]
        if random.random() < 0.85 or not known:
            return ()
        kind = random.choice(
            (DependencyKind.AFTER_OK, DependencyKind.AFTER_ANY, DependencyKind.AFTER_ANY, DependencyKind.SINGLETON)
        )
        return (Dependency(kind, JobId(0) if kind is DependencyKind.SINGLETON else random.choice(known[-8:])),)

    # forecasts

    def predictor(self, *, anew: bool = False) -> StartPredictor:
        """`anew`: without the caches of the last plan."""
        frozen = self.machine.peek(self.now).frozen()
        return StartPredictor(frozen, None if anew else self.plan, self.policy, History())


class Future(AuditedCluster):
    """The same cluster later on, if no job is submitted and every job uses its whole time limit."""

    def __init__(self, cluster: AuditedCluster) -> None:
        self.random, self.fit, self.prompt = Random(1), cluster.fit, True
        self.now, self.journal, self.effects, self.plan = cluster.now, [*cluster.journal], [], None
        self.asked_by, self.seen = cluster.asked_by, cluster.seen
        encoded = msgspec.msgpack.encode(cluster.machine.state)
        self.machine = Machine(msgspec.msgpack.decode(encoded, type=ClusterState))
        self.started_at: dict[JobId, Millis] = {}
        self.alert_pause_ms = None

    def ends_in_time(self, job: Job) -> bool:
        return True

    def next_moment(self) -> Millis | None:
        """Jobs that are being ended are gone when their grace is over, not when something else happens."""
        killed = [job.ending.kill_at for job in self.jobs(*OCCUPYING) if job.ending is not None]
        known = [super().next_moment(), *killed]
        return min((each for each in known if each is not None and each > self.now), default=None)

    def run(self, moments: int = 300) -> dict[JobId, Millis]:
        """Return when each waiting job starts."""
        waiting = {job.id for job in self.queue}
        self.settle()
        for _ in range(moments):
            for job in waiting & {job.id for job in self.jobs(*OCCUPYING)}:
                self.started_at.setdefault(job, self.now)
            moment = self.next_moment()
            if moment is None:
                break
            self.wait_until(moment)
            self.settle()
        return self.started_at


def _node(random: Random, name: str) -> Node:
    slices = random.choice((0, 0, 0, 0, 2))
    return node(
        name,
        cards(random.choice((0, 1, 2, 2, 4)), random.choice(MODELS), slices=slices),
        cpus=random.choice((4, 4, 6)),
        memory_mib=4096,
        pool=random.choice(("", "", "", "east")),
    )


def _node_spec(random: Random) -> NodeSpec:
    milli = random.choice((0, 0, 0, 1000, 1000, 2000, 500, 300))
    return NodeSpec(
        cpus=random.choice((1, 1, 2, 3, 4)),
        memory_mib=random.choice((512, 1024, 2048)),
        card_milli=milli,
        card_models=random.choice(((), (), (), ("A100",), MODELS)) if milli else (),
    )


def _cluster(random: Random) -> Cluster:
    partitions = (
        Partition(name="all", max_time_seconds=random.choice((None, None, 1800)), qos=random.choice(("", "", "part"))),
        Partition(name="east", pools=("east",), max_nodes=random.choice((None, 1, 2))),
        Partition(
            name="two", nodes=(NodeName("n1"), NodeName("n2")), priority_tier=random.choice((1, 1, 1, 1, 2)),
        ),
    )  # fmt: skip
    basic = random.random() < 0.8
    weights = Weights(age=random.choice((0, 100)), qos=150, job_size=60)
    return Cluster(
        partitions=partitions[: random.choice((0, 0, 1, 3, 3))],
        enforce=random.choice(((), (), (Enforce.LIMITS,), (Enforce.LIMITS, Enforce.QOS), (Enforce.SAFE,))),
        priority=Priority() if basic else Priority(kind=PriorityKind.MULTIFACTOR, weights=weights),
        preemption=random.choice([Preemption()] * 7 + [Preemption(kind="preempt/qos", mode=("REQUEUE",))]),
        backfill=Backfill(
            kind=random.choice(
                (BackfillKind.EASY, BackfillKind.EASY, BackfillKind.CONSERVATIVE, BackfillKind.OFF)
            ),
            depth=random.choice((0, 0, 0, 0, 3)),
            window_seconds=random.choice((0, 0, 0, 0, 1800)),
            resolution_seconds=random.choice((0, 0, 0, 60)),
        ),
    )  # fmt: skip


def _accounts(random: Random) -> Accounts:
    lines = [
        Association(account="root"),
        Association(account="root", user="root"),
        Association(account="lab", parent="root", limits=_limits(random)),
        Association(account="team", parent="lab", limits=_limits(random)),
        Association(account="team", user="ann", qos=("normal", "high", "low"), default=True, limits=_limits(random)),
        Association(account="lab", user="ann", qos=("normal", "high", "low")),
        Association(account="lab", user="bob", qos=("normal", "high", "low"), limits=_limits(random)),
        Association(account="lab", user="cyd", qos=("normal", "high", "low")),
    ]
    qos = [
        Qos(name="normal"),
        Qos(name="high", priority=30, preempt=("low",), limits=_limits(random)),
        Qos(name="low", max_tres_per_user=random.choice(({}, {}, {"cpu": 2.0}))),
        Qos(name="part", limits=_limits(random)),
    ]
    return Accounts(associations={each.key: each for each in lines}, qos={each.name: each for each in qos})


def _limits(random: Random) -> ResourceLimits:
    return ResourceLimits(
        max_wall_seconds=random.choice([None] * 6 + [1200]),
        max_tres_per_job=random.choice([{}] * 6 + [{"cpu": 6.0}, {"gres/gpu": 1.5}]),
        max_jobs=random.choice([None] * 4 + [1, 2]),
        grp_jobs=random.choice([None] * 4 + [2]),
        grp_tres=random.choice([{}] * 4 + [{"cpu": 4.0}, {"gres/gpu": 2.0, "node": 2.0}]),
        grp_tres_minutes=random.choice([{}] * 8 + [{"cpu": 40.0}]),
    )


def _tree(random: Random) -> QuotaTree:
    top = {"cpu": 1000 * random.randint(4, 12), "gres/gpu": 1000 * random.randint(1, 4)}
    least = random.choice(({}, {}, {}, {"cpu": 2000}))
    leaf = QuotaNode(name="nlp", min=least, max={"cpu": 1000 * random.randint(2, 6)}, namespaces=("nlp",))
    return QuotaTree("teams", QuotaNode(name="root", min=top, max=top, children=(leaf,)))


def _reservation(random: Random, now: Millis) -> Reservation:
    start = now + 1000 * random.choice((0, 200, 1000))
    own = random.random() < 0.6
    return Reservation(
        name=random.choice(("kept", "works")),
        nodes=tuple(map(NodeName, random.choice((("n1",), ("n2",), ("n1", "n2"))))),
        start_at=start,
        end_at=start + 1000 * random.choice((300, 1500, 4000)),
        users=("ann", "bob") if own else (),
        maintenance=not own,
    )
