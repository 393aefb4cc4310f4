from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.cards import card_devices, card_environment, no_cards_environment, share_limits, slots, whole_cards
from cockpit.model.ids import NodeName
from cockpit.model.node import Card, CardSlice, CardVendor, Node

NVIDIA = tuple(
    Card(
        index=index,
        model="A100",
        vendor=CardVendor.NVIDIA,
        uuid=f"GPU-{index}" if index < 2 else "",
        devices=("/dev/nvidiactl", f"/dev/nvidia{index}"),
        slice_uuids=("MIG-a", "MIG-b") if index == 3 else (),
        slices=2 if index == 3 else 0,
    )
    for index in range(4)
)


def node(*cards: Card) -> Node:
    return Node(name=NodeName("n1"), cpus=8, memory_mib=1024, cards=cards)


def of_vendor(vendor: CardVendor, count: int = 3) -> Node:
    return node(*(Card(index=index, model="X", vendor=vendor) for index in range(count)))


def shown(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if value}


@pytest.mark.req("JT-47")
@pytest.mark.parametrize(
    ("vendor", "expected"),
    [
        (
            CardVendor.NVIDIA,
            {"CUDA_VISIBLE_DEVICES": "0,2", "NVIDIA_VISIBLE_DEVICES": "0,2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        ),
        (CardVendor.MLU, {"MLU_VISIBLE_DEVICES": "0,2"}),
        (CardVendor.ASCEND, {"ASCEND_RT_VISIBLE_DEVICES": "0,2", "ASCEND_VISIBLE_DEVICES": "0,2"}),
        (
            CardVendor.ROCM,
            {"ROCR_VISIBLE_DEVICES": "0,2", "HIP_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES": "0,1"},
        ),
        (CardVendor.OTHER, {}),
    ],
)
def test_each_vendor_shows_its_own_cards_and_hides_the_others(vendor: CardVendor, expected: dict[str, str]) -> None:
    env = card_environment(of_vendor(vendor), [CardSlice(2, None), CardSlice(0, None)])
    assert shown(env) == {**expected, "COCKPIT_CARDS": "0,2"}
    assert set(no_cards_environment()) <= set(env)


@pytest.mark.req("JT-47")
def test_a_uuid_is_preferred_to_an_index() -> None:
    env = card_environment(node(*NVIDIA), [CardSlice(1, None), CardSlice(0, None)])
    assert env["CUDA_VISIBLE_DEVICES"] == env["NVIDIA_VISIBLE_DEVICES"] == "GPU-0,GPU-1"


@pytest.mark.req("JT-47")
def test_a_hardware_slice_is_named_by_its_uuid() -> None:
    env = card_environment(node(*NVIDIA), [CardSlice(3, 1, 500)])
    assert env["CUDA_VISIBLE_DEVICES"] == "MIG-b"
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" not in env


@pytest.mark.req("JT-47")
@pytest.mark.parametrize(("milli", "percentage"), [(250, "25"), (333, "33"), (4, "1")])
def test_a_share_shows_the_card_and_limits_its_threads(milli: int, percentage: str) -> None:
    env = card_environment(node(*NVIDIA), [CardSlice(2, 0, milli)])
    assert env["CUDA_VISIBLE_DEVICES"] == "2"
    assert env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == percentage


@pytest.mark.req("JT-47")
@pytest.mark.parametrize(
    ("card", "part", "said"),
    [
        (NVIDIA[2], CardSlice(2, 0, 250), "card share: by CUDA MPS where its server is reached, else not enforced"),
        (replace(NVIDIA[2], declared=True), CardSlice(2, 0, 250), "card share: not enforced"),
        (Card(index=2, model="X", vendor=CardVendor.MLU), CardSlice(2, 0, 250), "card share: not enforced"),
        (NVIDIA[3], CardSlice(3, 1, 500), ""),
        (NVIDIA[2], CardSlice(2, None), ""),
    ],
)
def test_an_unenforced_share_is_marked_as_such(card: Card, part: CardSlice, said: str) -> None:
    assert share_limits(node(card), [part]) == said


def test_two_slices_of_one_card_are_one_card_to_its_driver() -> None:
    env = card_environment(node(*NVIDIA), [CardSlice(2, 0, 250), CardSlice(2, 1, 250)])
    assert env["CUDA_VISIBLE_DEVICES"] == "2"
    assert env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "50"


@pytest.mark.req("JT-47")
def test_without_cards_every_variable_is_empty() -> None:
    assert card_environment(node(*NVIDIA), []) == no_cards_environment()
    assert set(no_cards_environment().values()) == {""}
    assert {"CUDA_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"} <= set(no_cards_environment())


@pytest.mark.req("JT-47")
def test_devices_are_those_of_the_allocated_cards_each_once() -> None:
    slices = [CardSlice(1, None), CardSlice(0, None)]
    assert card_devices(node(*NVIDIA), slices) == ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia1")
    assert card_devices(node(*NVIDIA), []) == ()


@pytest.mark.req("LA-02")
def test_the_number_of_slots_is_the_number_of_cards_or_one() -> None:
    assert slots([]) == 1
    assert slots([CardSlice(0, None), CardSlice(3, None)]) == 2
    assert slots([CardSlice(0, 1, 250)]) == 1


@pytest.mark.req("JT-47")
def test_use_is_measured_on_whole_cards_that_a_driver_found() -> None:
    declared = replace(NVIDIA[1], declared=True)
    machine = node(NVIDIA[0], declared, NVIDIA[2])
    assert whole_cards(machine, [CardSlice(0, None), CardSlice(1, None), CardSlice(2, None)]) == ("GPU-0",)
    assert whole_cards(machine, [CardSlice(0, 0, 500)]) == ()


@pytest.mark.req("JT-47")
def test_in_a_node_with_cards_of_two_vendors_cudas_variable_lists_nvidias() -> None:
    rocm = Card(index=7, model="MI300X", vendor=CardVendor.ROCM)
    env = card_environment(node(NVIDIA[2], rocm), [CardSlice(7, None), CardSlice(2, None)])
    assert (env["CUDA_VISIBLE_DEVICES"], env["ROCR_VISIBLE_DEVICES"], env["HIP_VISIBLE_DEVICES"]) == ("2", "7", "0")


@pytest.mark.req("JT-47")
def test_hardware_slices_of_one_card_are_listed_in_the_order_of_their_slots() -> None:
    env = card_environment(node(*NVIDIA), [CardSlice(3, 1, 500), CardSlice(3, 0, 500)])
    assert env["CUDA_VISIBLE_DEVICES"] == "MIG-a,MIG-b"
