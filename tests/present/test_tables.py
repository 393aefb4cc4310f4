from __future__ import annotations

from datetime import UTC

import msgspec
import pytest

from cockpit.model.ids import JobId
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import SliceUse
from cockpit.present.columns import Context, ValueKind
from cockpit.present.tables.all import TABLES
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES
from tests.doubles.samples import NOW, failed_row, node_row


def cell(table: object, name: str, row: object, **context: object) -> str:
    column = table.find(name)
    return column.texts([row], Context(now=NOW, zone=UTC, **context))[0]


def status(spec: NodeSpec | None, **changes: object) -> str:
    return cell(NODES, "status", node_row(**changes), chosen=spec)


@pytest.mark.req("JT-31", "JT-40")
def test_a_held_failure_is_shown_as_error_with_a_countdown() -> None:
    row = failed_row(1)
    assert cell(JOBS, "state", row) == "error · held 3:59"
    assert JOBS.find("state").fact(row, Context(now=NOW)) == "error"


@pytest.mark.req("JT-44")
@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (NodeSpec(cpus=28, memory_mib=488 * 1024, card_milli=6000), "idle"),
        (NodeSpec(cpus=29, memory_mib=1), "tight"),
        (NodeSpec(cpus=1, memory_mib=488 * 1024 + 1), "tight"),
        (NodeSpec(cpus=1, memory_mib=1, card_milli=7000), "tight"),
        (NodeSpec(cpus=1, memory_mib=1, card_milli=500), "idle"),
        (NodeSpec(cpus=1, memory_mib=1, card_milli=1000, card_models=("H100",)), "tight"),
        (NodeSpec(cpus=1, memory_mib=1, card_milli=1000, card_models=("H100", "A100")), "idle"),
    ],
)
def test_idle_asks_for_no_more_than_is_free_and_tight_for_more_of_any(spec: NodeSpec, word: str) -> None:
    assert status(spec) == word


@pytest.mark.req("JT-44")
def test_drained_and_down_come_from_the_cluster_and_up_needs_no_spec() -> None:
    assert status(NodeSpec(), state=NodeState.DRAINED) == "drained"
    assert status(NodeSpec(), state=NodeState.DOWN) == "down"
    assert status(None) == "up"


@pytest.mark.req("JT-43")
def test_memory_cpus_and_cards_are_fractions_and_specs_that_fit_are_counted() -> None:
    row = node_row()
    assert [cell(NODES, name, row) for name in ("memory", "cpus", "cards")] == ["24G/512G", "36/64", "1.5/8"]
    assert cell(NODES, "specs_fit", row, chosen=NodeSpec(cpus=4, memory_mib=1024, card_milli=2000)) == "3"
    assert cell(NODES, "specs_fit", row, chosen=NodeSpec(cpus=0, memory_mib=0, card_milli=300)) == "19"
    assert cell(NODES, "specs_fit", row) == "–"


@pytest.mark.req("JT-45")
def test_usage_counts_cards_and_slices_from_one() -> None:
    slices = (
        SliceUse(0, 1, 250, JobId(1), "b", "ann"),
        SliceUse(0, 0, 250, JobId(2), "app", "ann"),
        SliceUse(3, None, 1000, JobId(3), "whole", "ann"),
    )
    row = msgspec.structs.replace(node_row(), slices=slices)
    assert cell(NODES, "usage", row) == "1(1):app, 1(2):b, 4:whole"


@pytest.mark.req("KU-06")
def test_usage_of_cards_that_are_not_known_says_so() -> None:
    slices = (
        SliceUse(1, 0, 142, JobId(2), "mig", "ann", assumed=True),
        SliceUse(2, 0, 250, JobId(1), "b", "ann"),
        SliceUse(0, None, 1000, JobId(3), "whole", "ann", assumed=True),
    )
    row = msgspec.structs.replace(node_row(), slices=slices)
    assert cell(NODES, "usage", row) == "3(1):b, ?:whole, ?(?):mig"


def test_differences_from_the_hardware_have_a_badge() -> None:
    declared = (Card(index=0, model="A100", declared=True),)
    row = node_row(virtual=True, overcommitted=True, cards=declared)
    assert cell(NODES, "badges", row) == "virtual, declared cards, overcommit"
    assert cell(NODES, "badges", msgspec.structs.replace(node_row(), plain=True)) == "no containers"
    assert cell(NODES, "badges", node_row()) == "–"


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_ids_and_aliases_name_one_column_each_and_every_column_has_a_help(table: object) -> None:
    assert len(table.names()) == len(set(table.names()))
    for column in table.columns:
        assert column.id.isidentifier()
        assert column.help
        assert (column.derive is None) != (column.field == "")
        assert column.kind is not ValueKind.RECORD or (column.words and column.schema)
