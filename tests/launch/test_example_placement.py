"""A launch before the job has a place: what each replica asks for, on cards as the cluster has them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.example_placement import example_cards, example_node, example_placement
from cockpit.launch.plan import launch_plan
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.node import CardSlice, CardVendor
from cockpit.model.spec import Mode, NodeSpec, WorkerPool
from tests.builders import ANN, a_card, a_node, a_spec

MLU = a_node("m", card_list=(replace(a_card(0, "MLU370-X8"), vendor=CardVendor.MLU),))
GPU = a_node("g", card_list=(replace(a_card(0, "A100"), vendor=CardVendor.NVIDIA),))


@pytest.mark.req("LA-60")
def test_each_pool_has_its_own_size() -> None:
    pools = (
        WorkerPool(replicas=1, spec=NodeSpec(cpus=2, card_milli=2000)),
        WorkerPool(replicas=2, spec=NodeSpec(cpus=3, card_milli=500)),
    )
    spec = a_spec("x", mode=Mode.WORKER_POOLS, worker_pools=pools, specs=(pools[0].spec,))
    assert [(part.cpus, part.card_milli, len(part.slices)) for part in example_placement(spec)] == [
        (2, 2000, 2),
        (3, 500, 1),
        (3, 500, 1),
    ]


@pytest.mark.req("LA-70", "JT-47")
@pytest.mark.parametrize("model", ["MLU370-X8", "mlu370-x8"])
@pytest.mark.parametrize(("milli", "seen"), [(1000, "0"), (2000, "0,1"), (500, "0")])
def test_cards_have_the_variables_of_their_vendor_in_any_spelling(model: str, milli: int, seen: str) -> None:
    spec = a_spec("x", specs=(NodeSpec(card_milli=milli, card_models=(model,)),))
    (part,) = placement = example_placement(spec)
    node = example_node(spec, part, (GPU, MLU))
    env = launch_plan(spec, ANN, node, part, placement, ReplicaId(JobId(0), 1, 0)).env
    assert (env["MLU_VISIBLE_DEVICES"], env["CUDA_VISIBLE_DEVICES"]) == (seen, "")


@pytest.mark.req("LA-70")
def test_replicas_are_on_nodes_of_the_given_names_in_turn_and_a_share_is_the_first_slice_of_a_card() -> None:
    spec = a_spec("x", nodes=3, specs=(NodeSpec(card_milli=250),))
    assert [part.node for part in example_placement(spec)] == ["node-1", "node-2", "node-3"]
    assert [part.node for part in example_placement(spec, ("a", "b"))] == ["a", "b", "a"]
    assert example_placement(spec)[0].slices == (CardSlice(0, 0, 250),)


@pytest.mark.req("JT-47")
def test_cards_that_the_cluster_does_not_have_are_nvidias_of_the_model_that_is_asked_for() -> None:
    for models, shown in ((("H100",), "H100"), ((), "card")):
        spec = a_spec("x", specs=(NodeSpec(card_milli=1000, card_models=models),))
        (card,) = example_cards(spec, example_placement(spec)[0], ())
        assert (card.index, card.model, card.vendor) == (0, shown, CardVendor.NVIDIA)
