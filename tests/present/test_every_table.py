"""Every column of every table, of made-up rows: its text, its JSON, and whether its schema allows that JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from functools import cache
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from jsonschema import Draft202012Validator

from cockpit.model.accounting import EndedJob
from cockpit.model.accounts import Qos
from cockpit.model.catalogue import EntryRow
from cockpit.model.cluster import Reservation
from cockpit.model.events import EventBody, EventRecord
from cockpit.model.fleetrow import FleetJobRow, FleetPodRow
from cockpit.model.forecast import Forecast, Outlook
from cockpit.model.ids import JobId
from cockpit.model.jobdetail import JobDetail, ReplicaUse
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Allocation
from cockpit.model.spec import NodeSpec
from cockpit.model.staging import StagedCopy
from cockpit.model.view import AccountRow, ClusterRow, EngineStatus, HoldRow, NodeRow, Overview, PriorityRow, QueueRow
from cockpit.present.accounting import Held, JobSum
from cockpit.present.columns import Column, Context, table_schema
from cockpit.present.lab import LabRow
from cockpit.present.measured import MeasuredUse
from cockpit.present.tables.all import TABLES
from cockpit.present.tables.block_list import BlockedNode
from cockpit.present.tables.cards import CardRow, ModelRow
from cockpit.present.tables.launch import Launch, LaunchScript
from cockpit.present.tables.replicas import ReplicaRow
from cockpit.present.tables.trials import Trial
from cockpit.present.waits.report import WaitReport
from cockpit.runtime.findings import Finding
from tests.doubles.made_up import ABSENT, made_up
from tests.doubles.samples import NOW
from tests.present.recorded import assert_as_recorded

ROWS, OF_EVENTS = 14, 3 * len(get_args(EventBody))


class _Measured(NamedTuple):
    """What `MeasuredUse` is made of."""

    job: JobId
    use: ReplicaUse
    place: Allocation
    ran_ms: int
    runs: bool


KINDS: dict[str, Any] = {
    "jobs": JobRow,
    "job-details": JobDetail,
    "usage": _Measured,
    "explain": Outlook,
    "predict": Outlook,
    "starts": JobRow,
    "priority": PriorityRow,
    "nodes": NodeRow,
    "cards": CardRow,
    "card-models": ModelRow,
    "holds": HoldRow,
    "queues": QueueRow,
    "quota": QueueRow,
    "reservations": Reservation,
    "events": EventRecord,
    "overview": Overview,
    "engine": EngineStatus,
    "doctor": Finding,
    "accounts": AccountRow,
    "accounts-qos": Qos,
    "catalogue": EntryRow,
    "accounting": EndedJob,
    "accounting-sums": JobSum,
    "accounting-hours": Held,
    "launch": Launch,
    "launch-script": LaunchScript,
    "staged": StagedCopy,
    "trials": Trial,
    "explain-past": WaitReport,
    "lab": LabRow,
    "block-list": BlockedNode,
    "replicas": ReplicaRow,
    "clusters": ClusterRow,
    "fleet": FleetJobRow,
    "fleet-pods": FleetPodRow,
}
"""Of what each table has rows."""

CONTEXT = Context(
    now=NOW,
    zone=UTC,
    user="user-a",
    chosen=NodeSpec(cpus=2, memory_mib=1024, card_milli=500),
    forecasts={JobId(4700 + each): made_up(Forecast, each) for each in range(30)},
    failures={JobId(4730 + each): "KeyError: 'n07'" for each in range(5)},
)


@cache
def rows_of(name: str) -> list[Any]:
    numbers = range(ABSENT, OF_EVENTS if name == "events" else ROWS)
    rows = [made_up(KINDS[name], number) for number in numbers]
    return [MeasuredUse(*each) for each in rows] if name == "usage" else rows


def described(column: Column) -> str:
    """How a list shows it: its alignment, and when it is left out."""
    flags = ("right", "wide", "spare", "rare")
    return " ".join((column.id, column.title, *(flag for flag in flags if getattr(column, flag))))


def as_json(column: Column, rows: Sequence[Any]) -> list[str]:
    return [msgspec.json.encode(each, order="deterministic").decode() for each in column.json(rows, CONTEXT)]


@pytest.mark.req("UI-40")
@pytest.mark.parametrize("name", TABLES)
def test_every_column_has_its_recorded_cells(name: str) -> None:
    rows, lines = rows_of(name), []
    for column in TABLES[name].columns:
        lines.append(f"== {described(column)}")
        pairs = zip(column.texts(rows, CONTEXT), as_json(column, rows), strict=True)
        lines += dict.fromkeys(f"{text} ← {fact}" for text, fact in pairs)
    assert_as_recorded(f"table-{name}", lines)


@pytest.mark.req("UI-40")
@pytest.mark.parametrize("name", TABLES)
def test_the_schema_permits_every_value_of_a_column(name: str) -> None:
    table, rows = TABLES[name], rows_of(name)
    cells = [as_json(column, rows) for column in table.columns]
    ids = [column.id for column in table.columns]
    found = [dict(zip(ids, map(msgspec.json.decode, row), strict=True)) for row in zip(*cells, strict=True)]
    schema = table_schema(table, 1)
    Draft202012Validator.check_schema(schema)
    errors = Draft202012Validator(schema).iter_errors({"version": 1, "rows": found})
    assert [f"{'.'.join(map(str, error.path))}: {error.message}" for error in errors] == []


@pytest.mark.req("UI-40")
@pytest.mark.parametrize("name", TABLES)
def test_a_column_whose_schema_allows_null_is_null_in_some_row(name: str) -> None:
    rows = rows_of(name)
    never = [c.id for c in TABLES[name].columns if c.nullable and None not in c.facts(rows, Context(now=NOW))]
    assert never == []
