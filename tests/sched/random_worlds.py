"""Small random clusters and histories for the property tests."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.labels import Taint, Toleration
from cockpit.model.node import Card, Node, NodeState
from cockpit.model.spec import JobSpec, NodeSpec, WorkerPool
from cockpit.sched.policy import FractionFit, Policy
from tests.sched.world import World, node, spec_of

MODELS = ("A100", "H100")
NAMES = ("n1", "n2", "n3", "n4")
SSD = {"disk": "ssd"}
SPOT = Toleration("spot")
RESTRICTIONS = [{}] * 12 + [
    {"pins": ("n1", "n2")},
    {"pins": ("n2",)},
    {"pool": "east"},
    {"driver_version": "550"},
    {"node_selector": SSD},
    {"tolerations": (SPOT,)},
    {"node_selector": SSD, "tolerations": (Toleration("gpu", "yes"), SPOT)},
    {"pool": "east", "tolerations": (Toleration(),)},
]
TAINTS = [()] * 6 + [(Taint("spot"),), (Taint("spot", "cheap"), Taint("gpu", "yes"))]


@st.composite
def some_cards(draw) -> tuple[Card, ...]:
    kinds = draw(st.lists(st.sampled_from(["plain", "plain", "thirds", "halves", "mig"]), max_size=3))
    slices = {"plain": 0, "thirds": 3, "halves": 2, "mig": 2}
    return tuple(
        Card(
            index=index,
            model=draw(st.sampled_from(MODELS)),
            slices=slices[kind],
            slice_uuids=("a", "b") if kind == "mig" else (),
        )
        for index, kind in enumerate(kinds)
    )


@st.composite
def some_node(draw, name: str) -> Node:
    pool = draw(st.sampled_from(["", "", "", "east"]))
    return node(
        name,
        draw(st.one_of(st.sampled_from([4, 3, 2, 1]), some_cards())),
        cpus=draw(st.sampled_from([8, 6, 4, 2])),
        memory_mib=draw(st.sampled_from([8192, 4096, 2048])),
        pool=pool,
        dedicated=bool(pool) and draw(st.booleans()),
        labels=draw(st.sampled_from([{}, {}, SSD, SSD | {"zone": "a"}])),
        taints=draw(st.sampled_from(TAINTS)),
        driver_version=draw(st.sampled_from(["", "", "", "550"])),
        state=draw(st.sampled_from([NodeState.UP] * 6 + [NodeState.DRAINED])),
    )


@st.composite
def some_nodes(draw) -> tuple[Node, ...]:
    return tuple(draw(some_node(name)) for name in NAMES[: draw(st.sampled_from([2, 3, 4]))])


node_specs = st.builds(
    NodeSpec,
    cpus=st.integers(1, 4),
    memory_mib=st.sampled_from([256, 1024, 2048]),
    card_milli=st.sampled_from([0, 1000, 2000, 500, 200, 334, 700, 1000]),
    card_models=st.sampled_from([(), (), (), ("A100",), ("H100", "A100")]),
)


@st.composite
def job_specs(draw) -> JobSpec:
    where = draw(st.sampled_from(RESTRICTIONS))
    return spec_of(
        *draw(st.lists(node_specs, min_size=1, max_size=2)),
        nodes=draw(st.sampled_from([1, 1, 2, 1, 2, 3])),
        limit=draw(st.sampled_from([4, 8, 2, 16, 1])),
        exclusive=draw(st.sampled_from([False] * 5 + [True])),
        **where,
    )


@st.composite
def mixed_specs(draw) -> JobSpec:
    """A job, sometimes one whose replicas differ."""
    spec = draw(job_specs())
    others = draw(st.lists(node_specs, min_size=0, max_size=2))
    pools = tuple(WorkerPool(replicas=1, spec=each) for each in (spec.specs[0], *others))
    return replace(spec, nodes=1, worker_pools=pools) if others else spec


policies = st.builds(
    Policy,
    fraction_fit=st.sampled_from(FractionFit),
    backfill=st.sampled_from(
        [Backfill(), Backfill(), Backfill(kind=BackfillKind.OFF), Backfill(kind=BackfillKind.CONSERVATIVE)]
    ),
)


@st.composite
def steps(draw, jobs):
    """(what, how): mostly submissions, so that the cluster fills up and a queue forms."""
    what = draw(st.sampled_from(["submit"] * 7 + ["tick", "tick", "end", "hold", "keep", "node"]))
    match what:
        case "submit":
            return what, draw(jobs)
        case "node":
            return what, draw(some_node(draw(st.sampled_from(NAMES))))
        case "tick":
            return what, draw(st.sampled_from([1, 1, 2, 3]))
    return what, draw(st.integers(0, 20))


def histories(least: int = 10, most: int = 20, jobs=None):
    return st.lists(steps(job_specs() if jobs is None else jobs), min_size=least, max_size=most)


def act(world: World, step) -> None:
    """One thing that may happen to a cluster; what cannot happen just now does not."""
    what, how = step
    running = [job for job in world.occupied if job in world.ends]
    match what:
        case "submit":
            world.submit_spec(how)
        case "tick":
            world.now += 1000 * how
            world.version += 1
            for job in [job for job in running if world.ends[job] <= world.now]:
                world.end(job)
        case "hold" if world.queue:
            job = world.queue[how % len(world.queue)]
            world.hold(job.id, "" if job.held_by else "root")
        case "end" if running:
            world.end(running[how % len(running)])
        case "keep" if running:
            world.keep_cards(running[how % len(running)])
        case "node" if how.name not in {part.node for each in world.occupied.values() for part in each}:
            world.set_node(how)
