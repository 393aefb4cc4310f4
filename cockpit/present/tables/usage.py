"""The columns of the measured use of a job's replicas."""

from __future__ import annotations

from typing import Any, Final

from cockpit.present.columns import RECORDS, Column, Context, Fraction, TableView, ValueKind
from cockpit.present.measured import MeasuredUse
from cockpit.present.references import job_cell
from cockpit.present.units import counted


def course(row: MeasuredUse, _: Context) -> list[dict[str, Any]]:
    """Return the use in each interval of the replica's life, the oldest first."""
    return [
        {
            "seconds": round(each.lasted_ms / 1000, 1),
            "cpus_busy": None if each.busy_milli is None else each.busy_milli / 1000,
            "memory_mib": each.memory_mib,
            "card_percent": each.card_percent,
        }
        for each in row.use.course
    ]


# Null is "not measured", 0 is "measured as nothing": a card that nothing can measure must not look idle.
USAGE: Final = TableView(
    name="usage",
    identity=("job", "rank"),
    help="What a job's replicas really use",
    empty="This job was not measured: it has not run yet, or use is not measured here. `cockpit job ID` shows more.",
    columns=(
        Column("job", "JOB", "Job id", ValueKind.INTEGER, words=lambda row, _: job_cell(row.job), wide=True),
        Column("rank", "RANK", "Which replica", ValueKind.INTEGER, field="place.rank"),
        Column("node", "NODE", "Where it runs, or ran", field="place.node"),
        Column(
            "cpu_seconds",
            "CPU TIME",
            "CPU time of all its processes together",
            ValueKind.SECONDS,
            derive=lambda row, _: None if row.use.cpu_ms is None else row.use.cpu_ms // 1000,
            nullable=True,
            aliases=("cpu_time",),
        ),
        # Beside what is allocated, as neither figure says anything alone.
        Column(
            "cpus_busy",
            "CPUS BUSY",
            "CPUs in use now, of those allocated; of a replica that has ended, on average",
            ValueKind.FRACTION,
            derive=lambda row, _: None if row.busy is None else Fraction(round(row.busy, 1), row.place.cpus),
            nullable=True,
        ),
        Column(
            "mean_cpus_busy",
            "MEAN",
            "CPUs in use on average since it started",
            ValueKind.NUMBER,
            derive=lambda row, _: None if row.mean_busy is None else round(row.mean_busy, 2),
            nullable=True,
            wide=True,
        ),
        Column(
            "memory",
            "MEMORY",
            "Memory in use now, with cached files, of the memory allocated; nothing once it has ended",
            ValueKind.MEMORY_FRACTION,
            derive=lambda row, _: (
                None if row.use.memory_mib is None else Fraction(row.use.memory_mib, row.place.memory_mib)
            ),
            nullable=True,
        ),
        Column(
            "peak_memory_mib",
            "MOST",
            "The most memory that it had at any moment",
            ValueKind.MIB,
            field="use.peak_memory_mib",
            nullable=True,
            aliases=("peak_memory",),
        ),
        Column(
            "card_percent",
            "CARDS %",
            "How busy its cards are now, on average over them",
            ValueKind.INTEGER,
            field="use.card_percent",
            nullable=True,
            rare=True,
        ),
        Column(
            "mean_card_percent",
            "MEAN %",
            "… since it started",
            ValueKind.INTEGER,
            field="use.mean_card_percent",
            nullable=True,
            rare=True,
        ),
        Column(
            "peak_card_percent",
            "MOST %",
            "… at most, as far as it was seen",
            ValueKind.INTEGER,
            field="use.peak_card_percent",
            nullable=True,
            wide=True,
        ),
        Column(
            "card_memory_mib",
            "CARD MEMORY",
            "In use on its cards now",
            ValueKind.MIB,
            field="use.card_memory_mib",
            nullable=True,
            rare=True,
        ),
        Column(
            "peak_card_memory_mib",
            "CARD MOST",
            "… at most, as far as it was seen",
            ValueKind.MIB,
            field="use.peak_card_memory_mib",
            nullable=True,
            wide=True,
        ),
        Column(
            "course",
            "COURSE",
            "How it went over time, in few stretches",
            ValueKind.RECORD,
            derive=course,
            words=lambda row, _: counted(len(row.use.course), "stretch", "stretches"),
            schema=RECORDS,
            wide=True,
        ),
    ),
)
