"""The columns of one job: those of the job list, and those that need the job's details."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import asdict

from cockpit.model.forecast import Forecast
from cockpit.model.jobdetail import JobDetail
from cockpit.present.columns import RECORDS, Column, Context, TableView, ValueKind
from cockpit.present.events.sentences import event_kind, event_sentence
from cockpit.present.fleet_placement import fleet_count, fleet_json
from cockpit.present.moments import iso
from cockpit.present.reasons import reason_sentence
from cockpit.present.rings import rings_json
from cockpit.present.steps import steps_json
from cockpit.present.tables.forecast import likely_column, spread_columns
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.priority import factors
from cockpit.present.tables.replicas import leaving_replicas
from cockpit.present.training import progress_words, training_json
from cockpit.present.units import counted
from cockpit.present.workers import no_growth, scaling_words


def of_the_row(column: Column) -> Column:
    """Return the job list's column, derived from a job's details."""
    # Only what every output needs: width, cell and defaults of the list are not those of a record.
    return Column(
        column.id,
        column.title,
        column.help,
        column.kind,
        derive=lambda detail, context: column.fact(detail.row, context),
        words=_of_the_row(column.words),
        record_json=column.record_json,
        schema=column.schema,
        values=column.values,
        nullable=column.nullable,
        aliases=column.aliases,
    )


def _of_the_row(words: Callable[[Any, Context], str] | None) -> Callable[[Any, Context], str] | None:
    return None if words is None else lambda detail, context: words(detail.row, context)


def ahead(detail: JobDetail, _: Context) -> tuple[int, ...]:
    return () if detail.explanation is None else detail.explanation.ahead


def forecast(detail: JobDetail, context: Context) -> Forecast | None:
    return context.forecasts.get(detail.row.id)


def priorities(detail: JobDetail, _: Context) -> list[dict[str, Any]]:
    """Return the job's priorities, the best first; empty where jobs have no priority."""
    return [
        {
            "partition": each.partition,
            "priority": each.total,
            "nice": each.nice,
            "direct": each.direct,
            "factors": factors(each),
        }
        for each in detail.priority
        # Under order of submission there is a breakdown without parts.
        if each.parts or each.direct or each.source
    ]


def replicas(detail: JobDetail, _: Context) -> list[dict[str, Any]]:
    """Return one object per replica of the last attempt: its node, its cards, its times and its exit code."""
    if detail.job.attempt is None:
        return []
    nodes = detail.job.attempt.places
    kill_at, _because = leaving_replicas(detail.job)
    return [
        {
            "rank": replica.rank,
            # Null for a replica whose place the record no longer has.
            "node": nodes[replica.rank].node if replica.rank in nodes else None,
            # Counted from 1, as everywhere that users see them.
            "cards": [part.card + 1 for part in nodes[replica.rank].slices] if replica.rank in nodes else [],
            "started_at": None if replica.started_at is None else iso(replica.started_at),
            "ended_at": None if replica.ended_at is None else iso(replica.ended_at),
            "exit_code": None if replica.exit is None else replica.exit.shell_code,
            "limits": replica.limits,
            "left_at": None if replica.left_at is None else iso(replica.left_at),
            "ready": replica.is_ready,
            "restarts": replica.restarts,
            "kill_at": iso(kill_at[replica.rank]) if replica.rank in kill_at else None,
        }
        for replica in detail.job.attempt.replicas
    ]


def events(detail: JobDetail, context: Context) -> list[dict[str, Any]]:
    """Return one object per event of the job."""
    return [
        {
            "seq": record.seq,
            "at": iso(record.at),
            "actor": record.actor,
            "event": event_kind(record.body),
            "sentence": event_sentence(record, context.zone),
        }
        for record in detail.events
    ]


def waited(detail: JobDetail, context: Context) -> list[dict[str, Any]]:
    """Return the reasons for which the job waited, each with the time from which it applied."""
    return [
        {
            "since": iso(each.since),
            "type": str(each.reason.__struct_config__.tag) if each.reason is not None else None,
            "sentence": reason_sentence(each.reason, context.now, context.zone) if each.reason is not None else None,
        }
        for each in detail.waited
    ]


def tasks(detail: JobDetail, _: Context) -> list[dict[str, Any]]:
    """Return one object per task of the job's batch; empty for other jobs."""
    return [
        {
            "id": row.id,
            "task": row.array.index,
            "state": str(row.state),
            "exit_code": row.exit_code,
            "command": row.command,
            "algorithm": row.algorithm,
            "output": row.output,
        }
        for row in detail.tasks
        if row.array is not None
    ]


def _objects(
    id: str,  # noqa: A002 - the column's
    title: str,
    about: str,
    derive: Callable[[Any, Context], list[dict[str, Any]]],
    one: str,
) -> Column:
    """Return a column of objects, whose text is their number."""

    def words(detail: JobDetail, context: Context) -> str:
        return counted(len(derive(detail, context)), one)

    return Column(id, title, about, ValueKind.RECORD, derive=derive, words=words, schema=RECORDS)


# A job's record: all columns of its row in the list, from the list's own description, then what only its details have.
JOB: Final = TableView(
    name="job-details",
    help="One job",
    empty="",
    columns=(
        *map(of_the_row, JOBS.columns),
        Column(
            "position",
            "POSITION",
            "Place in the queue, from 1",
            ValueKind.INTEGER,
            derive=lambda detail, _: None if detail.explanation is None else detail.explanation.place,
            nullable=True,
        ),
        Column(
            "ahead",
            "AHEAD",
            "Jobs before it in the queue, at most ten",
            ValueKind.RECORD,
            derive=ahead,
            words=lambda detail, context: ", ".join(map(str, ahead(detail, context))) or "–",
            schema={"type": "array", "items": {"type": "integer"}},
        ),
        Column(
            "priorities",
            "PRIORITIES",
            "While it waits: of each queue the priority, and of each factor raw value, weight and contribution",
            ValueKind.RECORD,
            derive=priorities,
            words=lambda detail, _: ", ".join(str(each.total) for each in detail.priority) or "–",
            schema=RECORDS,
        ),
        Column(
            "reserved_at",
            "RESERVED",
            "When the present plan starts it, if it has a reservation; whether that is promised says latest_at",
            ValueKind.MOMENT,
            derive=lambda detail, _: None if detail.explanation is None else detail.explanation.reserved_at,
            nullable=True,
        ),
        likely_column(forecast),
        *spread_columns(forecast),
        _objects("replicas", "REPLICAS", "The containers of the last attempt", replicas, "replica"),
        _objects(
            "rings",
            "RINGS",
            "Of an elastic job: its workers from one change to the next with their ranks and hosts, and why it changed",
            rings_json,
            "ring",
        ),
        Column(
            "no_growth",
            "NO GROWTH",
            "Of a running elastic job: why it takes no further worker, and the jobs, the limit or the price behind it",
            derive=lambda detail, _: no_growth(detail) or None,
            nullable=True,
        ),
        Column(
            "scaling",
            "SCALING",
            "On Kubernetes: the change of an elastic job's number of workers that is not done, or that failed last",
            ValueKind.RECORD,
            derive=lambda detail, _: None if detail.scaling is None else asdict(detail.scaling),
            words=lambda detail, _: scaling_words(detail) or "–",
            schema={"type": ["object", "null"]},
            nullable=True,
        ),
        Column(
            "training",
            "TRAINING",
            "Of an elastic job: steps, speed by number of workers, steps lost, likely ends, hours above its minimum",
            ValueKind.RECORD,
            derive=training_json,
            words=lambda detail, _: "–" if detail.training is None else progress_words(detail.training),
            schema={"type": ["object", "null"]},
            nullable=True,
        ),
        _objects("events", "EVENTS", "What happened to it", events, "event"),
        _objects(
            "waited",
            "WAITED FOR",
            "What it waited for as far as the engine or this cockpit observed it, the oldest first; null: not observed",
            waited,
            "reason",
        ),
        _objects(
            "use",
            "USE",
            "What its containers have really used, as the kernel counts it; none where it is not measured",
            lambda detail, _: [asdict(each) for each in detail.use],
            "replica",
        ),
        _objects("steps", "STEPS", "On a Slurm cluster: what ran within it", steps_json, "step"),
        Column(
            "batch",
            "BATCH",
            "Of a batch's task: all tasks of the batch",
            ValueKind.RECORD,
            derive=tasks,
            words=lambda detail, _: counted(len(detail.tasks), "task"),
            schema=RECORDS,
        ),
        Column(
            "fleet",
            "FLEET",
            "On the host of a fleet: its policy, its clusters with the state there, and why it is on no others",
            ValueKind.RECORD,
            derive=fleet_json,
            words=lambda detail, _: fleet_count(detail.fleet),
            schema={"type": ["object", "null"]},
            nullable=True,
        ),
        Column("address", "ADDRESS", "Where a session's notebook says that it can be reached"),
        Column("log_tail", "LOG TAIL", "The last lines of its log"),
        Column(
            "log_left_out_mib",
            "LOG LEFT OUT",
            "Of its logs, where they are longer than `log_limit`, in MiB",
            ValueKind.MIB,
        ),
    ),
)

_OF_RUNNING: Final = ("id", "name", "state", "workers", "no_growth", "training")
EXPLAIN_RUNNING: Final = TableView(
    name="explain-running",
    help="Why a running elastic job has no more workers, how far it is, and what more workers would give",
    empty="No job was named.",
    columns=tuple([column for column in JOB.columns if column.id in _OF_RUNNING]),
)
