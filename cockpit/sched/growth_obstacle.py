"""Names what keeps a running elastic job from one more worker, for the reasons that other jobs and rules are behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.jobdetail import GrowthObstacle
from cockpit.model.node import NodeState
from cockpit.model.resilience import NoGrowth
from cockpit.model.spec import NodeSpec
from cockpit.sched.nodes.eligibility import suits
from cockpit.sched.nodes.node_free import NodeFree, node_free_of, shortfall
from cockpit.sched.nodes.node_layout import NodeClass, admits
from cockpit.sched.plan import Plan
from cockpit.sched.shape import Shape, shape_of


def growth_obstacle(plan: Plan, job: Job) -> GrowthObstacle | None:
    """Return what the last pass met when it looked for one more worker; None: it did not, or nothing can be named."""
    stopped = plan.scheduling_pass.no_growth.get(job.id)
    if stopped is NoGrowth.LIMIT_REACHED:
        return GrowthObstacle(limit=plan.scheduling_pass.growth_limits.get(job.id))
    if stopped is NoGrowth.RESERVED:
        return GrowthObstacle(reserved_for=tuple([each.job for each in plan.reservations]))
    if stopped not in {NoGrowth.NO_FREE_NODE, NoGrowth.PRICE_TOO_HIGH} or job.attempt is None:
        return None
    shape = shape_of(job.spec, job.attempt.partition)
    spec = job.spec.specs[job.attempt.spec_index]
    kept_out = {part.node for part in job.attempt.placement} | job.attempt.blocked
    index = plan.scheduling_pass.index
    classes = index.layout.node_classes
    nodes = [each for each in index.nodes_free if each.node.name not in kept_out]
    # Who holds most of what the worker needs comes first.
    held: dict[JobId, int] = {}
    for tenant, amount in _held(nodes, classes, shape, spec):
        held[tenant] = held.get(tenant, 0) + amount
    unpriced = replace(shape, max_price_milli=None)
    dear = [
        each.node.name
        for each in nodes
        if shape.max_price_milli is not None
        and not suits(each.node, shape)
        and admits(classes[each.node_class], unpriced)
        and each.node.state is NodeState.UP
        and shortfall(each, spec, exclusive=shape.exclusive) is None
    ]
    return GrowthObstacle(
        held_by=tuple(sorted(held, key=lambda each: (-held[each], each))),
        too_dear=tuple(dear),
        blocked=tuple(sorted(job.attempt.blocked)),
    )


def _held(
    nodes: list[NodeFree], classes: Sequence[NodeClass], shape: Shape, spec: NodeSpec
) -> Iterator[tuple[JobId, int]]:
    """Yield each job on a node that could hold a worker if it were empty, with its card thousandths or CPUs there."""
    # Nodes of one class and size are equal when empty, so that a large cluster needs a few tests only.
    could: dict[tuple[int, int, int], bool] = {}
    for each in nodes:
        if each.node.state is not NodeState.UP or not each.tenants:
            continue
        kind = (each.node_class, each.node.cpus, each.node.memory_mib)
        if (fits := could.get(kind)) is None:
            empty = node_free_of(each.node, each.order, each.node_class, ())
            fits = admits(classes[each.node_class], shape) and shortfall(empty, spec, exclusive=shape.exclusive) is None
            could[kind] = fits
        if fits:
            for tenant, part in each.tenants.items():
                amount = part.card_milli if spec.card_milli else part.cpus
                if amount or shape.exclusive:
                    yield tenant, amount
