"""Many jobs of many users, as an engine would show them: for the priority tests and their benchmark."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from cockpit.model.accounts import Accounts, Association, AssocKey, Qos, Usage
from cockpit.model.cluster import Cluster, Partition, Priority, PriorityFlag, PriorityKind, Weights
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.node import Node
from cockpit.model.spec import NodeSpec, PriorityWord
from cockpit.sched.snapshot import Snapshot
from tests.sched.world import cards, node, spec_of

USERS = 200
ACCOUNTS = 20
DAY_MS = 86_400_000

SPECS = (
    NodeSpec(cpus=1, memory_mib=1024),
    NodeSpec(cpus=8, memory_mib=16_384, card_milli=1000),
    NodeSpec(cpus=32, memory_mib=65_536, card_milli=4000, card_models=("A100",)),
    NodeSpec(cpus=64, memory_mib=131_072, card_milli=8000, card_models=("H100", "A100")),
)
NODES: dict[str, Node] = {
    each.name: each
    for each in (
        node(f"n{number}", cards(8, "H100" if number % 3 else "A100"), cpus=64, memory_mib=262_144, pool="gpu")
        for number in range(100)
    )
}
PARTITIONS = (
    Partition(name="batch", priority_job_factor=10),
    Partition(name="gpu", pools=("gpu",), priority_job_factor=50, billing_weights={"cpu": 1.0, "gres/gpu": 10.0}),
    Partition(name="first", nodes=("n1", "n2"), priority_job_factor=5, priority_tier=3),
)
WEIGHTS = Weights(
    age=10_000,
    assoc=1_500,
    fairshare=20_000,
    job_size=2_000,
    partition=3_000,
    qos=5_000,
    tres={"gres/gpu": 4_000.0, "cpu": 500.0, "mem": 300.0, "gres/gpu:h100": 7.0, "billing": 11.0},
)


def cluster_of(*flags: PriorityFlag, weights: Weights = WEIGHTS, **fields) -> Cluster:
    priority = Priority(kind=PriorityKind.MULTIFACTOR, weights=weights, flags=flags, **fields)
    return Cluster(partitions=PARTITIONS, priority=priority)


def some_accounts(random: Random) -> Accounts:
    listed = [Association(account="root"), Association(account="root", user="root")]
    for number in range(ACCOUNTS):
        parent = "root" if number < 5 else f"a{random.randrange(number)}"
        shares = random.choice([None, 0, 1, 2, 10, 40])
        listed.append(Association(account=f"a{number}", parent=parent, shares=shares, priority=random.randrange(3)))
    for number in range(USERS):
        account, shares = f"a{number % ACCOUNTS}", random.choice([None, 0, 1, 1, 3])
        listed.append(Association(account=account, user=f"u{number}", shares=shares, priority=random.randrange(50)))
    qos = (Qos(name="normal", priority=10), Qos(name="high", priority=100), Qos(name="scavenger"))
    return Accounts(associations={each.key: each for each in listed}, qos={each.name: each for each in qos})


def some_usage(random: Random, accounts: Accounts) -> dict[AssocKey, Usage]:
    """Conserved up the tree."""
    raw: dict[AssocKey, float] = {}
    for each in accounts.associations.values():
        if each.user:
            used = random.choice([0.0, 100.0, random.random() * 1e6])
            for key in (each.key, *(above.key for above in accounts.above(each))):
                raw[key] = raw.get(key, 0.0) + used
    return {key: Usage(used) for key, used in raw.items()}


def some_job(random: Random, number: int, now: int) -> Job:
    user = random.randrange(USERS)
    submitted = now - 10 * DAY_MS + 100 * number
    return Job(
        id=JobId(number),
        spec=spec_of(
            random.choice(SPECS),
            nodes=random.choice([1, 1, 2, 4]),
            limit=random.choice([60, 90, 3600, 86_400]),
            nice=random.choice([0, 0, 0, 100, -50]),
            exclusive=random.random() < 0.05,
            priority=random.choice(list(PriorityWord)),
        ),
        submitter=Submitter(UserName(f"u{user}"), 1000 + user, 1000, (1000,), "/home"),
        project="p",
        submitted_at=Millis(submitted),
        state_since=Millis(submitted),
        account=random.choice([f"a{user % ACCOUNTS}"] * 9 + ["", "unknown"]),
        qos=random.choice(["normal", "normal", "high", "scavenger", "", "unknown"]),
        partitions=random.choice([("batch",), ("gpu",), ("first",), ("gpu", "batch"), ("gone",)]),
        accrues_from=Millis(submitted + random.randrange(12 * DAY_MS)) if random.random() < 0.9 else None,
        direct_priority=random.choice([None] * 30 + [7, 2**31]),
        held_by="ann" if random.random() < 0.05 else "",
        site_factor=random.choice([0, 0, 0, 500]),
    )


class Crowd:
    """A queue that changes, as a machine shows it."""

    def __init__(self, size: int, cluster: Cluster, seed: int = 1) -> None:
        self.random = Random(seed)
        self.now = 1_700_000_000_000
        self.cluster = cluster
        self.accounts = some_accounts(self.random)
        self.usage = some_usage(self.random, self.accounts)
        self.rules_version = self.nodes_version = 1
        self.nodes = dict(NODES)
        self.queue = {JobId(number): some_job(self.random, number, self.now) for number in range(1, size + 1)}
        self.version = self.changes_from = size
        self.touched: dict[JobId, None] = {}

    def touch(self, *jobs: JobId) -> None:
        self.version += 1
        self.touched |= dict.fromkeys(jobs)

    def put(self, job: Job) -> None:
        self.touch(job.id)
        self.queue[job.id] = replace(job, version=self.version)

    def submit(self) -> None:
        self.put(some_job(self.random, self.version + 1, self.now))

    def start(self, job: JobId) -> Job:
        self.touch(job)
        return replace(self.queue.pop(job), state=JobState.RUNNING)

    def any_job(self) -> Job:
        return self.random.choice(list(self.queue.values()))

    def pass_over_usage(self, seconds: int) -> None:
        self.touch()
        self.now += 1000 * seconds
        self.usage = some_usage(self.random, self.accounts)

    def snapshot(self, *, seen: bool = True) -> Snapshot:
        """`seen`: the next one's changes begin here."""
        taken = Snapshot(
            version=self.version,
            now=Millis(self.now),
            nodes=self.nodes,
            nodes_version=self.nodes_version,
            queue=tuple(self.queue.values()),
            occupied={},
            ends={},
            changes=(),
            changes_from=self.changes_from,
            touched=tuple(self.touched),
            jobs=dict(self.queue),
            cluster=self.cluster,
            accounts=self.accounts,
            rules_version=self.rules_version,
            usage=self.usage,
            usage_at=Millis(self.now),
        )
        if seen:
            self.touched, self.changes_from = {}, self.version
        return taken
