from __future__ import annotations

import pytest

from cockpit.model.cluster import Cluster, Partition, Priority, PriorityFlag
from cockpit.model.ids import NodeName
from cockpit.model.node import Allocation, CardSlice
from cockpit.sched.rules.tres import allocated, billed, billing, capacity, requested
from tests.sched.world import cards, node, spec_of, wants

pytestmark = pytest.mark.req("SC-01")

NODES = {each.name: each for each in (node("n1", cards(2, "H100")), node("n2", 4), node("n3"))}
AMOUNTS = {"cpu": 4.0, "mem": 8192.0, "node": 1.0, "gres/gpu": 4.0, "license": 3.0, "billing": 99.0}
WEIGHTS = {"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 10.0}


def test_a_request_is_of_all_nodes_together():
    assert requested(spec_of(wants(cpus=3, memory_mib=100), nodes=2)) == {"cpu": 6.0, "mem": 200.0, "node": 2.0}


def test_cards_count_under_the_one_model_that_is_asked_for():
    assert requested(spec_of(wants(2000, "A100"), nodes=2))["gres/gpu:a100"] == 4.0
    assert requested(spec_of(wants(500)))["gres/gpu"] == 0.5
    either = requested(spec_of(wants(1000, "A100", "H100")))
    assert [name for name in either if name.startswith("gres")] == ["gres/gpu"]


def test_the_node_spec_that_is_meant_is_billed():
    spec = spec_of(wants(cpus=3), wants(cpus=5))
    assert (requested(spec)["cpu"], requested(spec, 1)["cpu"]) == (3.0, 5.0)


def test_an_allocation_names_its_card_models():
    placement = (
        Allocation(0, NodeName("n1"), 4, 100, (CardSlice(0, None),)),
        Allocation(1, NodeName("n2"), 4, 100, (CardSlice(1, 0, 250),)),
        Allocation(2, NodeName("n2"), 1, 1),
        Allocation(3, NodeName("gone"), 1, 1, (CardSlice(7, None),)),
    )
    assert allocated(placement, NODES) == {
        "cpu": 10.0, "mem": 202.0, "node": 3.0, "gres/gpu": 2.25, "gres/gpu:h100": 1.0, "gres/gpu:a100": 0.25,
    }  # fmt: skip


def test_capacity_is_of_every_node():
    assert capacity(NODES.values()) == {
        "cpu": 48.0, "mem": 3 * 65536.0, "node": 3.0, "gres/gpu": 6.0, "gres/gpu:h100": 2.0, "gres/gpu:a100": 4.0,
    }  # fmt: skip


@pytest.mark.req("SC-24", "SL-11")
def test_an_instance_of_mig_counts_as_a_card():
    """As Slurm's gres/gpu does, whatever part of a card it is."""
    model = "a100_1g.5gb"
    sliced = node("n4", cards(2, model, slices=7))
    assert (capacity([sliced])["gres/gpu"], capacity([sliced])[f"gres/gpu:{model}"]) == (14.0, 14.0)
    asked = requested(spec_of(wants(2 * 142, model)))
    assert (asked["gres/gpu"], asked[f"gres/gpu:{model}"]) == (2.0, 2.0)
    held = Allocation(0, sliced.name, 1, 100, (CardSlice(0, 3, 142), CardSlice(1, None)))
    assert allocated((held,), {sliced.name: sliced})["gres/gpu"] == 1.0 + 7.0


class TestBilling:
    def test_billing_without_weights_is_one_for_each_cpu(self):
        assert billing(AMOUNTS, {}, greatest=False) == billing(AMOUNTS, {}, greatest=True) == 4.0

    def test_billing_is_the_weighted_sum(self):
        assert billing(AMOUNTS, WEIGHTS, greatest=False) == 4 + 2 + 40

    def test_billing_never_bills_billing(self):
        assert billing(AMOUNTS, {"billing": 5.0, "cpu": 1.0}, greatest=False) == 4.0

    def test_under_max_tres_only_the_greatest_amount_of_a_node_is_billed(self):
        assert billing(AMOUNTS, WEIGHTS, greatest=True) == 40.0

    def test_under_max_tres_resources_of_no_node_are_added(self):
        assert billing(AMOUNTS, {**WEIGHTS, "license": 2.0}, greatest=True) == 46.0

    def test_billing_uses_the_weights_of_the_partition(self):
        partitions = (Partition(name="gpu", billing_weights=WEIGHTS), Partition(name="cpu"))
        plain = Cluster(partitions=partitions)
        greatest = Cluster(partitions=partitions, priority=Priority(flags=(PriorityFlag.MAX_TRES,)))
        assert [billed(AMOUNTS, plain, name) for name in ("gpu", "cpu", "gone")] == [46.0, 4.0, 4.0]
        assert billed(AMOUNTS, greatest, "gpu") == 40.0
