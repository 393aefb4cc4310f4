"""The columns of the list of clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cockpit.model.job import JobState
from cockpit.model.view import ClusterRow, ClusterState
from cockpit.present import units
from cockpit.present.columns import Column, Context, Fraction, TableView, ValueKind

WORDS: Final = {
    ClusterState.CONNECTING: "connecting",
    ClusterState.LIVE: "live",
    ClusterState.STILL: "snapshot",
    ClusterState.SILENT: "no answer",
}


def age_seconds(row: ClusterRow, context: Context) -> int | None:
    """How old is what is known of it; None where nothing is."""
    return None if row.heard_at is None else max(0, (context.now - row.heard_at) // 1000)


def count(row: ClusterRow, state: JobState) -> int:
    """Its jobs in this state, as last heard."""
    return row.overview.jobs_by_state.get(str(state), 0) if row.overview is not None else 0


def cards(row: ClusterRow) -> tuple[int | float, int | float]:
    """Held, of how many."""
    seen = row.overview
    return (units.cards(seen.used_card_milli), units.cards(seen.card_milli)) if seen is not None else (0, 0)


def cpus(row: ClusterRow) -> tuple[int, int]:
    """Held, of how many."""
    return (row.overview.used_cpus, row.overview.cpus) if row.overview is not None else (0, 0)


def _of(found: Callable[[ClusterRow], tuple[float, float]]) -> Callable[[ClusterRow, Context], Fraction | None]:
    return lambda row, _: Fraction(*found(row)) if row.overview is not None else None


def _jobs(state: JobState) -> Callable[[ClusterRow, Context], int | None]:
    return lambda row, _: count(row, state) if row.overview is not None else None


CLUSTERS: Final = TableView(
    name="clusters",
    identity=("name",),
    help="The clusters that you use: those of config.toml, and those of this machine",
    empty="No clusters. Name some in config.toml: [clusters]",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "As config.toml calls it; for -c", field="name", aliases=("cluster",)),
        Column(
            "state",
            "STATE",
            ValueKind.TEXT,
            "Whether it answers",
            field="state",
            words=lambda row, _: WORDS[row.state],
            schema={"enum": [str(state) for state in ClusterState]},
        ),
        Column(
            "age_seconds",
            "AGE",
            ValueKind.SECONDS,
            "How old is what is known of it",
            derive=age_seconds,
            nullable=True,
            aliases=("age",),
        ),
        Column("running", "RUN", ValueKind.INTEGER, "Jobs that run", derive=_jobs(JobState.RUNNING), nullable=True),
        Column("queued", "WAIT", ValueKind.INTEGER, "Jobs that wait", derive=_jobs(JobState.QUEUED), nullable=True),
        Column(
            "cards", "CARDS", ValueKind.FRACTION, "Cards that are held, of how many", derive=_of(cards), nullable=True
        ),
        Column("cpus", "CPUS", ValueKind.FRACTION, "CPUs that are held, of how many", derive=_of(cpus), nullable=True),
        Column(
            "nodes",
            "NODES",
            ValueKind.INTEGER,
            "How many it has",
            derive=lambda row, _: row.overview.nodes if row.overview is not None else None,
            nullable=True,
        ),
        Column("way", "WAY", ValueKind.TEXT, "How it is reached", field="way", spare=True),
        Column(
            "reason",
            "WHY",
            ValueKind.TEXT,
            "Why it does not answer",
            derive=lambda row, _: row.reason or None,
            nullable=True,
        ),
    ),
)
