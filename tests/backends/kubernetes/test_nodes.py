"""Nodes and their cards out of the API server's nodes."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.kubernetes.mapping.cards.models import card_model
from cockpit.backends.kubernetes.mapping.cards.requests import card_milli
from cockpit.backends.kubernetes.mapping.quantities import PodAmounts
from cockpit.model.labels import Taint
from cockpit.model.node import CardVendor, NodeState
from tests.backends.kubernetes.objects import a_node, model_node


@pytest.mark.req("KU-06")
def test_a_node_has_what_pods_can_have_of_it() -> None:
    node = model_node(a_node())
    assert (node.name, node.cpus, node.memory_mib, node.state) == ("n1", 95, 1000 * 1024, NodeState.UP)
    assert [(card.index, card.model, card.vendor) for card in node.cards] == [
        (index, "H100", CardVendor.NVIDIA) for index in range(8)
    ]


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    ("labels", "model"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, "A100"),
        ({"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}, "V100"),
        ({"nvidia.com/gpu.product": "NVIDIA-L40S"}, "L40S"),
        ({"nvidia.com/gpu.product": "NVIDIA-GeForce-RTX-4090"}, "GeForce-RTX-4090"),
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "T4"),
        ({"aliyun.accelerator/nvidia_name": "Tesla-P100-PCIE-16GB"}, "P100"),
        ({"amd.com/gpu.product-name": "MI300X"}, "MI300X"),
        ({}, ""),
    ],
)
def test_the_model_of_the_cards_is_named_as_people_name_it(labels: dict[str, str], model: str) -> None:
    assert card_model(labels) == model


@pytest.mark.req("KU-06")
def test_mig_instances_make_cards_of_slices() -> None:
    allocatable = {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "14"}
    node = model_node(a_node(status={"allocatable": allocatable}))
    assert [(card.index, card.model, card.slices) for card in node.cards] == [
        (0, "H100", 0),
        (1, "H100_1g.10gb", 7),
        (2, "H100_1g.10gb", 7),
    ]
    wants = PodAmounts(0, 0, (("nvidia.com/gpu", 1), ("nvidia.com/mig-1g.10gb", 2), ("rdma/hca", 1)))
    assert card_milli(wants) == 1000 + 2 * 142


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    ("changes", "state", "why"),
    [
        ({"spec": {"unschedulable": True}}, NodeState.DRAINED, "cordoned"),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "stopped"}]}},
            NodeState.DOWN,
            "stopped",
        ),
        ({"status": {"conditions": []}}, NodeState.DOWN, "its kubelet has not reported"),
    ],
)
def test_a_node_out_of_service_says_why(changes: dict[str, Any], state: NodeState, why: str) -> None:
    node = model_node(a_node(**changes))
    assert (node.state, node.state_reason) == (state, why)


@pytest.mark.req("KU-06")
def test_only_taints_that_keep_pods_off_count() -> None:
    taints = [
        {"key": "spot", "value": "true", "effect": "NoSchedule"},
        {"key": "old", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "leaving", "effect": "NoExecute"},
    ]
    assert model_node(a_node(spec={"taints": taints})).taints == (Taint("spot", "true"), Taint("leaving"))
