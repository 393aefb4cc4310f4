"""The cards of nodes and what pods hold of them, by each way in which clusters manage cards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.cards.all import NodeCards, places_of
from cockpit.backends.kubernetes.mapping.cards.placing import slices_on
from cockpit.backends.kubernetes.mapping.cards.requests import card_milli, has_cards, joined, units_of, wanted_parts
from cockpit.backends.kubernetes.mapping.cards.scheme import PodSource
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.backends.kubernetes.objects.koordinator import Device
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.node import CardSlice, CardVendor
from tests.backends.kubernetes.objects import GPU, a_node, a_running_pod, model_node, the_cards

DATA = Path(__file__).parent / "data" / "cards"


def recorded(name: str, part: str) -> dict[str, str]:
    """Return annotations that a real component wrote."""
    found: dict[str, str] = json.loads((DATA / f"{name}.json").read_text())[part]
    return found


def a_card_node(allocatable: dict[str, Any], annotations: dict[str, str] | None = None, **labels: str) -> Any:
    """Return a node with these amounts alone, annotations and labels."""
    node = {
        "metadata": {"name": "n1", "uid": "uid-n1", "annotations": annotations or {}, "labels": labels},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", **allocatable}},
    }
    return msgspec.convert(node, type(a_node()), strict=False)


def pod(annotations: dict[str, str], name: str = "p") -> Pod:
    """Return a placed pod with these annotations, and without a request."""
    return pod_of(annotations, {}, name=name)


def pod_of(annotations: dict[str, str], *containers: dict[str, object], name: str = "p") -> Pod:
    """Return a placed pod with these annotations, whose containers request these amounts."""
    own = [{"name": f"c{place}", "resources": {"limits": each}} for place, each in enumerate(containers)]
    return a_running_pod(name, metadata={"annotations": annotations}, spec={"containers": own})


def held(node: NodeCards, *pods: Pod) -> list[list[tuple[int, int | None, int, bool]]]:
    """Return the slices that each of the pods has of the node: card, slot, thousandths, and whether it is assumed."""
    places = [places_of(PodSource(each), node)[0] for each in pods]
    return [[(part.card, part.slot, part.milli, part.assumed) for part in slices] for slices in slices_on(node, places)]


# ── ACK's GPU share ──────────────────────────────────────────────────────────────────────────────────────────────────

ACK = {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"}


def allocation(**cards: int) -> dict[str, str]:
    return {"scheduler.framework.gpushare.allocation": json.dumps({"0": {key[1:]: gib for key, gib in cards.items()}})}


@pytest.mark.req("KU-06")
def test_gpu_share_cards_have_an_equal_part_of_the_nodes_memory_and_the_labels_model() -> None:
    node = model_node(a_card_node(ACK, **{"aliyun.accelerator/nvidia_name": "Tesla-V100-SXM2-16GB"}))
    assert [(card.index, card.model, card.memory_mib, card.vendor) for card in node.cards] == [
        (0, "V100", 15 * 1024, CardVendor.NVIDIA),
        (1, "V100", 15 * 1024, CardVendor.NVIDIA),
    ]
    in_mib = model_node(a_card_node({"aliyun.com/gpu-mem": "32552", "aliyun.com/gpu-count": "2"}))
    assert [card.memory_mib for card in in_mib.cards] == [16276, 16276]


@pytest.mark.req("KU-06")
def test_gpu_share_pods_have_the_memory_of_the_cards_that_their_annotation_names() -> None:
    node = the_cards(a_card_node(ACK))
    two_cards = allocation(_0=12, _1=3)
    two_containers = {"scheduler.framework.gpushare.allocation": '{"0":{"1":3},"2":{"1":6}}'}
    older = recorded("gpu-share", "pod")
    shown = held(node, pod(allocation(_1=3)), pod(two_cards), pod(two_containers), pod(older))
    assert shown == [
        [(1, 0, 200, False)],
        [(0, 0, 800, False), (1, 1, 200, False)],
        [(1, 2, 600, False)],
        [(1, 3, 200, False)],
    ]
    assert held(node, pod(allocation(_0=15))) == [[(0, None, 1000, False)]]


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    "annotations",
    [{}, {"ALIYUN_COM_GPU_MEM_IDX": "-1"}, allocation(_7=3), {"scheduler.framework.gpushare.allocation": "{"}],
)
def test_a_share_of_a_card_that_is_not_told_counts_and_is_unknown(annotations: dict[str, str]) -> None:
    node = the_cards(a_card_node(ACK))
    assert held(node, pod_of(annotations, {"aliyun.com/gpu-mem": 3})) == [[(0, 0, 200, True)]]


# ── HAMi ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("KU-06")
@pytest.mark.parametrize("form", ["node_fields", "node_json"])
def test_hamis_register_tells_the_healthy_cards_whatever_the_resource_counts(form: str) -> None:
    node = model_node(a_card_node({GPU: "30"}, recorded("hami", form)))
    assert [(card.index, card.model, card.memory_mib, card.uuid[-1]) for card in node.cards] == [
        (0, "H100", 81920, "0"),
        (1, "H100", 81920, "1"),
    ]


@pytest.mark.req("KU-06")
def test_hamis_allocation_tells_the_cards_of_each_container() -> None:
    node = the_cards(a_card_node({GPU: "20"}, recorded("hami", "node_json")))
    whole = {"hami.io/vgpu-devices-allocated": "GPU-aaaa0000-0000-4000-8000-000000000001,NVIDIA,81920,100:;"}
    assert held(node, pod(recorded("hami", "pod"))) == [[(0, 0, 250, False), (1, 0, 250, False), (0, 1, 100, False)]]
    assert held(node, pod(whole)) == [[(1, None, 1000, False)]]
    # Memory tells more than cores; where it tells nothing they count.
    by_cores = {"hami.io/vgpu-devices-allocated": "GPU-aaaa0000-0000-4000-8000-000000000001,NVIDIA,0,30:;"}
    assert held(node, pod(by_cores)) == [[(1, 0, 300, False)]]


@pytest.mark.req("KU-06")
def test_cards_of_other_makers_are_in_registers_of_their_own() -> None:
    annotations = {
        "hami.io/node-register-Ascend910B": "NPU-1,4,65536,20,Ascend910B,0,true,0,hami-core:",
        "hami.io/node-handshake-Ascend910B": "Requesting_2026.03.01 09:00:00",
    }
    node = a_card_node({"huawei.com/Ascend910B": "4"}, annotations)
    (card,) = model_node(node).cards
    assert (card.model, card.vendor, card.memory_mib) == ("Ascend910B", CardVendor.ASCEND, 65536)
    share = {"hami.io/Ascend910B-devices-allocated": "NPU-1,Ascend910B,16384,0:;"}
    assert held(the_cards(node), pod(share)) == [[(0, 0, 250, False)]]


# ── Volcano ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("KU-06")
def test_volcanos_register_and_allocation_are_read() -> None:
    offered = {"volcano.sh/vgpu-number": "20", "volcano.sh/vgpu-memory": "65536"}
    node = a_card_node(offered, recorded("volcano", "node"))
    assert [(card.model, card.memory_mib) for card in model_node(node).cards] == [("V100", 32768), ("V100", 32768)]
    assert held(the_cards(node), pod(recorded("volcano", "pod"))) == [[(0, 0, 244, False), (1, 0, 488, False)]]


# ── Koordinator ──────────────────────────────────────────────────────────────────────────────────────────────────────


def koordinator_device(*minors: int) -> Device:
    resources = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "80Gi"}
    gpus = [
        {"type": "gpu", "id": f"GPU-{minor}", "minor": minor, "health": True, "resources": resources}
        for minor in minors
    ]
    others = [{"type": "rdma", "minor": 0, "health": True}, {"type": "gpu", "minor": 9, "health": False}]
    return msgspec.convert({"metadata": {"name": "n1"}, "spec": {"devices": [*gpus, *others]}}, Device)


@pytest.mark.req("KU-06")
def test_koordinators_devices_are_the_cards_and_its_allocations_name_their_minors() -> None:
    offered = {GPU: "3", "koordinator.sh/gpu-core": "300", "koordinator.sh/gpu-memory": "240Gi"}
    node = a_card_node(offered, **{"node.koordinator.sh/gpu-model": "NVIDIA-A100-SXM4-80GB"})
    cards = the_cards(node, koordinator_device(2, 0, 1))
    assert [(card.index, card.model, card.memory_mib, card.uuid) for card in cards.cards] == [
        (0, "A100", 81920, "GPU-0"),
        (1, "A100", 81920, "GPU-1"),
        (2, "A100", 81920, "GPU-2"),
    ]
    assert held(cards, pod(recorded("koordinator", "half")), pod(recorded("koordinator", "whole"))) == [
        [(1, 0, 500, False)],
        [(0, None, 1000, False), (2, None, 1000, False)],
    ]
    only_adapter = {"scheduling.koordinator.sh/device-allocated": '{"rdma":[{"minor":0}]}'}
    assert held(cards, pod(only_adapter)) == [[]]


# ── device plugins ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("KU-06")
def test_which_whole_cards_a_pod_has_is_unknown_unless_it_has_all() -> None:
    node = the_cards(a_card_node({GPU: "4"}))
    few, most = pod_of({}, {GPU: 1}, name="few"), pod_of({}, {GPU: 3}, name="most")
    assert held(node, few, most) == [[(0, None, 1000, True)], [(card, None, 1000, True) for card in (1, 2, 3)]]
    assert held(node, pod_of({}, {GPU: 4})) == [[(card, None, 1000, False) for card in range(4)]]


@pytest.mark.req("KU-06")
def test_mig_instances_are_slices_of_cards_of_their_profile_which_are_unknown() -> None:
    profile = "nvidia.com/mig-1g.10gb"
    node = the_cards(a_card_node({GPU: "1", profile: "14"}))
    assert [card.slices for card in node.cards] == [0, 7, 7]
    assert held(node, pod_of({}, {profile: 2}), pod_of({}, {GPU: 1}))[0] == [(1, 0, 142, True), (1, 1, 142, True)]


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    ("labels", "model", "slices", "count"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, "A100_1g.5gb", 7, 2),
        ({"nvidia.com/gpu.product": "NVIDIA-L4-SHARED", "nvidia.com/gpu.replicas": "4"}, "L4", 4, 4),
        ({"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "lots"}, "L4", 0, 14),
    ],
)
def test_a_resource_that_counts_parts_of_cards_makes_as_many_cards_as_there_are(
    labels: dict[str, str], model: str, slices: int, count: int
) -> None:
    node = the_cards(a_card_node({GPU: "14"}, **labels))
    assert {(card.model, card.slices) for card in node.cards} == {(model, slices)}
    assert len(node.cards) == count


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SMALL_AND_LARGE = joined(
    units_of(each)
    for each in (
        {"aliyun.com/gpu-mem": 16, "nvidia.com/gpumem": 16384},
        {"aliyun.com/gpu-mem": 80, "nvidia.com/gpumem": 81920},
    )
)


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    ("containers", "parts"),
    [
        # Memory of one card, on the smallest card that has as much.
        ([{"aliyun.com/gpu-mem": 4}], [250]),
        ([{"aliyun.com/gpu-mem": 40}], [500]),
        ([{"nvidia.com/gpu": 2, "nvidia.com/gpumem": 8192}], [500, 500]),
        ([{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8192}] * 2, [500, 500]),
        ([{"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 30}], [300]),
        ([{"nvidia.com/gpu": 1, "nvidia.com/gpucores": 50}], [500]),
        ([{"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-cores": 25}], [250, 250]),
        ([{"volcano.sh/vgpu-number": 1}], [1000]),
        ([{"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 25}], [250]),
        ([{"koordinator.sh/gpu": 200}], [1000, 1000]),
        ([{"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-memory-ratio": 100}], [500, 500]),
        # Nothing tells the memory of such cards.
        ([{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 4000}], [1000]),
        ([{"nvidia.com/gpu": 2}, {"nvidia.com/mig-3g.40gb": 1}], [1000, 1000, 500]),
        ([{"cpu": 4, "rdma/hca": 1}], []),
    ],
)
def test_requests_for_shares_are_thousandths_of_cards(containers: list[dict[str, object]], parts: list[int]) -> None:
    wanted = requested(pod_of({}, *containers).spec)
    found = [each.milli for each in wanted_parts(wanted, SMALL_AND_LARGE) for _ in range(each.number)]
    assert found == parts
    assert (card_milli(wanted, SMALL_AND_LARGE), has_cards(wanted)) == (sum(parts), bool(parts))


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"hami.io/node-nvidia-register": "GPU-1,10:"}, "'GPU-1,10' has 2 fields instead of 7"),
        ({"hami.io/node-nvidia-register": "GPU-1,10,many,100,H100,0,true:"}, "'many' is no number"),
        ({"hami.io/node-nvidia-register": f"GPU-1,10,{'9' * 5000},100,H100,0,true:"}, "is no number"),
        ({"hami.io/node-nvidia-register": '[{"devmem": "x"}]'}, "hami.io/node-nvidia-register: Expected `int`"),
        ({"hami.io/node-nvidia-register": "[1, 2"}, "hami.io/node-nvidia-register: "),
        ({"volcano.sh/node-vgpu-register": "GPU-1"}, "volcano.sh/node-vgpu-register: "),
    ],
)
def test_a_register_that_cannot_be_read_has_no_cards_and_says_so(annotations: dict[str, str], words: str) -> None:
    cards = the_cards(a_card_node({GPU: "10"} if "hami" in str(annotations) else {}, annotations))
    assert cards.cards == ()
    assert words in cards.trouble[0]


@pytest.mark.req("KU-06")
@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"scheduler.framework.gpushare.allocation": "[]"}, "scheduler.framework.gpushare.allocation: Expected"),
        ({"scheduler.framework.gpushare.allocation": '{"0":{"1":"x"}}'}, "scheduler.framework.gpushare.allocation: "),
        ({"ALIYUN_COM_GPU_MEM_IDX": "first"}, "ALIYUN_COM_GPU_MEM_IDX: 'first' is no number of a card"),
    ],
)
def test_an_allocation_that_cannot_be_read_is_told(annotations: dict[str, str], words: str) -> None:
    places, trouble = places_of(PodSource(pod_of(annotations, {"aliyun.com/gpu-mem": 3})), the_cards(a_card_node(ACK)))
    assert [(each.card, each.milli) for each in places] == [(None, 200)]
    assert words in trouble


@pytest.mark.req("KU-06")
@pytest.mark.parametrize("text", ["", ":", ";;", "GPU-1,NVIDIA,1", "GPU-1,NVIDIA,x,1:;", "\x00", "{" * 3000])
def test_no_allocation_of_hami_or_volcano_crashes(text: str) -> None:
    register = recorded("hami", "node_json") | recorded("volcano", "node")
    node = the_cards(a_card_node({GPU: "20"}, register))
    own = {"hami.io/vgpu-devices-allocated": text, "volcano.sh/vgpu-ids-new": text}
    places, _ = places_of(PodSource(pod_of(own, {GPU: 1})), node)
    assert all(part.assumed for slices in slices_on(node, [places]) for part in slices)


@pytest.mark.req("KU-06")
def test_shares_that_fill_a_card_are_not_more_than_the_card() -> None:
    node = the_cards(a_card_node({"aliyun.com/gpu-mem": "15", "aliyun.com/gpu-count": "1"}))
    parts = [
        part for slices in held(node, *(pod(allocation(_0=2), f"p{each}") for each in range(7))) for part in slices
    ]
    assert sum(milli for _, _, milli, _ in parts) <= 1000
    assert [slot for _, slot, _, _ in parts] == list(range(7))


@pytest.mark.req("KU-06")
def test_more_cards_than_a_node_has_are_not_given_out() -> None:
    node = the_cards(a_card_node({GPU: "2"}))
    first, second = (pod_of({}, {GPU: 2}, name=name) for name in ("a", "b"))
    assert held(node, first, second) == [[(0, None, 1000, False), (1, None, 1000, False)], []]
    assert slices_on(node, [()]) == [tuple[CardSlice, ...]()]


@pytest.mark.req("KU-06")
@pytest.mark.parametrize("name", [GPU, "aliyun.com/gpu-mem", "nvidia.com/gpumem", "nvidia.com/mig-1g.10gb"])
def test_a_request_for_any_number_of_cards_is_only_a_number(name: str) -> None:
    node = the_cards(a_card_node({GPU: "4"}))
    huge = pod_of({}, {name: 10**12})
    assert card_milli(requested(huge.spec), SMALL_AND_LARGE) >= 10**10
    assert len(held(node, huge)[0]) <= 28


@pytest.mark.req("KU-06")
@pytest.mark.parametrize("name", [GPU, "aliyun.com/gpu-count"])
def test_a_node_that_claims_any_number_of_cards_has_none(name: str) -> None:
    cards = the_cards(a_card_node({"aliyun.com/gpu-mem": "30", name: str(10**12)}))
    assert cards.cards == ()
    assert cards.trouble == (f"{name}: a node cannot have {10**12} cards",)
