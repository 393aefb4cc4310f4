"""The figures of `cockpit overview`, as one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cockpit.model.job import JobState
from cockpit.model.view import Overview
from cockpit.present import units
from cockpit.present.columns import Column, Context, Fraction, TableView, ValueKind


def _in_state(state: JobState) -> Callable[[Overview, Context], int]:
    return lambda row, _: row.jobs_by_state.get(state, 0)


OVERVIEW: Final = TableView(
    name="overview",
    identity=("cluster",),
    help="The cluster at a glance",
    empty="",
    columns=(
        Column("cluster", "CLUSTER", ValueKind.TEXT, "Its name", field="cluster"),
        Column("running", "RUNNING", ValueKind.INTEGER, "Jobs that run", derive=_in_state(JobState.RUNNING)),
        Column("queued", "QUEUED", ValueKind.INTEGER, "Jobs that wait", derive=_in_state(JobState.QUEUED)),
        Column("kept", "HELD", ValueKind.INTEGER, "Jobs whose containers are held", field="held"),
        Column("nodes", "NODES", ValueKind.INTEGER, "How many nodes", field="nodes"),
        Column(
            "cpus",
            "CPUS",
            ValueKind.FRACTION,
            "In use, of all",
            derive=lambda row, _: Fraction(row.used_cpus, row.cpus),
        ),
        Column(
            "memory_mib",
            "MEMORY",
            ValueKind.MEMORY_FRACTION,
            "In use, of all, in MiB",
            derive=lambda row, _: Fraction(row.used_memory_mib, row.memory_mib),
            aliases=("memory",),
        ),
        Column(
            "cards",
            "CARDS",
            ValueKind.FRACTION,
            "In use, of all",
            derive=lambda row, _: Fraction(units.cards(row.used_card_milli), units.cards(row.card_milli)),
        ),
        Column("trouble", "TROUBLE", ValueKind.WORDS, "What is wrong with the engine just now", field="trouble"),
    ),
)
