"""The queue in its order: the columns of the priorities for every output, with a bar and a column for each factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import index_ranges
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.view import Priorities, PriorityRow
from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind
from cockpit.present.priority_parts import SIGNS
from cockpit.present.reasons import reason_sentence
from cockpit.present.references import job_shown
from cockpit.present.safe import safe

HELD, DIRECT, KEPT, UNCOUNTED = "held", "set", "kept", "uncounted"
NOTES: Final = {
    HELD: "held",
    DIRECT: "set by an administrator",
    KEPT: "was higher, and stays so",
    UNCOUNTED: "",
    "": "",
}
"""Words for each note; for a job that is not counted the reason's sentence is shown instead."""


LEAST_BAR: Final = 20
NARROW_BAR: Final = 12
"""Width of the bar where the leading factor's column would not fit otherwise, in terminal columns."""
UP, DOWN, SAME = "▲", "▼", "·"
PLACE, WAS, MOVED, TOTAL, BAR = "position", "position_before", "moved", "priority", "bar"


def _id_words(row: PriorityRow, _: Context) -> str:
    """Return the job's id: `4711`, `4700_3` for a task of an array, `-` where the user may not see the job."""
    if row.task is not None:
        return f"{row.task.array}_{f'[{index_ranges(row.tasks)}]' if row.tasks else row.task.index}"
    return job_shown(row.job)


def priority(row: PriorityRow, _: Context) -> int | None:
    """Return the job's priority; None under order of submission, and for a job that the user may not see."""
    return row.breakdown.total if row.breakdown is not None and _computed(row) else None


def nice(row: PriorityRow, _: Context) -> int | None:
    # None, and not 0, for a job that the user may not see: 0 would say something about it.
    return row.breakdown.nice if row.breakdown is not None else None


def note(row: PriorityRow, _: Context) -> str:
    if row.breakdown is None:
        return ""
    # One note, the first that applies: a held job counts in no way.
    if row.position is None:
        return HELD
    if row.uncounted is not None:
        return UNCOUNTED
    return DIRECT if row.breakdown.direct else KEPT if row.breakdown.kept else ""


def note_words(row: PriorityRow, context: Context) -> str:
    """Return the note in a few words; for a job that sprio leaves out, the sentence that says why it waits."""
    if row.position is not None and row.uncounted is not None:
        return reason_sentence(row.uncounted, context.now, context.zone)
    return NOTES[note(row, context)]


def _is_noted(breakdown: Breakdown | None) -> bool:
    return breakdown is not None and (breakdown.direct or breakdown.kept)


def factors(breakdown: Breakdown) -> dict[str, dict[str, float]]:
    """Return raw factor, weight and contribution by the name that `--weights` uses."""
    return {
        weight_name(part): {"raw": part.raw, "weight": part.weight, "contribution": part.contribution}
        for part in breakdown.parts
    }


def factors_of(row: PriorityRow, _: Context) -> dict[str, dict[str, float]]:
    """Return the factors by name; empty for a job that the user may not see. Where another scheduler reported its
    figures, a factor also has the contribution by them (`cluster`) and by cockpit's own count (`core`)."""
    # A snapshot of another cluster has both: what its scheduler printed, and what cockpit computes from the same data.
    # The difference shows how far a replay can be trusted.
    own = factors(row.breakdown) if row.breakdown is not None else {}
    if row.reported is None:
        return own
    cluster_figures = {weight_name(part): part.contribution for part in row.reported.parts}
    return {
        name: factor | {"cluster": cluster_figures.get(name, 0.0), "core": factor["contribution"]}
        for name, factor in own.items()
    }


def weight_name(part: Part) -> str:
    """Return the name that `--weights` uses for a part: `fairshare`, `tres/cpu`."""
    if part.name is FactorName.TRES:
        return f"tres/{part.tres}"
    return "jobsize" if part.name is FactorName.JOB_SIZE else str(part.name)


def resources_text(row: PriorityRow, _: Context) -> str:
    """Return the contributions of resources in sprio's syntax: `cpu=120,gres/gpu=400`."""
    parts = row.breakdown.parts if row.breakdown is not None else ()
    return ",".join(f"{safe(p.tres)}={p.contribution:.0f}" for p in parts if p.tres and p.contribution) or NOTHING


def contribution(name: FactorName) -> Callable[[Any, Context], float | None]:
    """Return a function that returns what the factor adds; None where no priority is computed."""

    def added(row: PriorityRow, _: Context) -> float | None:
        if row.breakdown is None or not row.breakdown.parts:
            return None
        return float(sum(part.contribution for part in row.breakdown.parts if part.name is name))

    return added


def _computed(row: PriorityRow) -> bool:
    breakdown = row.breakdown
    if breakdown is None:
        return False
    # Under order of submission there are no parts; 0 would be a priority.
    return bool(
        breakdown.parts or breakdown.direct or breakdown.source or row.position is None or row.uncounted is not None
    )


def _factor(name: FactorName, what: str) -> Column:
    added, sign = contribution(name), SIGNS[name]

    # People compare points; programs get the fraction.
    def rounded(row: PriorityRow, context: Context) -> str:
        figure = added(row, context)
        return NOTHING if figure is None else f"{figure:.0f}"

    help_text = f"What {what} adds"
    return Column(sign.column, sign.title, help_text, ValueKind.NUMBER, derive=added, words=rounded, nullable=True)


FACTORS: Final = {
    name: _factor(name, what)
    for name, what in (
        (FactorName.AGE, "its age"),
        (FactorName.FAIRSHARE, "its user's fair share"),
        (FactorName.JOB_SIZE, "its size"),
        (FactorName.PARTITION, "its partition"),
        (FactorName.QOS, "its QOS"),
        (FactorName.ASSOC, "its association"),
        (FactorName.TRES, "its weighted resources"),
        (FactorName.SITE, "the site"),
    )
}

_FACTOR_SCHEMA: Final = {
    "type": "object",
    "properties": {name: {"type": "number"} for name in ("raw", "weight", "contribution")},
    "required": ["raw", "weight", "contribution"],
}

PRIORITY: Final = TableView(
    name="priority",
    identity=("id", "partition"),
    help="Queued jobs in the order in which the cluster considers them, a row for each of their partitions",
    empty="Nothing is queued.",
    columns=(
        Column(PLACE, "PLACE", "In the queue, from 1", ValueKind.INTEGER, nullable=True),
        Column(
            WAS,
            "WAS",
            "Its place by the cluster's own weights, where others are tried out",
            ValueKind.INTEGER,
            nullable=True,
            wide=True,
            aliases=("was",),
        ),
        Column(
            "id",
            "ID",
            "The job; nothing for one that you may not see",
            ValueKind.INTEGER,
            derive=lambda row, _: row.job or None,
            words=_id_words,
            nullable=True,
        ),
        Column("name", "NAME", "The job's name", spare=True),
        Column("user", "USER", "Who submitted it", aliases=("creator",)),
        Column("partition", "QUEUE", "Where it would run", aliases=("queue",)),
        Column(TOTAL, "PRIORITY", "The whole: what counts", ValueKind.INTEGER, derive=priority, nullable=True),
        Column(
            "priority_before",
            "WAS PRIORITY",
            "By the cluster's own weights, where others are tried out",
            ValueKind.INTEGER,
            field="total_before",
            nullable=True,
            wide=True,
        ),
        *FACTORS.values(),
        Column("nice", "NICE", "What is taken off", ValueKind.INTEGER, derive=nice, nullable=True, spare=True),
        Column(
            "note",
            "NOTE",
            "held: not considered; set: by an administrator; kept: more than its parts come to now (INCREMENT_ONLY); "
            "uncounted: on a Slurm cluster, sprio leaves it out until what it waits for is there",
            derive=note,
            words=note_words,
            values=NOTES,
            spare=True,
        ),
        Column("account", "ACCOUNT", "What it is charged to", wide=True),
        Column("qos", "QOSNAME", "Its QOS", wide=True),
        Column(
            # The id is older than the words of the help; JSON ids stay as they are.
            "told_total",
            "TOLD",
            "The priority that the cluster's own scheduler prints, in a snapshot of another's cluster; else null",
            ValueKind.INTEGER,
            derive=lambda row, _: row.reported.total if row.reported is not None else None,
            nullable=True,
            wide=True,
        ),
        Column(
            "factors",
            "FACTORS",
            "Of each factor raw value, weight and what they multiply to; in a snapshot of a Slurm cluster also what it "
            "adds by sprio (cluster) and by cockpit's count (core)",
            ValueKind.RECORD,
            derive=factors_of,
            words=lambda row, context: ", ".join(factors_of(row, context)) or NOTHING,
            schema={"type": "object", "additionalProperties": _FACTOR_SCHEMA},
            wide=True,
        ),
    ),
)


_NAMING: Final = ("id", "name", "user", "account", "partition", "qos", "note")

SEARCHED: Final = replace(
    PRIORITY,
    columns=tuple(column for column in PRIORITY.columns if column.id in _NAMING),
    keys=tuple(column for column in PRIORITY.columns if column.id not in _NAMING),
)
"""The table for searching thousands of rows every few seconds: a bare word is searched in the names of a job only, and
figures are filtered by their column."""


def table_of(priorities: Priorities, *, tried: bool) -> TableView:
    """Return the table with the factors that have a weight, and with the former place where other weights are tried
    out."""
    shown = {
        WAS: tried,
        "nice": any(row.breakdown is not None and row.breakdown.nice for row in priorities.rows),
        "note": any(row.position is None or _is_noted(row.breakdown) for row in priorities.rows),
        **_counting(priorities),
    }
    # Columns are hidden, never removed: `-o wide`, filters and JSON have all of them in each cluster.
    columns = (replace(each, wide=not shown.get(each.id, not each.wide)) for each in PRIORITY.columns)
    return replace(PRIORITY, columns=tuple(columns))


def _counting(priorities: Priorities) -> dict[str, bool]:
    """Return for each factor's column whether it counts under the cluster's weights."""
    weights, computed = priorities.weights, priorities.kind is PriorityKind.MULTIFACTOR
    weighed = {
        FactorName.AGE: weights.age,
        FactorName.FAIRSHARE: weights.fairshare,
        FactorName.JOB_SIZE: weights.job_size,
        FactorName.PARTITION: weights.partition,
        FactorName.QOS: weights.qos,
        FactorName.ASSOC: weights.assoc,
        FactorName.TRES: any(weights.tres.values()),
    }
    return {column.id: computed and bool(weighed.get(name)) for name, column in FACTORS.items()}


def _as_sprio(name: str, title: str) -> Column:
    column = PRIORITY.find(name)
    assert column is not None
    return replace(column, title=title)


SPRIO: Final = replace(
    PRIORITY,
    columns=(
        _as_sprio("id", "JOBID"),
        _as_sprio("partition", "PARTITION"),
        _as_sprio("user", "USER"),
        _as_sprio("account", "ACCOUNT"),
        _as_sprio(TOTAL, "PRIORITY"),
        _as_sprio("site", "SITE"),
        _as_sprio("age", "AGE"),
        _as_sprio("assoc", "ASSOC"),
        _as_sprio("fairshare", "FAIRSHARE"),
        _as_sprio("jobsize", "JOBSIZE"),
        _as_sprio("partition_factor", "PARTITION"),
        _as_sprio("qos", "QOSNAME"),
        _as_sprio("qos_factor", "QOS"),
        _as_sprio("nice", "NICE"),
        replace(_as_sprio("tres", "TRES"), words=resources_text),
    ),
    # Not shown, as sprio has no such columns, but filters of the other table keep working.
    keys=tuple(column for column in PRIORITY.columns if column.id in {PLACE, "name", "note"}),
)
"""The columns of `sprio -l`, for users who know it."""
