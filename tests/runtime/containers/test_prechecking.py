"""Whether the machine has what a job was promised."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.ids import NodeName
from cockpit.model.node import Allocation, Card, CardSlice, CardVendor, Node
from cockpit.runtime.containers.prechecking import Prechecks

pytestmark = pytest.mark.req("EL-10")

CARDS = tuple(
    Card(
        index=index,
        model="A100",
        vendor=CardVendor.NVIDIA,
        uuid=f"GPU-{index}",
        devices=(f"/dev/nvidia{index}", "/dev/nvidiactl"),
        slice_uuids=(f"MIG-{index}-a", f"MIG-{index}-b"),
    )
    for index in range(2)
)
NODE = Node(name=NodeName("n1"), cpus=8, memory_mib=8192, cards=CARDS)
PART = Allocation(0, NODE.name, 8, 4096, (CardSlice(1, None),))


def looked(machine: Node, tmp_path: Path, promised: Node = NODE, part: Allocation = PART) -> tuple[str, str]:
    return Prechecks(lambda _: promised, tmp_path, lambda: machine).look((part,))


def test_a_passed_check_is_reported(tmp_path: Path) -> None:
    assert looked(NODE, tmp_path) == ("", "n1 has its 8 CPUs, its memory and 1 card that answers")
    both = replace(PART, slices=(CardSlice(0, None), CardSlice(1, 0, 500)))
    assert looked(NODE, tmp_path, part=both)[1].endswith("its memory and 2 cards that answer")


@pytest.mark.parametrize(
    ("machine", "wrong"),
    [
        (replace(NODE, cpus=4), "the machine has 4 CPUs now, and 8 were promised"),
        (replace(NODE, memory_mib=2048), "the machine has 2048 MiB of memory now, and 4096 were promised"),
        (replace(NODE, cards=CARDS[:1]), "card 2 (A100) does not answer any more"),
        (
            replace(NODE, cards=(CARDS[0], replace(CARDS[1], devices=("/dev/nvidiactl",)))),
            "card 2 (A100) has lost /dev/nvidia1",
        ),
        (
            replace(NODE, cards=(CARDS[0], replace(CARDS[1], slice_uuids=("MIG-1-a",)))),
            "card 2 (A100) has lost 1 of its 2 slices",
        ),
    ],
)
def test_a_failed_check_is_reported_with_its_node(tmp_path: Path, machine: Node, wrong: str) -> None:
    assert looked(machine, tmp_path) == ("n1", wrong)


def test_cards_not_allocated_to_the_job_are_not_checked(tmp_path: Path) -> None:
    assert looked(replace(NODE, cards=CARDS[1:]), tmp_path)[0] == ""


def test_declared_cards_and_overcommitted_nodes_are_not_checked(tmp_path: Path) -> None:
    declared = tuple(replace(card, declared=True, uuid="") for card in CARDS)
    promised = replace(NODE, cards=declared, overcommitted=True)
    assert looked(Node(name=NodeName("box"), cpus=1, memory_mib=64), tmp_path, promised)[0] == ""


def test_a_machine_is_checked_against_its_actual_resources(tmp_path: Path) -> None:
    checks = Prechecks(lambda _: Node(name=NodeName("here"), cpus=1, memory_mib=64), tmp_path)
    assert checks.look((Allocation(0, NodeName("here"), 1, 64),)) == ("", "here has its 1 CPU and its memory")
