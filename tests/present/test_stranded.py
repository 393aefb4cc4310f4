from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import SliceUse
from cockpit.present.stranded import free_milli, known_requests, usable_cards
from tests.doubles.samples import failed_row, job_row, node_row, queued_row


def wants(milli: int, *models: str, cpus: int = 1, memory_mib: int = 1024) -> NodeSpec:
    return NodeSpec(cpus=cpus, memory_mib=memory_mib, card_milli=milli, card_models=models)


def two_cards(*used: SliceUse, **changes: object):
    cards = (Card(index=0, model="A100"), Card(index=1, model="A100"))
    return replace(node_row(cards=cards), slices=used, **changes)


HALF = SliceUse(0, 0, 500, JobId(1), "note", "ann")
WHOLE = SliceUse(0, None, 1000, JobId(1), "train", "ann")


@pytest.mark.req("UI-05")
@pytest.mark.parametrize(
    ("row", "request_", "usable"),
    [
        (two_cards(HALF), wants(500), {0, 1}),
        (two_cards(HALF), wants(600), {1}),
        (two_cards(HALF), wants(1000), {1}),
        (two_cards(HALF), wants(2000), set()),
        (two_cards(WHOLE), wants(1), {1}),
        (two_cards(HALF), wants(100, "H100"), set()),
        (two_cards(HALF, used_cpus=64), wants(100), set()),
        (two_cards(HALF, used_memory_mib=512 * 1024), wants(100), set()),
    ],
)
def test_usable_is_what_a_request_could_use_with_the_free_cpus_and_memory(row, request_, usable) -> None:
    assert usable_cards(row, (request_,)) == usable


@pytest.mark.req("UI-05")
def test_one_request_that_fits_makes_cards_usable() -> None:
    assert usable_cards(two_cards(HALF), (wants(2000), wants(300))) == {0, 1}


def test_a_node_out_of_service_is_usable_by_no_job() -> None:
    row = two_cards()
    assert usable_cards(replace(row, node=replace(row.node, state=NodeState.DRAINED)), (wants(1),)) == set()


@pytest.mark.req("UI-05", "SC-05")
def test_a_fixed_profile_rounds_up_and_a_card_that_the_hardware_sliced_is_never_whole() -> None:
    card = Card(index=0, model="A100", slices=4, slice_uuids=("a", "b", "c", "d"))
    row = replace(node_row(cards=(card,)), slices=(SliceUse(0, 1, 250, JobId(1), "x", "ann"),))
    assert free_milli(row, card) == 750
    assert usable_cards(row, (wants(750),)) == {0}
    assert usable_cards(row, (wants(751),)) == set()
    assert usable_cards(replace(row, slices=()), (wants(1000),)) == set()


@pytest.mark.req("UI-05")
def test_in_sight_are_the_jobs_that_wait_or_run_and_only_the_least_demanding_count() -> None:
    jobs = [
        job_row(1, card_milli=500, cpus=2, memory_mib=2048, card_models=()),
        queued_row(2, card_milli=2000, nodes=2, cpus=8, memory_mib=8192, card_models=("A100",)),  # 1000 a node: no less
        queued_row(3, card_milli=250, cpus=16, memory_mib=4096, card_models=("H100",)),  # less of the card, more CPUs
        queued_row(4, card_milli=0),
        failed_row(5, card_milli=1),
    ]
    assert known_requests(jobs) == (wants(250, "H100", cpus=16, memory_mib=4096), wants(500, cpus=2, memory_mib=2048))
