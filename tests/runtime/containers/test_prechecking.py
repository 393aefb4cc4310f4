"""Whether the machine has what a job was promised."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from cockpit.model.ids import NodeName
from cockpit.model.node import Allocation, Card, CardSlice, CardVendor, Node
from cockpit.runtime.containers import prechecking
from cockpit.runtime.containers.prechecking import LEAST_FREE_MIB, Prechecks

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


def test_a_disk_without_room_for_a_container_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, passes in ((LEAST_FREE_MIB, True), (LEAST_FREE_MIB - 1, False)):
        monkeypatch.setattr(prechecking.shutil, "disk_usage", lambda _, mib=free: SimpleNamespace(free=mib << 20))
        node, said = looked(NODE, tmp_path)
        assert (node == "") is passes
        assert passes or said == f"the disk of {tmp_path} has {free} MiB left, too little for a container"


def test_cards_without_a_uuid_are_known_by_their_devices(tmp_path: Path) -> None:
    plain = tuple(replace(card, uuid="") for card in CARDS)
    promised = replace(NODE, cards=plain)
    assert looked(promised, tmp_path, promised)[0] == ""
    assert looked(replace(promised, cards=plain[:1]), tmp_path, promised)[1] == "card 2 (A100) does not answer any more"


def test_every_node_of_a_job_is_checked_and_the_first_eight_are_named(tmp_path: Path) -> None:
    nodes = {name: replace(NODE, name=NodeName(name), cards=()) for name in map(str, range(10))}
    parts = tuple(Allocation(rank, name, 1, 1) for rank, name in enumerate(map(NodeName, nodes)))
    checks = Prechecks(nodes.__getitem__, tmp_path, lambda: NODE)
    passed, said = checks.look(parts)
    assert passed == ""
    assert said.split("; ") == [f"{number} has its 1 CPU and its memory" for number in range(8)]
    short = (*parts[:3], replace(parts[3], cpus=9), replace(parts[4], cpus=9))
    assert checks.look(short) == ("3", "the machine has 8 CPUs now, and 9 were promised")
