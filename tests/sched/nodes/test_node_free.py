from __future__ import annotations

import pytest

from cockpit.model.ids import JobId
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.reasons import Resource
from cockpit.sched.nodes.node_free import allocate, best_fit_rank, node_free_of, shortfall
from tests.sched.world import cards, node, wants


def node_free(has=(), *tenants: Allocation, **fields):
    return node_free_of(
        node("n1", has, **fields), 0, 0, [(JobId(number), part) for number, part in enumerate(tenants, 1)]
    )


def holding(*slices: CardSlice, cpus: int = 0, memory_mib: int = 0) -> Allocation:
    return Allocation(0, "n1", cpus, memory_mib, slices)


def whole(card: int) -> CardSlice:
    return CardSlice(card, None, 1000)


@pytest.mark.req("SC-04")
@pytest.mark.parametrize(
    ("spec", "lack"),
    [
        (wants(cpus=12, memory_mib=50000), None),
        (wants(cpus=13), (Resource.CPUS, 12)),
        (wants(memory_mib=60001), (Resource.MEMORY, 60000)),
        (wants(1000, cpus=99), (Resource.CPUS, 12)),
        (wants(2000), (Resource.CARDS, 1)),
        (wants(1000, "H100"), (Resource.CARDS, 0)),
        (wants(600), None),
        (wants(100, "H100"), (Resource.CARD_SHARE, 0)),
    ],
)
def test_the_first_resource_that_a_node_lacks_is_named_with_what_is_free(spec, lack) -> None:
    used = node_free(3, holding(whole(0), CardSlice(1, 0, 500), cpus=4, memory_mib=5536))
    assert shortfall(used, spec, exclusive=False) == lack


@pytest.mark.req("SC-05")
def test_a_shared_card_is_not_whole_and_a_whole_card_is_not_shared() -> None:
    assert shortfall(node_free(1, holding(CardSlice(0, 0, 1))), wants(1000), exclusive=False) == (Resource.CARDS, 0)
    assert shortfall(node_free(1, holding(whole(0))), wants(1), exclusive=False) == (Resource.CARD_SHARE, 0)


@pytest.mark.req("SC-05")
def test_a_share_that_needs_more_slots_than_are_left_does_not_fit() -> None:
    used = node_free(cards(1, slices=4), holding(CardSlice(0, 0, 250), CardSlice(0, 1, 250), CardSlice(0, 2, 250)))
    assert shortfall(used, wants(250), exclusive=False) is None
    assert shortfall(used, wants(251), exclusive=False) == (Resource.CARD_SHARE, 250)


@pytest.mark.req("SC-05")
def test_cards_sliced_by_the_hardware_serve_shares_only() -> None:
    mig = node_free(cards(2, slices=7, hardware=True))
    assert shortfall(mig, wants(1000), exclusive=False) == (Resource.CARDS, 0)
    assert allocate(mig, wants(142), 0, exclusive=False).slices == (CardSlice(0, 0, 142),)
    assert shortfall(mig, wants(995), exclusive=False) == (Resource.CARD_SHARE, 994)


@pytest.mark.req("SC-04")
def test_an_exclusive_job_fits_only_on_an_idle_node_and_takes_all_of_it() -> None:
    assert shortfall(node_free(2, holding(cpus=0)), wants(), exclusive=True) == (Resource.NODE, 0)
    mixed = (*cards(1), *[card for card in cards(2, slices=2, hardware=True) if card.index == 1])
    taken = allocate(node_free(mixed), wants(), 0, exclusive=True)
    assert (taken.cpus, taken.memory_mib) == (16, 65536)
    assert taken.slices == (whole(0), CardSlice(1, 0, 500), CardSlice(1, 1, 500))


@pytest.mark.req("SC-05")
def test_a_share_uses_the_smallest_gap_before_an_unshared_card() -> None:
    used = node_free(4, holding(CardSlice(1, 0, 300), CardSlice(2, 0, 600)))
    assert allocate(used, wants(400), 0, exclusive=False).slices == (CardSlice(2, 1, 400),)
    assert allocate(used, wants(500), 0, exclusive=False).slices == (CardSlice(1, 1, 500),)
    assert allocate(used, wants(800), 0, exclusive=False).slices == (CardSlice(0, 0, 800),)


@pytest.mark.req("SC-04")
def test_whole_card_jobs_leave_cards_made_for_sharing_to_shares() -> None:
    sliced, plain = cards(2, slices=4)[:1], cards(3)[1:]
    mixed = node_free((*sliced, *plain))
    assert allocate(mixed, wants(1000), 0, exclusive=False).slices == (whole(1),)
    assert allocate(mixed, wants(3000), 0, exclusive=False).slices == (whole(0), whole(1), whole(2))
    assert allocate(mixed, wants(250), 0, exclusive=False).slices == (CardSlice(0, 0, 250),)


@pytest.mark.req("SC-04")
def test_best_fit_strands_the_fewest_cards_then_cpus() -> None:
    full, half, empty = (
        node_free(4, holding(*map(whole, range(4)))),
        node_free(4, holding(whole(0), whole(1))),
        node_free(4),
    )
    assert sorted([empty, half, full], key=lambda each: best_fit_rank(each, wants())) == [full, half, empty]
    tight = node_free(4, holding(cpus=8))
    assert min([empty, tight], key=lambda each: best_fit_rank(each, wants(1000))) is tight


def test_the_free_resources_of_a_node_do_not_depend_on_the_order_of_its_jobs() -> None:
    first, second = (JobId(1), holding(whole(0), cpus=1)), (JobId(2), holding(CardSlice(1, 0, 5), cpus=2))
    empty = node_free(2)
    both = empty.with_tenant(*first).with_tenant(*second)
    assert both == empty.with_tenant(*second).with_tenant(*first)
    assert both.without([1]) == both.without_tenant(1) == empty.with_tenant(*second)


def test_a_slice_of_a_removed_card_is_not_counted() -> None:
    assert node_free(1, holding(whole(7))).idle == (0,)
