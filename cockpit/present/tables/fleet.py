"""The table of a fleet's jobs over all clusters, and the table of their pods. Titles are those of `kubectl amc get`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from cockpit.present import units
from cockpit.present.columns import NOTHING, Cell, Column, Context, Fraction, TableView, ValueKind
from cockpit.present.fleet_tree import FleetLine, key_of
from cockpit.present.references import job_cell
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, TEXT, Line, Span, line, spread

if TYPE_CHECKING:
    from cockpit.model.fleetrow import FleetJobRow, FleetPodRow

MARKS: Final = {True: "▾ ", False: "▸ ", None: "  "}
"""What stands before a line of the tree: unfolded, folded, or nothing to unfold."""
ROLES: Final = {"running": "running", "queued": "queued", "pending": "queued", "error": "error", "failed": "error"}
"""Colour roles by the states that all kinds of clusters have; any other state is plain text."""


def _age(row: FleetJobRow | FleetPodRow, context: Context) -> int | None:
    return None if row.created_at is None else max(0, (context.now - row.created_at) // 1000)


def _data_age(row: FleetJobRow, context: Context) -> int | None:
    return None if row.heard_at is None else max(0, (context.now - row.heard_at) // 1000)


def why_lines(row: FleetJobRow, context: Context) -> str:
    """Return the sentence about a member that does not answer, with the age of what is shown, else the reason why the
    job does not run; empty: neither."""
    if not row.silence:
        return safe(row.reason)
    age = _data_age(row, context)
    known = f"what is shown is {units.age(age)} old" if age is not None else "nothing is known of it yet"
    return f"{safe(row.cluster)} does not answer; {known}: {safe(row.silence)}"


def _ready(row: FleetJobRow | FleetPodRow, total: int) -> Fraction:
    return Fraction(row.ready, total)


def _name_cell(row: FleetLine, _: Context) -> Line:
    role = STRONG if row.level == 0 else TEXT
    return (Span(f"{'  ' * row.level}{MARKS[row.is_unfolded]}", MUTED), Span(safe(row.name), role))


def _state_cell(state: str, *, old: bool) -> Line:
    if not state:
        return line(Span(NOTHING, MUTED))
    return line(Span(safe(state), MUTED if old else ROLES.get(state.lower(), TEXT)))


def _cluster_cell(row: FleetLine, _: Context) -> Line:
    if not row.cluster:
        return line(Span(NOTHING, MUTED))
    return line(Span(f"✗ {safe(row.cluster)}", "error")) if row.silence else line(Span(safe(row.cluster)))


FLEET: Final = TableView(
    name="fleet",
    identity=("job", "cluster", "own"),
    key=key_of,
    help="The jobs of a fleet over all its clusters, with the fleet's state and the cluster's own",
    empty="No jobs on any cluster of this fleet.",
    columns=(
        Column("name", "NAME", "The job's name", cell=Cell(18, _name_cell, grows=2, most=44)),
        Column(
            "cluster",
            "CLUSTER",
            "The member cluster; none: the job is bound to no cluster yet",
            words=lambda row, _: safe(row.cluster) or NOTHING,
            cell=Cell(10, _cluster_cell, grows=1, most=20),
        ),
        Column(
            "state",
            "STATE",
            "The member cluster's own word; none: it has not answered for the job",
            words=lambda row, _: safe(row.state) or NOTHING,
            cell=Cell(10, lambda row, _: _state_cell(row.state, old=bool(row.silence))),
        ),
        Column(
            "age_seconds",
            "AGE",
            "Since the member cluster has the job",
            ValueKind.SECONDS,
            derive=_age,
            nullable=True,
            words=lambda row, context: NOTHING if (age := _age(row, context)) is None else units.age(age),
            aliases=("age",),
            cell=Cell(6, ticks=True),
        ),
        Column(
            "adoption",
            "ADOPTION",
            "Whether the fleet controls the object: N where the job was submitted to the cluster directly",
            derive=lambda row, _: "Y" if row.adopted else "N",
            values=("Y", "N"),
            cell=Cell(3, title="ADO", need=70),
        ),
        Column(
            "fleet_state",
            "FLEET STATE",
            "The fleet's own state of the job; none: no fleet has submitted it",
            words=lambda row, _: safe(row.fleet_state) or NOTHING,
            cell=Cell(10, lambda row, _: _state_cell(row.fleet_state, old=False), title="FLEET"),
        ),
        Column(
            "ready",
            "READY",
            "Replicas that run, of those on this cluster",
            ValueKind.FRACTION,
            derive=lambda row, _: _ready(row, row.replicas),
            words=lambda row, _: f"{row.ready}/{row.replicas}",
            cell=Cell(6),
        ),
        Column(
            "job",
            "ID",
            "The job's id; 0: only its cluster knows it",
            ValueKind.INTEGER,
            words=lambda row, _: job_cell(row.job) if row.job else NOTHING,
            aliases=("id",),
            wide=True,
        ),
        Column("own", "OWN", "The member cluster's own name or number of the job", wide=True, cell=Cell(8, need=110)),
        Column("order", "ORDER", "The id under which the fleet has ordered it, which the object carries", wide=True),
        Column(
            "division",
            "DIVISION",
            "Gang: all parts or none; Divided: each cluster its share; Duplicated: whole on each; none: on one cluster",
            words=lambda row, _: safe(row.division) or NOTHING,
            wide=True,
        ),
        Column("user", "USER", "Who submitted it", wide=True, cell=Cell(8, need=100)),
        Column(
            "data_age_seconds",
            "DATA AGE",
            "How old is what is known of it",
            ValueKind.SECONDS,
            derive=_data_age,
            nullable=True,
            wide=True,
        ),
        Column(
            "why",
            "WHY",
            "Why it does not run there, or why the member does not answer",
            derive=lambda row, context: why_lines(row, context) or None,
            nullable=True,
            rare=True,
            cell=Cell(12, role=MUTED, grows=3, need=120),
        ),
    ),
    screen_only=(
        Column(
            "restarts",
            "RST",
            "How often the pod was started anew",
            ValueKind.INTEGER,
            nullable=True,
            cell=Cell(3, need=90, after="ready"),
        ),
    ),
)

FLEET_PODS: Final = TableView(
    name="fleet-pods",
    identity=("job", "cluster", "own", "name"),
    help="The pods of a fleet's jobs over all its clusters",
    empty="No pods on any cluster of this fleet.",
    columns=(
        Column("name", "NAME", "The pod's name"),
        Column("cluster", "CLUSTER", "The member cluster"),
        Column(
            "ready",
            "READY",
            "Its containers that are ready, of all",
            ValueKind.FRACTION,
            derive=lambda row, _: _ready(row, row.containers),
            words=lambda row, _: f"{row.ready}/{row.containers}",
        ),
        Column("status", "STATUS", "The member cluster's own word"),
        Column("restarts", "RESTARTS", "How often it was started anew", ValueKind.INTEGER),
        Column(
            "age_seconds",
            "AGE",
            "Since the member cluster has it",
            ValueKind.SECONDS,
            derive=_age,
            nullable=True,
            words=lambda row, context: NOTHING if (age := _age(row, context)) is None else units.age(age),
            aliases=("age",),
        ),
        Column("node", "NODE", "The member cluster's own name of its node", wide=True),
        Column("rank", "RANK", "Its rank in the fleet's job", ValueKind.INTEGER, nullable=True, wide=True),
        Column(
            "job", "ID", "The job's id; 0: only its cluster knows it", ValueKind.INTEGER, aliases=("id",), wide=True
        ),
        Column("own", "OWN", "The member cluster's own name or number of the job", wide=True),
    ),
)


def fleet_answer(row: FleetLine, context: Context, keys: Mapping[str, str], columns: int) -> Iterator[Line]:
    """Yield harmless lines about the row under the cursor. `keys`: the first key of each action by the action's id."""
    where = f"on {safe(row.cluster)}" if row.cluster else "bound to no cluster yet"
    left = line(Span(f"{safe(row.name)}  ", ACCENT), Span(where, STRONG))
    hints = ((keys.get("unfold_fleet", "Enter"), " unfold   "), (keys.get("own_object", "y"), " its own object"))
    yield spread(left, tuple(span for key, text in hints for span in (Span(key, ACCENT), Span(text, MUTED))), columns)
    states = f"{safe(row.fleet_state) or 'not of the fleet'}, on the cluster {safe(row.state) or 'not known'}"
    adopted = "controlled by the fleet" if row.adopted else "not controlled by the fleet"
    own = f", its id there is {safe(row.own)}" if row.own else ""
    yield line(Span(f"{INDENT}state  ", MUTED), f"{states}; {adopted}{own}; {row.ready} of {row.replicas} ready")
    if why := why_lines(row, context):
        yield line(Span(f"{INDENT}why    ", MUTED), Span(why, "error" if row.silence else TEXT))
