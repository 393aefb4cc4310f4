from __future__ import annotations

import pytest

from cockpit.model.node import Allocation, CardSlice
from cockpit.sched.invariants import resource_violations
from tests.sched.world import alone, cards, node

NODES = {
    each.name: each
    for each in (
        node("n1", 2, cpus=4, memory_mib=1000),
        node("n2", cards(1, slices=4), cpus=4, memory_mib=1000),
        node("n3", cards(1, slices=4, hardware=True), cpus=4, memory_mib=1000),
    )
}


def part(name: str = "n1", *slices: CardSlice, rank: int = 0, cpus: int = 1, memory_mib: int = 1) -> Allocation:
    return Allocation(rank, name, cpus, memory_mib, slices)


@pytest.mark.req("TR-02")
def test_a_correct_allocation_has_no_violation() -> None:
    occupied = {
        1: (part("n1", CardSlice(0, None), cpus=2), part("n2", CardSlice(0, 1, 250), rank=1)),
        2: (part("n1", CardSlice(1, 0, 600), cpus=2), part("n2", CardSlice(0, 3, 250), rank=1)),
        3: (part("n1", CardSlice(1, 4, 400), cpus=0, memory_mib=0),),
    }
    assert resource_violations(NODES, occupied) == []


@pytest.mark.req("TR-02", "SC-05")
@pytest.mark.parametrize(
    ("slices", "complaint"),
    [
        ([CardSlice(0, None), CardSlice(0, None)], "node n1 card 0: 2000 of 1000 thousandths occupied"),
        ([CardSlice(0, None), CardSlice(0, 0, 1)], "node n1 card 0: whole and shared at once"),
        ([CardSlice(0, 0, 700), CardSlice(0, 1, 400)], "node n1 card 0: 1100 of 1000 thousandths occupied"),
        ([CardSlice(0, 0, 300), CardSlice(0, 0, 300)], "node n1 card 0: slots [0] given twice"),
        ([CardSlice(0, None, 500)], "node n1 card 0: given whole in part, or though the hardware slices it"),
        ([CardSlice(0, 0, 0)], "node n1 card 0: a slice of nothing"),
        ([CardSlice(7, None)], "node n1 card 7: occupied but unknown"),
    ],
)
def test_a_card_allocated_twice_or_wrongly_is_reported(slices, complaint) -> None:
    occupied = {job: (part("n1", each),) for job, each in enumerate(slices, 1)}
    assert complaint in resource_violations(NODES, occupied)


@pytest.mark.req("TR-02", "SC-05")
@pytest.mark.parametrize("wrong", [CardSlice(0, 0, 300), CardSlice(0, 4, 250)])
def test_a_slot_outside_the_profile_is_reported(wrong) -> None:
    assert resource_violations(NODES, {1: (part("n2", wrong),)}) == [
        "node n2 card 0: a slot that its profile of 4 does not have"
    ]


@pytest.mark.req("TR-02", "SC-05")
def test_a_card_sliced_by_the_hardware_is_reported_when_allocated_whole() -> None:
    assert resource_violations(NODES, {1: (part("n3", CardSlice(0, None)),)}) != []


@pytest.mark.req("TR-02")
@pytest.mark.parametrize(
    ("occupied", "complaint"),
    [
        ({1: alone(3), 2: alone(2)}, "node n1: 5 of 4 CPUs occupied"),
        ({1: (part(memory_mib=1001),)}, "node n1: 1001 of 1000 MiB occupied"),
        ({1: (part(cpus=-1),)}, "node n1: a negative amount is occupied"),
        ({1: alone(1, "n9")}, "node n9: occupied but unknown"),
        ({1: (part(rank=1), part("n2"))}, "job 1: ranks [1, 0] do not go up"),
        ({1: (part(), part(rank=1))}, "job 1: two replicas on one node"),
    ],
)
def test_an_oversubscribed_node_or_incomplete_gang_is_reported(occupied, complaint) -> None:
    assert resource_violations(NODES, occupied) == [complaint]
