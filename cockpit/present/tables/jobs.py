"""The columns of the job list."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Final

from cockpit.model.job import EndCause, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held, Reason, WouldDelay
from cockpit.model.spec import Access, JobKind
from cockpit.model.staging import Progress
from cockpit.present import units
from cockpit.present.columns import Column, Context, Fraction, Kind, Table
from cockpit.present.copying import copying_sentence, percent
from cockpit.present.folding import FoldedRow, id_text, progress, task_count
from cockpit.present.moments import iso
from cockpit.present.phrases import listed
from cockpit.present.reasons import REASON_TYPES, reason_sentence
from cockpit.present.safe import safe
from cockpit.present.states import end_sentence, ending_sentence, retry_words, state_words
from cockpit.present.workers import below_min, short_of_workers, workers_now


def why(row: JobRow, context: Context) -> str | None:
    """The sentence: why it waits, is being ended, or how it ended. None: nothing to say."""
    said = _own_why(row, context)
    if row.retries is None:
        return said
    return f"{said}; {retry_words(row.retries)}" if said else retry_words(row.retries)


def _own_why(row: JobRow, context: Context) -> str | None:
    if row.reason is not None:
        sentence = reason_sentence(row.reason, context.now, context.zone)
        suspended = below_min(row, context.now, context.zone)
        return f"{suspended}; {sentence}" if suspended else sentence
    if row.ending is not None:
        return ending_sentence(row.ending)
    if row.end_cause is not None:
        return end_sentence(row, row.end_cause) or None
    if row.state is _STAGING:
        return copying_sentence(row.staged)
    return short_of_workers(row) if row.workers is not None else None


def copied_json(progress: Progress | None) -> dict[str, int | None] | None:
    if progress is None:
        return None
    told = {"done_bytes": progress.done, "total_bytes": progress.total, "bytes_per_second": progress.rate}
    return {**told, "seconds_left": progress.seconds_left}


def state_text(row: JobRow, context: Context) -> str:
    return state_words(row.state, row.held_until, context.now, ending=row.ending is not None)


def states_text(row: JobRow, context: Context) -> str:
    """`queued`; `2 running, 7 queued` of a folded array."""
    if isinstance(row, FoldedRow):
        gone = (f"{row.gone} ended",) if row.gone else ()
        return ", ".join((*(f"{count} {state}" for state, count in row.states), *gone))
    return state_text(row, context)


_STAGING: Final = JobState.STAGING
_SUSPENDED: Final = JobState.SUSPENDED  # a member costs a look-up in each of a hundred thousand rows


def elapsed_seconds(row: JobRow, context: Context) -> int | None:
    """How long it has run, or ran, without the time in which it stood still."""
    if row.started_at is None:
        return None
    until = row.ended_at or (row.state_since if row.state is _SUSPENDED else context.now)
    ran = until - row.started_at - row.suspended_ms
    return ran // 1000 if ran > 0 else 0


def wait_seconds(row: JobRow, context: Context) -> int:
    """How long it has waited, or waited, from submission to start (or end, when it never started)."""
    until = row.started_at or row.ended_at or context.now
    return (until - row.submitted_at) // 1000 if until > row.submitted_at else 0


def is_running(row: JobRow) -> bool:
    return row.started_at is not None and row.ended_at is None


def is_waiting(row: JobRow) -> bool:
    return row.started_at is None and row.ended_at is None


is_kept: Final = attrgetter("held_until")
"""Whether its containers are, and so its cells count down. A hundred thousand rows are asked for each word."""


def cards(row: JobRow, _: Context) -> int | float:
    return units.cards(row.card_milli)


def node_spec(row: JobRow, _: Context) -> str:
    """What it asks of each node, as one text to search in."""
    nodes = max(row.nodes, 1)
    named = f"{safe(row.spec_name)}: " if row.spec_name else ""
    per_node = f"{named}{row.cpus // nodes} CPUs, {units.memory(row.memory_mib // nodes)}"
    if not row.card_milli:
        return per_node
    return f"{per_node}, {units.cards(row.card_milli // nodes)} {listed(row.card_models, 'or') or 'cards'}"


@lru_cache(maxsize=4096)
def reason_json(reason: Reason) -> Reason | dict[str, object]:
    """The reason with its `type`, its moments in ISO 8601; everything else is its own JSON."""
    if isinstance(reason, Held):
        return {"type": "held", "by": reason.by, "since": iso(reason.since) if reason.since is not None else None}
    if isinstance(reason, WouldDelay):
        return {"type": "would_delay", "ahead": reason.ahead, "reserved_at": iso(reason.reserved_at)}
    return reason


def bounds_json(bounds: tuple[int, int, int] | None) -> dict[str, int] | None:
    """By the names of a job file."""
    return dict(zip(("min_workers", "workers", "max_workers"), bounds, strict=True)) if bounds is not None else None


def _progress(row: JobRow, _: Context) -> Fraction | None:
    found = progress(row)
    return None if found is None else Fraction(*found)


def reason_type(row: JobRow, _: Context) -> str:
    return "–" if row.reason is None else str(row.reason.__struct_config__.tag)


WORKERS_SCHEMA: Final = {
    "type": ["object", "null"],
    "properties": {name: {"type": "integer"} for name in ("min_workers", "workers", "max_workers")},
}
STAGED_SCHEMA: Final = {
    "type": ["object", "null"],
    "properties": {
        **{name: {"type": "integer"} for name in ("done_bytes", "total_bytes", "bytes_per_second")},
        "seconds_left": {"type": ["integer", "null"]},
    },
}
REASON_SCHEMA: Final = {
    "type": ["object", "null"],
    "properties": {"type": {"enum": list(REASON_TYPES)}},
    "required": ["type"],
}

JOBS: Final = Table(
    name="jobs",
    identity=("id",),
    help="Every live and held job",
    empty="No jobs. Submit one: cockpit submit job.yaml",
    columns=(
        Column(
            "id",
            "ID",
            Kind.INTEGER,
            "Never used again; a task of an array is written as 123_4, a component of a job as 123+1",
            field="id",
            words=lambda row, _: id_text(row),
        ),
        Column("name", "NAME", Kind.TEXT, "As its file says", field="name"),
        Column("user", "USER", Kind.TEXT, "Who submitted it", field="user", aliases=("creator",), spare=True),
        Column(
            "state",
            "STATE",
            Kind.TEXT,
            "What it is doing",
            field="state",
            words=states_text,
            words_from=("state", "held_until", "ending"),
            ticks=is_kept,
            schema={"enum": [str(state) for state in JobState]},
        ),
        Column(
            "partitions",
            "QUEUE",
            Kind.WORDS,
            "Where it runs or ran; while it waits, where it may",
            field="partitions",
            aliases=("partition", "queue"),
            spare=True,
        ),
        Column(
            "clusters",
            "CLUSTER",
            Kind.WORDS,
            "On a fleet, where it is bound to",
            field="clusters",
            aliases=("cluster",),
            rare=True,
        ),
        Column(
            "priority",
            "PRIO",
            Kind.INTEGER,
            "While it waits, the best of its queues, as of the last count; 0: held",
            field="priority",
            nullable=True,
            aliases=("prio",),
            spare=True,
        ),
        Column(
            "nodes",
            "NODES",
            Kind.INTEGER,
            "Nodes it asks for, or has",
            field="nodes",
            spare=True,
        ),
        Column(
            "workers",
            "WORKERS",
            Kind.RECORD,
            "Of an elastic job: how many workers it has or asks for, and between which bounds",
            field="workers",
            words=lambda row, _: workers_now(row),
            words_from=("workers", "nodes"),
            record_json=bounds_json,
            schema=WORKERS_SCHEMA,
            rare=True,
            nullable=True,
        ),
        Column("cards", "CARDS", Kind.NUMBER, "Cards over all its nodes; 0.5 is half of one", derive=cards),
        Column(
            "elapsed_seconds",
            "TIME",
            Kind.SECONDS,
            "How long it has run",
            derive=elapsed_seconds,
            ticks=is_running,
            nullable=True,
            aliases=("elapsed", "time"),
        ),
        Column(
            "time_limit_seconds",
            "LIMIT",
            Kind.SECONDS,
            "How long it may run",
            field="time_limit_seconds",
            aliases=("limit", "time_limit"),
            spare=True,
        ),
        Column(
            "started_at",
            "START",
            Kind.MOMENT,
            "When its first replica started",
            field="started_at",
            nullable=True,
            aliases=("start", "started"),
            spare=True,
        ),
        Column("why", "WHY", Kind.TEXT, "Why it waits, or how it ended, in a sentence", derive=why, nullable=True),
        Column(
            "held_until",
            "HELD UNTIL",
            Kind.MOMENT,
            "Until when its failed containers are kept",
            field="held_until",
            nullable=True,
            wide=True,
        ),
        Column("cpus", "CPUS", Kind.INTEGER, "CPUs over all its nodes", field="cpus", wide=True),
        Column(
            "memory_mib",
            "MEMORY",
            Kind.MIB,
            "Memory over all its nodes, in MiB",
            field="memory_mib",
            wide=True,
            aliases=("memory",),
        ),
        Column(
            "card_models",
            "CARD MODELS",
            Kind.WORDS,
            "Models it accepts; none: any",
            field="card_models",
            wide=True,
            aliases=("card_model",),
        ),
        Column(
            "placed_on",
            "PLACED ON",
            Kind.WORDS,
            "Nodes it was placed on",
            field="placed_on",
            wide=True,
            aliases=("node",),
        ),
        Column(
            "submitted_at",
            "SUBMITTED",
            Kind.MOMENT,
            "When it was accepted",
            field="submitted_at",
            wide=True,
            aliases=("submitted",),
        ),
        Column(
            "attempt",
            "ATTEMPT",
            Kind.INTEGER,
            "Which start of the job is its current or last one, or is to come, from 1",
            field="attempt",
            wide=True,
        ),
        Column(
            "retries",
            "RETRIES",
            Kind.INTEGER,
            "How often it has begun again by itself after a failure",
            derive=lambda row, _: row.retries[0] if row.retries is not None else 0,
            wide=True,
        ),
        Column(
            "ended_at",
            "ENDED",
            Kind.MOMENT,
            "When its command had ended",
            field="ended_at",
            nullable=True,
            wide=True,
            aliases=("ended",),
        ),
        Column(
            "wait_seconds",
            "WAIT",
            Kind.SECONDS,
            "How long it waited for its start",
            derive=wait_seconds,
            ticks=is_waiting,
            wide=True,
            aliases=("wait",),
        ),
        Column(
            "exit_code",
            "EXIT",
            Kind.INTEGER,
            "As a shell reports it: 128 + signal when killed",
            field="exit_code",
            nullable=True,
            wide=True,
            aliases=("exit",),
        ),
        Column(
            "reason",
            "REASON",
            Kind.RECORD,
            "Why it waits, for programs: a type and its data",
            field="reason",
            words=reason_type,
            words_from=("reason",),
            record_json=reason_json,
            schema=REASON_SCHEMA,
            nullable=True,
            wide=True,
        ),
        Column(
            "ending",
            "ENDING",
            Kind.TEXT,
            "Why it is being ended",
            field="ending",
            nullable=True,
            wide=True,
            schema={"enum": [*map(str, EndCause), None]},
        ),
        Column(
            "end_cause",
            "END CAUSE",
            Kind.TEXT,
            "Why it ended",
            field="end_cause",
            nullable=True,
            wide=True,
            aliases=("cause",),
            schema={"enum": [*map(str, EndCause), None]},
        ),
        Column(
            "staged",
            "STAGED",
            Kind.RECORD,
            "How far the copies are that it waits for",
            field="staged",
            words=lambda row, _: percent(row.staged),
            words_from=("staged",),
            record_json=copied_json,
            schema=STAGED_SCHEMA,
            nullable=True,
            wide=True,
        ),
        Column("account", "ACCOUNT", Kind.TEXT, "What it is charged to", field="account", wide=True),
        Column("qos", "QOS", Kind.TEXT, "Its QOS", field="qos", wide=True),
        Column(
            "array",
            "ARRAY",
            Kind.INTEGER,
            "The array that it is a task of",
            derive=lambda row, _: None if row.array is None else row.array.array,
            nullable=True,
            wide=True,
        ),
        Column(
            "task",
            "TASK",
            Kind.INTEGER,
            "Its index there",
            derive=lambda row, _: None if row.array is None or task_count(row) > 1 else row.array.index,
            nullable=True,
            wide=True,
        ),
        Column(
            "tasks",
            "TASKS",
            Kind.INTEGER,
            "How many jobs the row stands for; more than one where arrays are folded",
            derive=lambda row, _: task_count(row),
            wide=True,
        ),
        Column(
            "component",
            "PART",
            Kind.INTEGER,
            "Which component of its heterogeneous job it is, from 0",
            derive=lambda row, _: None if row.component is None or task_count(row) > 1 else row.component[1],
            nullable=True,
            wide=True,
            rare=True,
        ),
        Column(
            "progress",
            "ENDED",
            Kind.FRACTION,
            "Where tasks are folded: how many have ended, of how many",
            derive=_progress,
            nullable=True,
            rare=True,
        ),
        Column("project", "PROJECT", Kind.TEXT, "Who it counts for", field="project", wide=True),
        Column(
            "access",
            "ACCESS",
            Kind.TEXT,
            "What other members of its project may do: all (rw), look and copy (ro)",
            field="access",
            nullable=True,
            wide=True,
            schema={"enum": [str(Access.RW), str(Access.RO), None]},
        ),
        Column("pool", "POOL", Kind.TEXT, "The pool it asks for", field="pool", wide=True),
        Column(
            "kind",
            "KIND",
            Kind.TEXT,
            "One command (regular), tasks with a command each (batch), or a session (interactive)",
            field="kind",
            wide=True,
            schema={"enum": [str(kind) for kind in JobKind]},
        ),
        Column("command", "COMMAND", Kind.TEXT, "What it runs", field="command", wide=True),
        Column(
            "algorithm",
            "ALGORITHM",
            Kind.TEXT,
            "Its algorithm: a folder, a name of the catalogue, or favorite/ and a name",
            field="algorithm",
            wide=True,
        ),
        Column(
            "output",
            "OUTPUT",
            Kind.TEXT,
            "Its output folder",
            field="output",
            wide=True,
            aliases=("outputs", "output_folder"),
        ),
    ),
    keys=(Column("spec", "SPEC", Kind.TEXT, "What it asks of each node", derive=node_spec),),
)
