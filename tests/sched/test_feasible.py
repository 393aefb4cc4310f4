from __future__ import annotations

import pytest

from cockpit.model.cluster import Cluster, Partition
from cockpit.model.ids import NodeName
from cockpit.model.labels import Taint, Toleration
from cockpit.model.node import NodeState
from cockpit.model.reasons import NeverFits, NoAlternative, NoEligibleNode, Resource
from cockpit.sched.feasible import never_fits
from tests.sched.world import World, cards, node, spec_of, wants

CLUSTER = {
    each.name: each
    for each in (
        node("n1", cards(4, "A100"), cpus=32, pool="east"),
        node("n2", cards(8, "H100"), cpus=16, pool="west"),
        node("n3", cpus=64, memory_mib=1024, driver_version="550"),
    )
}


@pytest.mark.req("SC-13", "SC-04")
@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (spec_of(wants(8000, "H100")), None),
        (spec_of(wants(16000)), NeverFits(Resource.CARDS, 16, 8)),
        (spec_of(wants(8000, "A100")), NeverFits(Resource.CARDS, 8, 4, ("A100",))),
        (spec_of(wants(500, "V100")), NeverFits(Resource.CARD_SHARE, 500, 0, ("V100",))),
        (spec_of(wants(cpus=65)), NeverFits(Resource.CPUS, 65, 64)),
        (spec_of(wants(1000, cpus=33)), NeverFits(Resource.CPUS, 33, 32)),
        (spec_of(wants(memory_mib=70000)), NeverFits(Resource.MEMORY, 70000, 65536)),
        (spec_of(wants(4000), nodes=3), NeverFits(None, 3, 2)),
        (spec_of(wants(8000, "A100"), wants(8000, "H100")), None),
        (spec_of(wants(8000), pool="east"), NeverFits(Resource.CARDS, 8, 4)),
        (spec_of(pool="north"), NoEligibleNode(pool="north")),
        (spec_of(driver_version="551"), NoEligibleNode(driver_version="551")),
        (spec_of(node_selector={"disk": "ssd"}), NoEligibleNode(labels=("disk=ssd",))),
        (spec_of(pins=("n8", "n9")), NoEligibleNode(pins=("n8", "n9"))),
        (spec_of(pins=("n1", "n9"), nodes=2), NeverFits(None, 2, 1)),
        (spec_of(wants(1000), exclusive=True, nodes=2), None),
    ],
)
def test_a_job_too_large_for_the_empty_cluster_is_refused_with_the_missing_resource(spec, reason) -> None:
    assert never_fits(spec, CLUSTER) == reason


SMALL = Partition(name="small", nodes=(NodeName("n1"),))
LARGE = Partition(name="large", nodes=(NodeName("n2"), NodeName("n3")))


@pytest.mark.req("SC-13", "TR-04")
@pytest.mark.parametrize(
    ("wanted", "asks", "reason"),
    [
        (wants(cpus=8), {"pins": ("n2",)}, NoEligibleNode(pins=("n2",), partition="small")),
        (wants(cpus=8), {"pins": ("n9",)}, NoEligibleNode(pins=("n9",))),
        (wants(8000), {}, NeverFits(Resource.CARDS, 8, 4, partition="small")),
        (wants(16_000), {}, NeverFits(Resource.CARDS, 16, 4)),
        (wants(cpus=8), {"nodes": 2}, NeverFits(None, 2, 1, partition="small")),
    ],
)
def test_a_partition_is_named_where_nodes_of_others_would_do(wanted, asks, reason) -> None:
    world = World(*CLUSTER.values(), cluster=Cluster(partitions=(SMALL, LARGE)))
    job = world.submit(wanted, record={"partitions": ("small",)}, **asks)
    world.run()
    assert world.reason(job) == reason


@pytest.mark.req("SC-13")
def test_the_cycle_gives_the_same_verdict_for_a_queued_job_and_checks_once_per_shape() -> None:
    world = World(*CLUSTER.values())
    jobs = [world.submit(wants(16000)) for _ in range(3)]
    plan = world.run()
    assert [world.reason(job) for job in jobs] == [NeverFits(Resource.CARDS, 16, 8)] * 3
    assert len(plan.refusals) == 1


@pytest.mark.req("SC-13")
def test_nodes_out_of_service_refuse_no_submission_and_are_named_in_the_reason() -> None:
    world = World(
        node("n1", 2),
        node("n2", 8, state=NodeState.DRAINED, state_reason="fan broken"),
        node("n3", 8, state=NodeState.DOWN),
    )
    assert never_fits(spec_of(wants(4000)), world.nodes) is None
    job, two = world.submit(wants(4000)), world.submit(wants(1000), nodes=2)
    world.run()
    expected = NoEligibleNode(out_of_service=("n2", "n3"), why_out=("drained: fan broken", "down"))
    assert (world.reason(job), world.reason(two)) == (expected, expected)


@pytest.mark.req("JT-25", "SC-13")
def test_a_job_runs_only_where_the_labels_are_that_it_selects_and_no_taint_that_it_does_not_tolerate() -> None:
    slow = node("n1", labels={"disk": "hdd"})
    spot = node("n2", labels={"disk": "ssd"}, taints=(Taint("spot"), Taint("gpu", "yes")))
    world = World(slow, spot)
    anywhere = world.submit()
    fast = world.submit(node_selector={"disk": "ssd"})
    other = world.submit(node_selector={"disk": "ssd"}, tolerations=(Toleration("spot"), Toleration("gpu", "no")))
    tolerant = world.submit(tolerations=(Toleration("spot"), Toleration("gpu", "yes")), pins=("n2",))
    whatever = world.submit(node_selector={"disk": "ssd"}, tolerations=(Toleration(),))
    starts = {start.job: start.placement[0].node for start in world.run().starts}
    assert starts == {anywhere: "n1", tolerant: "n2", whatever: "n2"}
    assert world.reason(fast) == NoEligibleNode(labels=("disk=ssd",), taints=("gpu=yes", "spot"))
    assert world.reason(other) == NoEligibleNode(labels=("disk=ssd",), taints=("gpu=yes",))
    assert never_fits(world.jobs[fast].spec, world.nodes) == world.reason(fast)


@pytest.mark.req("JT-12", "JT-10", "SC-13")
def test_only_jobs_that_name_a_dedicated_pool_run_in_it_whatever_nodes_they_are_pinned_to() -> None:
    world = World(node("n1", pool="lab"), node("n2", pool="vision", dedicated=True))
    first = world.submit(wants(cpus=16))
    second = world.submit(wants(cpus=16))
    named, pinned = world.submit(pool="vision"), world.submit(pins=("n2",))
    listed = world.submit(pool="of the catalogue", pool_nodes=("n2",))
    starts = {start.job: start.placement[0].node for start in world.run().starts}
    assert starts == {first: "n1", named: "n2", listed: "n2"}
    assert world.reason(second).nearest[0].node == "n1"
    assert world.reason(pinned) == NoEligibleNode(pins=("n2",), dedicated=("vision",))
    cards_there = {"n3": node("n3", 4, pool="vision", dedicated=True, taints=(Taint("spot"),))}
    too_many = NeverFits(Resource.CARDS, 2, 0, taints=("spot",), dedicated=("vision",))
    assert never_fits(spec_of(wants(2000)), world.nodes | cards_there) == too_many
    assert never_fits(spec_of(wants(8000)), world.nodes | cards_there) == NeverFits(Resource.CARDS, 8, 0)


@pytest.mark.req("SC-13")
def test_a_cached_verdict_is_discarded_when_the_nodes_change() -> None:
    world = World(node("n1", 2))
    job = world.submit(wants(4000))
    world.run()
    assert isinstance(world.reason(job), NeverFits)
    world.set_node(node("n2", 4))
    assert [start.job for start in world.run().starts] == [job]


@pytest.mark.req("SC-13", "SC-04")
def test_the_missing_resource_of_each_alternative_spec_is_named() -> None:
    world = World(node("n1", cards(2, "H100")))
    world.submit(wants(1000))
    world.run()
    job = world.submit(wants(2000, "A100"), wants(2000, "H100"))
    world.run()
    never, waits = world.reason(job).specs
    assert never == NeverFits(Resource.CARDS, 2, 0, ("A100",))
    assert (waits.card_models, waits.wanted, waits.nearest[0].free) == (("H100",), 2, 1)
    assert never_fits(spec_of(wants(2000, "A100"), wants(4000, "H100")), world.nodes) == NoAlternative(
        (NeverFits(Resource.CARDS, 2, 0, ("A100",)), NeverFits(Resource.CARDS, 4, 2, ("H100",)))
    )
