"""Exactly what a reason names, taken away: what each type of reason claims to be in the way of a job.

A reason is true if the job starts without it, or waits for something else then. What is given may be taken by others,
who are served before or pass it while it waits for something more: then these are gone, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from cockpit.model.accounts import NORMAL, ROOT, Accounts, Association, assoc_key
from cockpit.model.cluster import Backfill, Partition, PartitionState, Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job, JobState
from cockpit.model.node import Card, Node, NodeState
from cockpit.model.quota import SEPARATOR, QuotaNode, QuotaTree
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    BehindHead,
    ClusterShort,
    DependencyNever,
    EvictionPending,
    Held,
    InReservation,
    LimitReached,
    NeverFits,
    NoAlternative,
    NoAssociation,
    NodesReserved,
    NoEligibleNode,
    NoMemberPlacement,
    NoQueue,
    NotEnoughFree,
    NotEvaluated,
    PartitionRefuses,
    PartitionRule,
    QosRefused,
    QuotaFull,
    QuotaMaxJobs,
    Reason,
    Resource,
    SuspendedReason,
    WaitsForJob,
    WouldDelay,
)
from cockpit.model.spec import NodeSpec
from cockpit.sched.feasible import wanted
from tests.sched.lab import moved
from tests.sched.world import World

A_LITTLE = 0.001


def copied(world: World) -> World:
    """The same cluster at the same moment, of which no cycle has seen anything."""
    fresh = World(*world.nodes.values(), policy=world.policy, **world.rules)
    fresh.now, fresh.version = world.now, world.version
    fresh.queue, fresh.jobs = list(world.queue), dict(world.jobs)
    fresh.occupied, fresh.ends = dict(world.occupied), dict(world.ends)
    return fresh


# of the job


def released(world: World, job: Job, _: Held) -> None:
    world.hold(job.id, by="")


def looked_at(world: World, job: Job, reason: NotEvaluated) -> None:
    """The next pass is all that it waits for."""


def begun(world: World, job: Job, _: BeginsLater) -> None:
    edited(world, job, begin_at=None)


def condition_dropped(world: World, job: Job, _: WaitsForJob | DependencyNever) -> None:
    world.change(job.id, waits_for=job.waits_for[1:], never=None)


def array_widened(world: World, job: Job, reason: ArrayFull) -> None:
    counted = [*world.occupied, *(each.id for each in world.queue if each.clears)]
    tasks = [world.jobs[other].array for other in counted if world.jobs[other].array is not None]
    world.change(job.id, array=replace(job.array, at_once=len(tasks) + 1))


def edited(world: World, job: Job, **fields: Any) -> None:
    world.change(job.id, spec=replace(world.jobs[job.id].spec, **fields))


# of those ahead


def ahead_withdrawn(world: World, _: Job, reason: WouldDelay | BehindHead) -> None:
    world.withdraw(reason.ahead)


def shortened(world: World, job: Job, reason: WouldDelay) -> None:
    """The job ends by the moment at which the other is to start; a plan with a resolution would round that moment."""
    world.policy = replace(world.policy, backfill=replace(world.policy.backfill, resolution_seconds=0))
    edited(world, job, time_limit_seconds=(reason.reserved_at - world.now) // 1000)


def backfill_for_all(world: World, _: Job, reason: BehindHead) -> None:
    world.policy = replace(world.policy, backfill=Backfill())


def cpus_freed(world: World, job: Job, reason: SuspendedReason) -> None:
    """The job was passed by those that it was evicted for, and by jobs that started beside them."""
    nodes = {part.node for part in job.attempt.placement}
    for other, parts in list(world.occupied.items()):
        if other != job.id and any(part.node in nodes for part in parts):
            ended(world, other)
    others_gone(world, job, reason)


def others_gone(world: World, _: Job, reason: EvictionPending | SuspendedReason) -> None:
    for other in reason.jobs:
        if other in world.occupied:
            ended(world, other)
        if world.jobs[other].state is JobState.QUEUED:
            world.withdraw(other)


def ended(world: World, job: JobId) -> None:
    if world.jobs[job].ending is not None:
        world.gone(job)
    else:
        world.end(job)
        world.change_running(job, state=JobState.SUCCEEDED)


# of the rules


def partition_opened(world: World, job: Job, reason: PartitionRefuses) -> None:
    cluster = world.rules["cluster"]
    known = cluster.partition(reason.partition) or Partition(name=reason.partition)
    fields: dict[PartitionRule, dict[str, Any]] = {
        PartitionRule.STATE: {"state": PartitionState.UP},
        PartitionRule.MAX_TIME: {"max_time_seconds": job.spec.time_limit_seconds},
        PartitionRule.MIN_NODES: {"min_nodes": job.spec.nodes},
        PartitionRule.MAX_NODES: {"max_nodes": job.spec.nodes},
        PartitionRule.ACCOUNT: {"allow_accounts": (), "deny_accounts": ()},
        PartitionRule.QOS: {"allow_qos": (), "deny_qos": ()},
        PartitionRule.USER: {"allow_users": ()},
    }
    if reason.rule is PartitionRule.STATE and cluster.members:  # for jobs that may be divided
        edited(world, job, divide_over_clusters=True)
        return
    opened = replace(known, **fields[reason.rule])
    others = [opened if each.name == opened.name else each for each in cluster.partitions]
    world.change_rules(cluster=replace(cluster, partitions=tuple(others)))


def limit_lifted(world: World, _: Job, reason: LimitReached) -> None:
    allowed = reason.used + reason.asked
    if reason.limit in ("GrpTRESMins", "GrpWall"):
        allowed += A_LITTLE
    if reason.limit.startswith("Min"):
        allowed = reason.asked
    world.change_rules(accounts=moved(world.rules["accounts"], reason, allowed))


def quota_lifted(world: World, _: Job, reason: QuotaFull | QuotaMaxJobs) -> None:
    if isinstance(reason, QuotaFull):
        most = {reason.resource: round(1000 * (reason.used + reason.asked))}
    else:
        most = {"jobs": 1000 * (reason.at_once + 1)}
    tree = world.rules["quota"]
    first, *rest = reason.queue.split(SEPARATOR)
    assert first == tree.root.name
    world.change_rules(quota=QuotaTree(tree.name, _with_max(tree.root, rest, most)))


def _with_max(node: QuotaNode, path: list[str], most: dict[str, int]) -> QuotaNode:
    if not path:
        return replace(node, max=node.max | most)
    below = [_with_max(each, path[1:], most) if each.name == path[0] else each for each in node.children]
    return replace(node, children=tuple(below))


def queue_made(world: World, _: Job, reason: NoQueue) -> None:
    tree = world.rules.get("quota") or QuotaTree("new", QuotaNode(name="root"))
    leaf = QuotaNode(name="another", namespaces=(reason.project,))
    root = replace(tree.root, children=(*tree.root.children, leaf))
    world.change_rules(quota=QuotaTree(tree.name, root))


def associated(world: World, job: Job, reason: NoAssociation) -> None:
    accounts = world.rules["accounts"]
    lines = [Association(account=reason.account, user=reason.user, qos=(job.qos,))]
    if assoc_key(reason.account) not in accounts.associations:
        lines.insert(0, Association(account=reason.account, parent=ROOT))
    added = {each.key: each for each in lines}
    world.change_rules(accounts=Accounts(associations=accounts.associations | added, qos=accounts.qos))


def qos_allowed(world: World, job: Job, reason: QosRefused) -> None:
    accounts = world.rules["accounts"]
    own = accounts.of(job.account, job.submitter.name)
    allowed = replace(own, qos=(*reason.allowed, reason.qos or NORMAL))
    world.change_rules(accounts=Accounts(associations=accounts.associations | {own.key: allowed}, qos=accounts.qos))


def let_in(world: World, job: Job, reason: InReservation) -> None:
    """The reservation is there, has begun, lasts, and is for the owner."""
    kept = world.rules.get("reservations", {})
    nodes = kept[reason.name].nodes if reason.name in kept else tuple(world.nodes)
    end = world.now + 1000 * job.spec.time_limit_seconds
    own = Reservation(name=reason.name, nodes=nodes, start_at=world.now, end_at=end, users=(job.submitter.name,))
    world.change_rules(reservations={**kept, reason.name: own})


def reservation_gone(world: World, _: Job, reason: NodesReserved) -> None:
    kept = world.rules["reservations"]
    world.change_rules(reservations={name: each for name, each in kept.items() if name != reason.name})


# of the nodes


def room_given(world: World, job: Job, reason: NotEnoughFree) -> None:
    """The nearest nodes get what they lack: as many as the job wants more of."""
    spec = next(each for each in job.spec.specs if wanted(each, reason.resource) == reason.wanted)
    for near in reason.nearest[: reason.nodes_wanted - reason.nodes_with_room]:
        if near.resource is Resource.NODE:
            on = [other for other, parts in world.occupied.items() if any(part.node == near.node for part in parts)]
            for other in on:
                ended(world, other)
        else:
            given = grown(world.nodes[near.node], spec, near.resource, wanted(spec, near.resource) - near.free)
            world.set_node(given)


def nodes_made_big_enough(world: World, job: Job, reason: NeverFits) -> None:
    if reason.resource is None:
        for number in range(reason.wanted - reason.most):
            new_node(world, job, f"new{number}")
        return
    spec = next(each for each in job.spec.specs if wanted(each, reason.resource) == reason.wanted)
    for each in list(world.nodes.values()):
        if (less := reason.wanted - has_of(each, spec, reason.resource)) > 0:
            world.set_node(grown(each, spec, reason.resource, less))


def place_found(world: World, job: Job, reason: NoEligibleNode) -> None:
    for name in reason.out_of_service:
        world.set_state(name, NodeState.UP)
    if reason.taints or reason.dedicated:
        open_to_all(world)
    elif not reason.out_of_service and (reason.pins or reason.pool or reason.driver_version or reason.labels):
        edited(world, job, node_names=(), pool=None, driver_version=None, node_selector={})
    elif not reason.out_of_service:
        new_node(world, job, "new")


def open_to_all(world: World) -> None:
    for each in list(world.nodes.values()):
        world.set_node(replace(each, taints=(), dedicated=False))


def member_given(world: World, job: Job, reason: ClusterShort) -> None:
    """In new nodes, since those that are there may be of another kind, or down; and as much again as is bound to it, of
    which it may have less than that."""
    bound = [part for parts in world.occupied.values() for part in parts if part.node == reason.member]
    held = {
        Resource.CPUS: sum(part.cpus for part in bound),
        Resource.MEMORY: sum(part.memory_mib for part in bound),
        Resource.CARDS: -(-sum(part.card_milli for part in bound) // 1000),
    }
    for number in range(job.spec.nodes):
        made = new_node(world, job, f"{reason.member}/new{number}")
        for resource, amount in held.items():
            made = grown(made, job.spec.specs[0], resource, amount)
        world.set_node(made)


def something_freed(world: World, _: Job, reason: NoMemberPlacement) -> None:
    world.change_rules(freed_at=dict.fromkeys(reason.members, Millis(reason.since + 1)))


def grown(node: Node, spec: NodeSpec, resource: Resource, by: int) -> Node:
    """With so much more of a resource, in its unit; of a share at least one card."""
    match resource:
        case Resource.CPUS:
            return replace(node, cpus=node.cpus + by)
        case Resource.MEMORY:
            return replace(node, memory_mib=node.memory_mib + by)
    count = by if resource is Resource.CARDS else -(-by // 1000)
    model = (*spec.card_models, "A100")[0]
    more = tuple(Card(index=len(node.cards) + number, model=model) for number in range(count))
    return replace(node, cards=(*node.cards, *more))


def has_of(node: Node, spec: NodeSpec, resource: Resource) -> int:
    match resource:
        case Resource.CPUS:
            return node.cpus
        case Resource.MEMORY:
            return node.memory_mib
    cards = [each for each in node.cards if each.model in spec.card_models or not spec.card_models]
    if resource is Resource.CARDS:
        return sum(not each.slice_uuids for each in cards)
    return max((1000 // each.slices * each.slices if each.slices else 1000 for each in cards), default=0)


def new_node(world: World, job: Job, name: str) -> Node:
    """One that holds a replica of any of the job's alternatives, wherever the job may run."""
    specs, spec = job.spec.specs, job.spec
    made = Node(
        name=NodeName(name),
        cpus=max(each.cpus for each in specs),
        memory_mib=max(each.memory_mib for each in specs),
        cards=(),
        pool=spec.pool or "",
        driver_version=spec.driver_version or "",
        labels=spec.node_selector,
    )
    for each in specs:
        made = grown(made, each, Resource.CARDS, -(-each.card_milli // 1000))
    world.set_node(made)
    cluster, kept = world.rules["cluster"], world.rules.get("reservations", {})
    own = [
        replace(each, nodes=(*each.nodes, made.name))
        if each.name in job.partitions and each.nodes + each.pools
        else each
        for each in cluster.partitions
    ]
    named = {
        key: replace(each, nodes=(*each.nodes, made.name)) if key == spec.reservation else each
        for key, each in kept.items()
    }
    world.change_rules(cluster=replace(cluster, partitions=tuple(own), login_pool=""), reservations=named)
    return made


class Claim(NamedTuple):
    """What a type of reason says is missing, and how to take that away."""

    ways: tuple[Callable[[World, Job, Any], None], ...]
    """Each of them, alone, takes away what it names."""
    named: Callable[[Any], object] = lambda _: None
    """What it names: a reason that names something else is another one."""
    lacks: Callable[[Any], tuple[float, ...]] = lambda _: ()
    """How much of it: a reason that lacks less is another one."""


CLAIMS: dict[type, Claim] = {
    Held: Claim((released,)),
    NotEvaluated: Claim((looked_at,)),
    NotEnoughFree: Claim(
        (room_given,),
        lambda reason: (reason.resource, reason.wanted, reason.nearest[0].node),
        lambda reason: (reason.nodes_wanted - reason.nodes_with_room, reason.wanted - reason.nearest[0].free),
    ),
    NeverFits: Claim(
        (nodes_made_big_enough,), lambda reason: reason.resource, lambda reason: (reason.wanted - reason.most,)
    ),
    NoEligibleNode: Claim(
        (place_found,),
        lambda reason: (
            *(reason.pins, reason.pool, reason.driver_version, reason.labels),
            *(reason.out_of_service, reason.taints, reason.dedicated),
        ),
    ),
    WouldDelay: Claim((ahead_withdrawn, shortened), lambda reason: (reason.ahead, reason.reserved_at)),
    BehindHead: Claim((ahead_withdrawn, backfill_for_all), lambda reason: reason.ahead),
    BeginsLater: Claim((begun,)),
    WaitsForJob: Claim((condition_dropped,), lacks=lambda reason: (reason.more,)),
    DependencyNever: Claim((condition_dropped,)),
    ArrayFull: Claim((array_widened,)),
    PartitionRefuses: Claim((partition_opened,), lambda reason: (reason.partition, reason.rule)),
    LimitReached: Claim(
        (limit_lifted,),
        lambda reason: (reason.holder, reason.limit, reason.resource, reason.asked),
        lambda reason: (reason.used + reason.asked - reason.allowed,),
    ),
    QuotaFull: Claim(
        (quota_lifted,),
        lambda reason: (reason.queue, reason.resource, reason.asked),
        lambda reason: (reason.used + reason.asked - reason.allowed,),
    ),
    QuotaMaxJobs: Claim((quota_lifted,), lambda reason: reason.queue),
    NoQueue: Claim((queue_made,)),
    NoAssociation: Claim((associated,), lambda reason: reason.partition),
    QosRefused: Claim((qos_allowed,)),
    InReservation: Claim((let_in,)),
    NodesReserved: Claim((reservation_gone,), lambda reason: reason.name),
    ClusterShort: Claim(
        (member_given,),
        lambda reason: (reason.member, reason.resource, reason.wanted),
        lambda reason: (reason.wanted - reason.free,),
    ),
    NoMemberPlacement: Claim((something_freed,), lambda reason: reason.members),
    EvictionPending: Claim((others_gone,), lambda reason: reason.jobs),
    SuspendedReason: Claim((cpus_freed,), lambda reason: reason.jobs),
    NoAlternative: Claim(()),
}


def still_so(before: Reason, after: Reason) -> bool:
    """Whether what was said before is as true now, or more so."""
    if type(before) is not type(after):
        return False
    claim = CLAIMS[type(before)]
    return claim.named(before) == claim.named(after) and all(
        now >= then for now, then in zip(claim.lacks(after), claim.lacks(before), strict=True)
    )


class Untrue(AssertionError):
    """Raised for a reason that does not keep the job waiting."""


def check(world: World, job_id: JobId, reason: Reason) -> None:
    """Raises `Untrue` unless each way to take away what the reason names lets the job start or changes its reason; of
    several alternatives, each by itself."""
    if not isinstance(reason, NoAlternative):
        _check(world, job_id, world.jobs[job_id], reason)
        return
    job = world.jobs[job_id]
    assert len(reason.specs) == len(job.spec.specs)
    for number, (spec, one) in enumerate(zip(job.spec.specs, reason.specs, strict=True)):
        _check(world, job_id, replace(job, spec=replace(job.spec, specs=(spec,))), one, number)


def _check(world: World, job_id: JobId, asked: Job, reason: Reason, number: int = 0) -> None:
    """`asked`: the job as far as the reason is about it."""
    for way in CLAIMS[type(reason)].ways:
        fresh = copied(world)
        way(fresh, asked, reason)
        while not _another(fresh, job_id, reason, number):
            if not (takers := _takers(fresh) - {job_id}):
                raise Untrue(f"{way.__name__} leaves job {job_id} where it was: {reason}")
            for job in takers:
                ended(fresh, job) if job in fresh.occupied else fresh.withdraw(job)


def _another(world: World, job_id: JobId, reason: Reason, number: int) -> bool:
    """Whether the job goes on, starts, or waits for something else by a new cycle: by the alternative of this number,
    where it has several reasons."""
    world.plan = None
    plan = world.cycle()
    if any(each.job == job_id for each in (*plan.starts, *plan.switches)):
        return True
    after = world.reason(job_id)
    after = after.specs[number] if isinstance(after, NoAlternative) else after
    return not isinstance(reason, SuspendedReason) and not still_so(reason, after)


def _takers(world: World) -> set[JobId]:
    """Return the jobs that start by the last plan, are nominated, or are suspended and resume before any job starts."""
    still = {job for job in world.occupied if world.jobs[job].suspension is not None}
    return {start.job for start in world.plan.starts} | {*world.plan.refusals.nominated} | still
