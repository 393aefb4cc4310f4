"""Small random clusters with rules, and what may happen to them, all of it from one seeded source.

A history of fewer steps is the beginning of a longer one, so that a failing one shrinks to its first wrong step.
"""

from __future__ import annotations

from random import Random

from cockpit.model.accounts import Accounts, Association, Qos, ResourceLimits, Usage
from cockpit.model.cluster import (
    Backfill,
    BackfillKind,
    Cluster,
    Enforce,
    Partition,
    PartitionState,
    Priority,
    PriorityKind,
    Reservation,
    Weights,
)
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask
from cockpit.model.node import Node, NodeState
from cockpit.model.spec import Dependency, DependencyKind, NodeSpec, PriorityWord
from cockpit.sched.policy import Policy
from tests.sched.world import World, cards, node, spec_of

USERS = ("ann", "bob", "cyd")
CHARGED = (
    *[("team", "ann"), ("lab", "ann"), ("team", "bob"), ("other", "cyd")] * 4,
    *[("", "cyd"), ("team", "cyd")],
)
"""Account and user; the last two have no association."""
QOS = ("normal", "normal", "normal", "high", "high", "low")


class RuledWorld(World):
    """Jobs of several users come and go under changing rules."""

    usage_at = Millis(0)

    def __init__(self, seed: int, kind: BackfillKind) -> None:
        self.random = random = Random(seed)
        nodes = [some_node(random, f"n{number}") for number in range(1, random.choice((2, 3, 3, 4)) + 1)]
        super().__init__(
            *nodes,
            policy=Policy(backfill=Backfill(kind=kind)),
            cluster=some_cluster(random),
            accounts=some_accounts(random),
            reservations=some_reservations(random),
            usage=some_usage(
                random, ("team/ann", "team/bob", "team/", "lab/ann", "lab/", "other/cyd", "other/", "root/")
            ),
            qos_usage=some_usage(random, ("high", "low")),
        )

    def step(self) -> None:
        """One thing that happens."""
        random = self.random
        running = [job for job in self.occupied if job in self.ends]
        match random.choice(
            ["submit"] * 16 + ["tick"] * 4 + ["end"] * 2 + ["hold", "keep", "node", "rules", "reserve"]
        ):
            case "tick":
                self.tick(random.choice((1, 1, 2, 3)))
            case "end" if running:
                self.end(random.choice(running))
            case "hold" if self.queue:
                job = random.choice(self.queue)
                self.hold(job.id, "" if job.held_by else "root")
            case "keep" if running:
                self.keep_cards(random.choice(running))
            case "node":
                self.change_node()
            case "rules":
                self.change_rules(cluster=some_cluster(random), accounts=some_accounts(random))
            case "reserve":
                self.change_rules(reservations=some_reservations(random, self.now))
            case _:
                self.submit_one()

    def tick(self, seconds: int) -> None:
        self.now = Millis(self.now + 1000 * seconds)
        self.version += 1
        for job in [job for job in self.occupied if job in self.ends and self.ends[job] <= self.now]:
            self.end(job)

    def change_node(self) -> None:
        used = {part.node for placement in self.occupied.values() for part in placement}
        idle = [name for name in self.nodes if name not in used]
        if idle:
            self.set_node(some_node(self.random, self.random.choice(idle)))

    def submit_one(self) -> JobId:
        random = self.random
        account, user = random.choice(CHARGED)
        known = [each.name for each in self.rules["cluster"].partitions]
        return self.submit_spec(
            some_spec(random, self.now, list(self.rules["reservations"])),
            user=user,
            account=account,
            qos=random.choice(QOS),
            partitions=tuple(random.sample(known, random.choice((1, min(2, len(known)))))) if known else (),
            array=ArrayTask(JobId(900), len(self.jobs), random.choice((1, 2))) if random.random() < 0.15 else None,
            waits_for=(Dependency(DependencyKind.AFTER_OK, JobId(1)),) if random.random() < 0.03 else (),
            accrues_from=Millis(self.now - 1000 * random.randrange(4)) if random.random() < 0.8 else None,
            direct_priority=random.choice([None] * 9 + [5000]),
            site_factor=random.choice((0, 0, 0, 40)),
        )


def some_node(random: Random, name: str) -> Node:
    has = cards(random.choice((0, 1, 2, 2, 3)), random.choice(("A100", "H100")), slices=random.choice((0, 0, 0, 2)))
    return node(
        name,
        has,
        cpus=random.choice((4, 4, 6)),
        memory_mib=4096,
        pool=random.choice(("", "", "east")),
        state=random.choice([NodeState.UP] * 8 + [NodeState.DRAINED]),
    )


def some_spec(random: Random, now: int, reservations: list[str]):
    specs = [some_node_spec(random) for _ in range(random.choice((1, 1, 1, 2)))]
    return spec_of(
        *specs,
        nodes=random.choice((1, 1, 1, 1, 1, 2, 2, 3)),
        limit=random.choice((1, 2, 4, 8, 8, 16)),
        pool=random.choice([None] * 12 + ["east"]),
        priority=random.choice(list(PriorityWord)),
        nice=random.choice((0, 0, 0, 25)),
        begin_at=Millis(now + 1000 * random.choice((1, 2))) if random.random() < 0.05 else None,
        reservation=random.choice(reservations) if reservations and random.random() < 0.15 else "",
    )


def some_node_spec(random: Random) -> NodeSpec:
    milli = random.choice((0, 0, 0, 1000, 1000, 2000, 500, 300))
    return NodeSpec(
        cpus=random.choice((1, 2, 3, 4)),
        memory_mib=random.choice((512, 1024, 2048)),
        card_milli=milli,
        card_models=random.choice(((), (), (), ("A100",))) if milli else (),
    )


def some_cluster(random: Random) -> Cluster:
    partitions = [
        some_partition(random, "all"),
        some_partition(random, "east", pools=("east",)),
        some_partition(random, "two", nodes=(NodeName("n1"), NodeName("n2"))),
    ]
    return Cluster(
        partitions=tuple(partitions[: random.choice((0, 1, 3, 3, 3))]),
        enforce=random.choice(
            [(), (), (Enforce.ASSOCIATIONS,), (Enforce.LIMITS,), (Enforce.LIMITS, Enforce.QOS), (Enforce.SAFE,)]
        ),
        priority=some_priority(random),
        login_pool=random.choice([""] * 7 + ["east"]),
    )


def some_priority(random: Random) -> Priority:
    if random.random() < 0.3:
        return Priority()
    return Priority(
        kind=PriorityKind.MULTIFACTOR,
        weights=Weights(
            age=random.choice((0, 100)),
            assoc=random.choice((0, 50)),
            fairshare=random.choice((0, 200)),
            job_size=random.choice((0, 60)),
            partition=random.choice((0, 70)),
            qos=random.choice((0, 150)),
            tres=random.choice(({}, {"cpu": 30.0, "gres/gpu": 90.0})),
        ),
        favor_small=random.random() < 0.5,
        max_age_seconds=10,
    )


def some_partition(random: Random, name: str, **where) -> Partition:
    return Partition(
        name=name,
        state=random.choice([PartitionState.UP] * 12 + [PartitionState.DOWN]),
        max_time_seconds=random.choice((None, None, None, None, 8)),
        min_nodes=random.choice((0,) * 9 + (2,)),
        max_nodes=random.choice((None, None, None, 2)),
        allow_accounts=random.choice(((),) * 6 + (("team", "lab"),)),
        deny_qos=random.choice(((),) * 5 + (("low",),)),
        qos=random.choice(("", "", "", "of-partition")),
        priority_job_factor=random.choice((1, 3)),
        priority_tier=random.choice((1, 1, 2)),
        billing_weights=random.choice(({}, {"cpu": 1.0, "gres/gpu": 4.0})),
        **where,
    )


def some_accounts(random: Random) -> Accounts:
    lines = [
        Association(account="root"),
        Association(account="root", user="root"),
        Association(account="lab", parent="root", shares=random.choice((1, 4)), limits=some_limits(random)),
        Association(account="team", parent="lab", limits=some_limits(random)),
        Association(account="other", parent="root", shares=2, qos=("normal",), limits=some_limits(random)),
        Association(account="team", user="ann", qos=("normal", "high"), priority=3, limits=some_limits(random)),
        Association(account="lab", user="ann", qos=("normal", "high", "low")),
        Association(account="team", user="bob", shares=3, limits=some_limits(random)),
        Association(account="other", user="cyd", priority=1),
    ]
    qos = [
        Qos(name="normal", priority=10),
        Qos(name="high", priority=30, **some_qos_limits(random)),
        Qos(name="low", **some_qos_limits(random)),
        Qos(name="of-partition", **some_qos_limits(random)),
    ]
    return Accounts(associations={each.key: each for each in lines}, qos={each.name: each for each in qos})


def some_limits(random: Random) -> ResourceLimits:
    return ResourceLimits(
        max_wall_seconds=random.choice([None] * 4 + [8]),
        max_tres_per_job=random.choice([{}] * 4 + [{"cpu": 3.0}, {"gres/gpu": 1.5}]),
        max_jobs=random.choice([None] * 4 + [1, 2]),
        grp_jobs=random.choice([None] * 4 + [2]),
        grp_tres=random.choice([{}] * 4 + [{"cpu": 4.0}, {"gres/gpu": 2.0, "node": 2.0}]),
        grp_tres_minutes=random.choice([{}] * 6 + [{"cpu": 0.51}, {"gres/gpu": 0.101}]),
    )


def some_qos_limits(random: Random) -> dict:
    return {
        "limits": some_limits(random),
        "max_tres_per_user": random.choice([{}] * 3 + [{"cpu": 2.0}]),
        "max_jobs_per_account": random.choice([None] * 3 + [1]),
    }


def some_reservations(random: Random, now: int = 0) -> dict[str, Reservation]:
    found = {}
    for name in ("kept", "works")[: random.choice((0, 0, 1, 2))]:
        start = now + 1000 * random.choice((-1, 0, 2, 4, 7))
        found[name] = Reservation(
            name=name,
            nodes=tuple(map(NodeName, random.choice((("n1",), ("n2",), ("n1", "n2"), ("n3",))))),
            start_at=start,
            end_at=start + 1000 * random.choice((2, 5, 20)),
            users=random.choice(((), ("ann",), ("ann", "cyd"))) if name == "kept" else (),
            accounts=random.choice(((), ("team",))) if name == "kept" else (),
            maintenance=name == "works",
        )
    return found


def some_usage(random: Random, names: tuple[str, ...]) -> dict[str, Usage]:
    return {
        name: Usage(raw, raw / 4, {"cpu": raw, "gres/gpu": raw / 10})
        for name in names
        if (raw := random.choice((0.0, 0.0, 7.0, 20.0, 90.0)))
    }
