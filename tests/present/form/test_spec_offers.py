"""Node specs that the submit form offers: the catalogue's, and parts of the existing nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.catalogue import SpecEntry
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import NodeRow
from cockpit.present.form.spec_offers import models, models_line, offer_cells, offers, with_models
from cockpit.present.spans import plain
from tests.builders import a_node
from tests.doubles.samples import node_row

A100, H100 = "A100", "H100"


def cards(*each: str) -> tuple[Card, ...]:
    return tuple(Card(index=index, model=model) for index, model in enumerate(each))


def free(name: str, cpus: int, memory_mib: int, *models: str, **fields: object) -> NodeRow:
    return NodeRow(a_node(name, cpus, memory_mib, card_list=cards(*models), **fields), 0, 0, 0, 0, (), ())


def amounts(rows: list[NodeRow]) -> list[tuple[int, int, int, str]]:
    specs = [each.spec for each in offers(rows, ())]
    return [(spec.cpus, spec.memory_mib, spec.card_milli // 1000, "".join(spec.card_models)) for spec in specs]


@pytest.mark.req("UI-08", "JT-09")
def test_a_node_with_cards_is_offered_in_parts_of_one_two_four_and_all_cards() -> None:
    assert amounts([free("n1", 48, 98_304, *[A100] * 6)]) == [
        (48, 98_304, 6, A100),
        (32, 65_536, 4, A100),
        (16, 32_768, 2, A100),
        (8, 16_384, 1, A100),
    ]


@pytest.mark.req("UI-08", "JT-09")
def test_a_node_with_two_models_is_offered_by_the_number_of_cards_of_each() -> None:
    assert amounts([free("n1", 40, 40_960, A100, H100, H100, H100)]) == [
        (10, 10_240, 1, A100),
        (30, 30_720, 3, H100),
        (20, 20_480, 2, H100),
        (10, 10_240, 1, H100),
    ]


@pytest.mark.req("UI-08", "JT-09")
def test_a_node_without_cards_is_offered_as_an_eighth_a_quarter_a_half_and_all_of_it_after_those_with_cards() -> None:
    rows = [free("n1", 8, 6_500), free("n2", 2, 1_000, A100)]
    assert amounts(rows)[0] == (2, 1_000, 1, A100)
    assert amounts(rows)[1:] == [(8, 6_144, 0, ""), (4, 3_072, 0, ""), (2, 1_024, 0, ""), (1, 812, 0, "")]


@pytest.mark.req("UI-08", "JT-44")
def test_an_offer_counts_the_nodes_with_room_now_and_those_too_full_but_no_other_node() -> None:
    rows = [
        free("n1", 8, 8_192, A100),
        replace(free("n2", 8, 8_192, A100), used_cpus=1),
        free("n3", 4, 8_192, A100),
        free("n4", 8, 8_192, A100, state=NodeState.DRAINED),
        replace(free("n5", 8, 8_192, A100), login=True),
    ]
    (whole, half) = offers(rows, ())
    assert (whole.spec.cpus, whole.idle, whole.tight) == (8, 1, 1)
    assert (half.spec.cpus, half.idle, half.tight) == (4, 3, 0)


@pytest.mark.req("UI-08", "JT-09")
def test_specs_of_the_catalogue_come_first_and_fill_in_their_name() -> None:
    named = SpecEntry(name="small", spec=NodeSpec(cpus=1, memory_mib=512))
    first, second, *_ = offers([free("n1", 8, 8_192, A100)], [named])
    assert first.values == {"name": "small"}
    assert (first.spec.cpus, first.idle) == (1, 1)
    assert second.values == {"cpus": 8, "memory": "8G", "cards": 1, "card_models": [A100]}


@pytest.mark.req("UI-08")
def test_offers_are_limited_to_the_chosen_card_models() -> None:
    every = offers([free("n1", 8, 8_192, A100), free("n2", 8, 8_192, H100), free("n3", 8, 8_192)], ())
    assert {"".join(each.spec.card_models) for each in with_models(every, [H100])} == {H100}
    assert with_models(every, []) == every


@pytest.mark.req("UI-08", "JT-43")
def test_card_models_are_listed_with_their_cards_in_service_and_the_cards_that_queued_jobs_request() -> None:
    rows = [
        free("n1", 8, 8_192, A100, A100),
        free("n2", 8, 8_192, H100, state=NodeState.DOWN),
        free("n3", 8, 8_192, ""),
    ]
    found = models(rows, {A100: 1500, "L4": 1000})
    assert [tuple(each) for each in found] == [(A100, 2, 1500), ("L4", 0, 1000)]
    shown = models_line(found, {"L4"})
    assert plain(shown).split("   ")[:2] == [" 1 □ A100 2 · 1.5 queued for", " 2 ■ L4 0 · 1 queued for"]


@pytest.mark.req("UI-08", "JT-44")
def test_an_offer_shows_its_cards_cpus_memory_room_and_name() -> None:
    spec = NodeSpec(name="big", cpus=4, memory_mib=4096, card_milli=500, card_models=(A100, H100))
    offer = offers([node_row()], [SpecEntry(name="big", spec=spec)])[0]

    def words(**changes: object) -> list[str]:
        return [plain(each) for each in offer_cells(offer._replace(**changes))]

    assert words() == ["0.5 × A100 or H100", "4", "4G", "○ 1 idle", "big"]
    assert words(idle=2, tight=3)[3] == "○ 2 idle  3 tight"
    assert words(idle=0, tight=3)[3] == "◉ 3 tight"
    assert words(spec=NodeSpec(card_milli=1000))[0] == "1 × card"
    assert words(spec=NodeSpec())[0] == "–"
