"""Small random clusters with every rule that there is, as one seed makes them: filled, with a queue behind.

Each rule is switched on now and then, so that in many clusters each stops somebody and none stops everybody.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from cockpit.model.accounts import Accounts, Qos
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Partition, Preemption
from cockpit.model.fleet import OVER_CLUSTERS, Member
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import ArrayTask, JobState
from cockpit.model.labels import Taint, Toleration
from cockpit.model.node import Node, NodeState
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.spec import Dependency, DependencyKind, JobSpec, NodeSpec, Suspension
from cockpit.sched.policy import FractionFit, Policy
from tests.sched.ruled_worlds import CHARGED, QOS, some_accounts, some_cluster, some_reservations, some_usage
from tests.sched.world import World, cards, node, spec_of, wants

PROJECTS = ("nlp", "nlp", "chat", "vision", "vision", "guests")
LATE_MIB = 333
"""Memory in MiB that no other job asks for: a job with it, submitted after the last pass, is in no class that the pass
has considered."""
USED = ("team/ann", "team/", "lab/", "other/cyd", "root/")

APART = {"pool": "own", "dedicated": True}


def every_rule_world(seed: int) -> World:
    """A world right after a pass whose plan is carried out; after some of them, nothing more would start."""
    random = Random(seed)
    world = _fleet(random) if random.random() < 0.1 else _cluster(random)
    for count in (random.randint(4, 9), random.randint(3, 7)):
        world.now = Millis(world.now + 1000 * random.choice((0, 1, 2)))
        world.version += 1
        _let_some_end(random, world)
        for _ in range(count):
            _submit(random, world)
        if random.random() < 0.05:
            _take_out_of_service(random, world)
        world.run()
    for _ in range(random.choice((0, 1, 3))):
        world.run()
    if random.random() < 0.1:
        world.submit(wants(memory_mib=LATE_MIB), limit=random.choice((1, 30)))
    return world


def _cluster(random: Random) -> World:
    names = [f"n{number}" for number in range(1, random.choice((1, 2, 2, 3)) + 1)]
    return World(
        *(_node(random, name) for name in names),
        policy=_policy(random),
        cluster=_rules(random),
        accounts=_accounts(random),
        reservations=some_reservations(random) if random.random() < 0.25 else {},
        usage=some_usage(random, USED),
        qos_usage=some_usage(random, ("high", "low")),
        quota=_tree(random) if random.random() < 0.3 else None,
    )


def _policy(random: Random) -> Policy:
    kind = random.choice([BackfillKind.EASY] * 3 + [BackfillKind.CONSERVATIVE, BackfillKind.OFF])
    backfill = Backfill(
        kind=kind,
        depth=random.choice((0, 0, 0, 0, 3)),
        window_seconds=random.choice((0, 0, 0, 10)),
        resolution_seconds=random.choice((0, 0, 0, 3)),
    )
    return Policy(fraction_fit=random.choice(list(FractionFit)), backfill=backfill)


def _rules(random: Random) -> Cluster:
    if random.random() < 0.6:
        return Cluster(preemption=_preemption(random))
    return replace(some_cluster(random), preemption=_preemption(random))


def _preemption(random: Random) -> Preemption:
    return Preemption(
        kind=random.choice(("preempt/none", *["preempt/qos"] * 3, "preempt/partition_prio")),
        mode=random.choice(
            (("CANCEL",), ("REQUEUE",), ("SUSPEND", "GANG"), ("SUSPEND", "GANG"), ("REQUEUE", "WITHIN"))
        ),
        exempt_seconds=random.choice((0, 0, 3)),
    )


def _accounts(random: Random) -> Accounts:
    known = some_accounts(random)
    may = {"high": ("normal", "low"), "normal": ("low",)}
    qos = {
        name: replace(each, preempt=may.get(name, ()), grace_seconds=random.choice((0, 2)))
        for name, each in known.qos.items()
    }
    return Accounts(
        associations=known.associations, qos=qos if random.random() < 0.8 else {**qos, "low": Qos(name="low")}
    )


def _tree(random: Random) -> QuotaTree:
    """Two teams, one of two groups, and what they leave of it."""
    top = {"cpu": 1000 * random.randint(4, 12), "gres/gpu": 1000 * random.randint(1, 6)}
    half = {name: amount // 2 // 1000 * 1000 for name, amount in top.items()}
    nlp = (_leaf(random, "nlp", half, ("nlp",)), _leaf(random, "chat", {}, ("chat",)))
    children = (
        QuotaNode(name="language", min=half, max=_most(random, half), children=nlp),
        _leaf(random, "vision", {name: top[name] - half[name] for name in top}, ("vision",)),
    )
    return QuotaTree("teams", QuotaNode(name="root", min=top, max=top, children=children))


def _leaf(random: Random, name: str, kept: dict[str, int], projects: tuple[str, ...]) -> QuotaNode:
    least = {resource: 1000 * random.randint(0, amount // 1000) for resource, amount in kept.items()}
    jobs = {"jobs": 1000 * random.randint(1, 2)} if random.random() < 0.4 else {}
    return QuotaNode(name=name, min=least, max=_most(random, least) | jobs, namespaces=projects)


def _most(random: Random, least: dict[str, int]) -> dict[str, int]:
    return {name: amount + 1000 * random.randint(0, 3) for name, amount in least.items() if random.random() < 0.5}


def _node(random: Random, name: str) -> Node:
    slices = random.choice((0, 0, 0, 2, 3))
    has = cards(
        random.choice((0, 1, 2, 2, 3)),
        random.choice(("A100", "A100", "H100")),
        slices=slices,
        hardware=bool(slices) and random.random() < 0.3,
    )
    return node(
        name,
        has,
        cpus=random.choice((3, 4, 4, 6)),
        memory_mib=random.choice((1024, 2048, 4096)),
        driver_version=random.choice(("", "", "550", "550")),
        state=random.choice([NodeState.UP] * 16 + [NodeState.DRAINED, NodeState.DOWN]),
        labels=random.choice(({}, {"disk": "ssd"})),
        **random.choice([{}] * 12 + [{"pool": "east"}] * 4 + [{"taints": (Taint("spot"),)}] + [APART]),
    )


def _take_out_of_service(random: Random, world: World) -> None:
    """Take the node out of service; jobs that run there keep running."""
    world.set_state(random.choice(list(world.nodes)), random.choice((NodeState.DRAINED, NodeState.DOWN)))


def _let_some_end(random: Random, world: World) -> None:
    for job in [job for job in world.occupied if job in world.ends]:
        if world.ends[job] <= world.now or random.random() < 0.05:
            if world.jobs[job].ending is not None:
                world.gone(job)
            else:
                world.end(job)
                world.change_running(job, state=JobState.SUCCEEDED)
        elif random.random() < 0.03:
            world.keep_cards(job)


def _submit(random: Random, world: World) -> JobId:
    account, user = random.choice(CHARGED)
    number = JobId(len(world.jobs) + 1)
    return world.submit_spec(
        _spec(random, world),
        user=user,
        account=account,
        project=random.choice(PROJECTS),
        qos=random.choice(QOS),
        held_by="root" if random.random() < 0.03 else "",
        partitions=_partitions(random, world),
        array=ArrayTask(JobId(900), number, random.choice((1, 1, 2))) if random.random() < 0.2 else None,
        accrues_from=world.now,
        direct_priority=random.choice([None] * 9 + [5000]),
        in_vain=_in_vain(random, world),
        **_conditions(random),
    )


def _conditions(random: Random) -> dict[str, object]:
    if random.random() > 0.04:
        return {}
    conditions = [Dependency(random.choice((DependencyKind.AFTER_OK, DependencyKind.AFTER_ANY)), JobId(1))]
    if random.random() < 0.5:
        return {"waits_for": tuple(conditions), "never": JobId(1)}
    return {"waits_for": (*conditions, *random.choice(((), (Dependency(DependencyKind.AFTER_OK, JobId(2)),))))}


def _partitions(random: Random, world: World) -> tuple[str, ...]:
    known = [each.name for each in world.rules["cluster"].partitions]
    return tuple(random.sample(known, random.choice((1, min(2, len(known)))))) if known else ()


def _spec(random: Random, world: World) -> JobSpec:
    names = list(world.rules.get("reservations", ()))
    where = random.choice(
        [{}] * 24
        + [{"pool": "east"}, {"driver_version": "550"}, {"pins": ("n1",)}, {"pins": ("n2",)}]
        + [{"node_selector": {"disk": "ssd"}}, {"tolerations": (Toleration("spot"),)}, {"pool": "own"}]
    )
    return spec_of(
        *(_node_spec(random) for _ in range(random.choice((1, 1, 1, 2)))),
        nodes=1 if "pins" in where else random.choice((1,) * 12 + (2, 2, 2, 3)),
        limit=random.choice((1, 2, 4, 8, 16, 30, 60)),
        exclusive=random.random() < 0.05,
        begin_at=Millis(world.now + 1000 * random.choice((3, 4))) if random.random() < 0.03 else None,
        reservation=random.choice([*names, *names, "gone"]) if random.random() < 0.04 else "",
        suspension=Suspension(scheduling=random.random() < 0.03),
        divide_over_clusters=random.random() < 0.5,
        **where,
    )


def _node_spec(random: Random) -> NodeSpec:
    milli = random.choice((0, 0, 0, 1000, 1000, 2000, 500, 300))
    return NodeSpec(
        cpus=random.choice((1, 1, 1, 2, 2, 3)),
        memory_mib=random.choice((256, 512, 512, 1024)),
        card_milli=milli,
        card_models=random.choice(((), (), (), ("A100",))) if milli else (),
    )


# fleets


def _fleet(random: Random) -> World:
    """Two clusters, of at least one of which only totals are known."""
    members = [
        Member(name=name, kubernetes="1.30", scheduler="6.8.0", enable_reservation=known)
        for name, known in (("east", False), ("west", random.random() < 0.3))
    ]
    nodes = [_node(random, f"{each.name}/n{number}") for each in members for number in range(random.choice((1, 2)))]
    partitions = [
        Partition(name=each.name, nodes=tuple(n.name for n in nodes if n.name.startswith(f"{each.name}/")))
        for each in members
    ]
    partitions.append(Partition(name=OVER_CLUSTERS, nodes=tuple(NodeName(each.name) for each in nodes)))
    return World(*nodes, policy=_policy(random), cluster=Cluster(partitions=tuple(partitions), members=tuple(members)))


def _in_vain(random: Random, world: World) -> dict[str, Millis]:
    members = world.rules["cluster"].members
    return {each.name: world.now for each in members} if random.random() < 0.3 else {}
