"""Jobs: the columns of their list for every output."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from cockpit.model.attempt import EndCause
from cockpit.model.forecast import Forecast
from cockpit.model.job import ENDED, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.model.spec import Access, JobKind
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import GAP, NOTHING, Cell, Column, Context, TableView, ValueKind, laid_out
from cockpit.present.events.alerts import alert_sentence
from cockpit.present.folding import FoldedRow, id_text, progress, speaker_of, task_count
from cockpit.present.job_values import (
    REASON_SCHEMA,
    STAGED_SCHEMA,
    WORKERS_SCHEMA,
    amount,
    bounds_json,
    brief_why,
    cards,
    copied_json,
    elapsed_seconds,
    has_hold,
    is_running,
    is_waiting,
    node_spec,
    progress_of,
    reason_json,
    reason_type,
    states_text,
    wait_seconds,
    why,
)
from cockpit.present.landing import needs_owner
from cockpit.present.moments import brief_clock
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, TEXT, Line, Span, line
from cockpit.present.start_words import last_move
from cockpit.present.states import GLYPHS, copied_percent, seconds_left
from cockpit.present.workers import workers_now

TIME_COLUMNS = 5
BAR_COLUMNS = 5
LEAST_ID_COLUMNS = 4
ARRAY_COLUMNS = 9
"""Width of the tasks after an array's number in terminal columns: `_[0-99%4]`."""


def _name_cell(row: JobRow, context: Context) -> Line:
    """Return the cell with the name: strong where the user has to act, muted where nothing more will happen."""
    needs_user = row.user == context.user and needs_owner(row)
    over = row.state in ENDED and row.held_until is None
    name = Span(safe(row.name), STRONG if needs_user else MUTED if over else TEXT)
    if isinstance(row, FoldedRow):
        return line(name, Span(f" [{task_count(row)}]", ACCENT))
    return line(name)


def state_cell(row: JobRow, _: Context) -> Line:
    """Return the cell with the state's sign and word in its colour; for a folded array the number of tasks in each
    state."""
    if isinstance(row, FoldedRow):
        states = (Span(f"{GLYPHS[state]} {count} ", str(state)) for state, count in row.states)
        return (*states, *((Span(f"{row.gone} ended", MUTED),) if row.gone else ()))
    # To the user a job that is being ended no longer runs, whatever its state says until the last process is gone.
    word = "ending" if row.ending is not None and row.ended_at is None else str(row.state)
    part = f" {copied_percent(row.staged)}" if row.staged is not None and row.ending is None else ""
    shown = Span(f"{GLYPHS[row.state]} {word}{part}", str(row.state))
    return line(shown, Span("·held", "held")) if row.held_until is not None else line(shown)


def _queue_cell(row: JobRow, _: Context) -> Line:
    return line(safe(",".join(row.partitions))) if row.partitions else line(Span(NOTHING, MUTED))


def _priority_cell(row: JobRow, _: Context) -> Line:
    return line(Span(NOTHING if row.priority is None else units.grouped(row.priority), MUTED))


def _nodes_cell(row: JobRow, _: Context) -> Line:
    """Return the cell with the number of nodes; for an elastic job with 3 of at most 8 workers `3/8`."""
    # What an elastic job may grow to, as its present number changes by itself.
    most = f"/{row.workers[2]}" if row.workers is not None else ""
    # 0 while it is suspended below its minimum: it has given its nodes back, and `nodes` is what it asks for again.
    return line(Span(f"{0 if row.waits_until is not None else row.nodes}{most}", MUTED))


def _cards_cell(row: JobRow, context: Context) -> Line:
    held = cards(row, context)
    return line(str(held)) if held else line(Span(NOTHING, MUTED))


def _time_cell(row: JobRow, context: Context) -> Line:
    """Return the cell with the elapsed time, its part of the time limit as a bar, and the limit. For several tasks: how
    many have ended, in place of the elapsed time."""
    limit = Span(f" / {coarse(row.time_limit_seconds) if row.has_time_limit else NOTHING:>5}", MUTED)
    # Several tasks have no common run time.
    if (tasks := progress(row)) is not None:
        ended, count = tasks
        text = f"{ended}/{count}"
        room = TIME_COLUMNS + 1 + BAR_COLUMNS - max(TIME_COLUMNS, len(text)) - 1
        return (Span(f"{text:>{TIME_COLUMNS}} "), *bar(ended / count, room, str(row.state)), limit)
    elapsed = elapsed_seconds(row, context)
    if elapsed is None:
        return line(Span(" " * (TIME_COLUMNS + 1 + BAR_COLUMNS)), limit)
    if row.ended_at is not None:
        return line(Span(f"{coarse(elapsed):>{TIME_COLUMNS}} {'':{BAR_COLUMNS}}", MUTED), limit)
    if not row.has_time_limit:
        return line(Span(f"{coarse(elapsed):>{TIME_COLUMNS}} {'':{BAR_COLUMNS}}"), limit)
    return (
        Span(f"{coarse(elapsed):>{TIME_COLUMNS}} "),
        *bar(elapsed / row.time_limit_seconds, BAR_COLUMNS, str(row.state)),
        limit,
    )


def coarse(seconds: int) -> str:
    """Return a duration that changes every second only below a minute: `42s`, `12m`, `3:12`, `5d 3h`."""
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    # A cell that changes every second would be drawn every second, in each of many rows.
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}:{minutes:02}" if hours < 48 else f"{hours // 24}d{hours % 24:>2}h"


def _start_cell(row: JobRow, context: Context) -> Line:
    """Return the cell with the time of the start; for a queued job the likely start, `~13:40`, with a `+` or `-` behind
    it where that start has become later or earlier."""
    if row.started_at is not None:
        return line(Span(f"{brief_clock(row.started_at, context.now, context.zone)} ", MUTED))
    # The row of an array shows the start of the task whose values it shows.
    forecast = context.forecasts.get(speaker_of(row)) if row.queued else None
    if forecast is not None and forecast.likely_at is not None:
        likely = Span(f"~{brief_clock(forecast.likely_at, context.now, context.zone)}")
        return line(likely, _move_mark(forecast))
    return line(Span(f"{NOTHING} ", MUTED))


def _move_mark(forecast: Forecast) -> Span:
    """Return the sign for how the start has moved, which the panel explains; a blank where it has not."""
    if (move := last_move(forecast)) is None:
        return Span(" ")
    later = move.after is None or move.after > move.before
    return Span("+", "tight") if later else Span("-", "idle")


def _why_cell(row: JobRow, context: Context) -> Line:
    """Return the cell with the short clause; the panel has the whole sentence."""
    over = row.ended_at is not None and row.held_until is None
    role = "held" if isinstance(row.reason, Held) else MUTED if over else TEXT
    shown = line(Span(brief_why(row, context), role))
    if row.held_until is None:
        return shown
    left = units.countdown(seconds_left(row.held_until, context.now))
    return (*shown, Span(f" · held {left}", "held"))


# Columns without `cell` are for commands, files and filters; `need` is the width of the screen from which a column is
# shown, so that 80 columns have what a user looks for first: name, state, cards, start and reason.
JOBS: Final = TableView(
    name="jobs",
    identity=("id",),
    key=attrgetter("id"),
    help="Every live and held job",
    empty="No jobs. Submit one: cockpit submit job.yaml",
    columns=(
        Column(
            "id",
            "ID",
            "Never used again; a task of an array is written as 123_4, a component of a job as 123+1",
            ValueKind.INTEGER,
            words=lambda row, _: id_text(row),
            cell=Cell(LEAST_ID_COLUMNS, role=MUTED, need=84),
        ),
        Column("name", "NAME", "As its file says", cell=Cell(16, _name_cell, grows=1, most=30)),
        Column(
            "user",
            "USER",
            "Who submitted it",
            aliases=("creator",),
            spare=True,
            cell=Cell(8, need=94),
        ),
        Column(
            "state",
            "STATE",
            "What it is doing",
            words=states_text,
            words_from=("state", "held_until", "ending"),
            ticks=has_hold,
            values=JobState,
            cell=Cell(14, state_cell),
        ),
        Column(
            "partitions",
            "QUEUE",
            "Where it runs or ran; while it waits, where it may",
            ValueKind.WORDS,
            aliases=("partition", "queue"),
            spare=True,
            cell=Cell(6, _queue_cell, need=128, optional="partitions"),
        ),
        Column(
            "clusters",
            "CLUSTER",
            "On a fleet, where it is bound to",
            ValueKind.WORDS,
            aliases=("cluster",),
            rare=True,
            cell=Cell(
                7,
                lambda row, _: line(Span(", ".join(map(safe, dict.fromkeys(row.clusters))) or NOTHING, MUTED)),
                grows=1,
                most=14,
                after="name",
                optional="clusters",
            ),
        ),
        Column(
            "priority",
            "PRIO",
            "While it waits, the best of its queues, as of the last count; 0: held",
            ValueKind.INTEGER,
            nullable=True,
            aliases=("prio",),
            spare=True,
            cell=Cell(6, _priority_cell, need=134, optional="priority"),
        ),
        Column(
            "nodes",
            "NODES",
            "Nodes it asks for, or has",
            ValueKind.INTEGER,
            derive=amount("nodes"),
            spare=True,
            cell=Cell(5, _nodes_cell, need=134),
        ),
        Column(
            "workers",
            "WORKERS",
            "Of an elastic job: how many workers it has or asks for, and between which bounds",
            ValueKind.RECORD,
            words=lambda row, _: workers_now(row),
            words_from=("workers", "nodes", "waits_until"),
            record_json=bounds_json,
            schema=WORKERS_SCHEMA,
            rare=True,
            nullable=True,
        ),
        Column(
            "leaves_in",
            "KILLED IN",
            "Of an elastic job with workers that were asked to end: seconds until the first is killed",
            ValueKind.SECONDS,
            derive=lambda row, context: None if row.leaving is None else seconds_left(row.leaving[1], context.now),
            nullable=True,
            wide=True,
            rare=True,
        ),
        Column(
            "cards",
            "CARDS",
            "Cards over all its nodes; 0.5 is half of one",
            ValueKind.NUMBER,
            derive=cards,
            cell=Cell(5, _cards_cell, optional="card_milli"),
        ),
        Column(
            "elapsed_seconds",
            "TIME",
            "How long it has run",
            ValueKind.SECONDS,
            derive=elapsed_seconds,
            ticks=is_running,
            nullable=True,
            aliases=("elapsed", "time"),
            cell=Cell(19, _time_cell, title=" TIME       / LIMIT", right=False, need=116, ticks=True),
        ),
        Column(
            "time_limit_seconds",
            "LIMIT",
            "How long it may run; nothing where it has no limit",
            ValueKind.SECONDS,
            derive=lambda row, _: row.time_limit_seconds if row.has_time_limit else None,
            nullable=True,
            aliases=("limit", "time_limit"),
            spare=True,
        ),
        Column(
            "started_at",
            "START",
            "When its first replica started",
            ValueKind.MOMENT,
            nullable=True,
            aliases=("start", "started"),
            spare=True,
            cell=Cell(7, _start_cell, right=True, title="START "),
        ),
        # On the screen the reason gets most of the width that is left over.
        Column(
            "why",
            "WHY",
            "Why it waits, or how it ended, in a sentence",
            derive=why,
            nullable=True,
            cell=Cell(28, _why_cell, grows=6),
        ),
        Column(
            "held_until",
            "HELD UNTIL",
            "Until when its failed containers are held",
            ValueKind.MOMENT,
            nullable=True,
            wide=True,
        ),
        Column("cpus", "CPUS", "CPUs over all its nodes", ValueKind.INTEGER, derive=amount("cpus"), wide=True),
        Column(
            "memory_mib",
            "MEMORY",
            "Memory over all its nodes, in MiB",
            ValueKind.MIB,
            derive=amount("memory_mib"),
            wide=True,
            aliases=("memory",),
        ),
        Column(
            "card_models",
            "CARD MODELS",
            "Models it accepts; none: any",
            ValueKind.WORDS,
            wide=True,
            aliases=("card_model",),
        ),
        Column(
            "placed_on",
            "PLACED ON",
            "Nodes it was placed on",
            ValueKind.WORDS,
            wide=True,
            aliases=("node",),
            cell=Cell(
                12,
                lambda row, _: line(Span(", ".join(map(safe, dict.fromkeys(row.placed_on))) or NOTHING, MUTED)),
                title="ON",
                grows=1,
                most=20,
                need=160,
                after="started_at",
            ),
        ),
        Column(
            "submitted_at", "SUBMITTED", "When it was accepted", ValueKind.MOMENT, wide=True, aliases=("submitted",)
        ),
        Column(
            "attempt",
            "ATTEMPT",
            "Which start of the job is its current or last one, or is to come, from 1",
            ValueKind.INTEGER,
            wide=True,
        ),
        # In the row there are two numbers, used and allowed; no number at all where nothing is retried.
        Column(
            "retries",
            "RETRIES",
            "How often it has begun again by itself after a failure",
            ValueKind.INTEGER,
            derive=lambda row, _: row.retries[0] if row.retries is not None else 0,
            wide=True,
        ),
        Column(
            "ended_at",
            "ENDED",
            "When its command had ended",
            ValueKind.MOMENT,
            nullable=True,
            wide=True,
            aliases=("ended",),
        ),
        Column(
            "wait_seconds",
            "WAIT",
            "How long it waited for its start",
            ValueKind.SECONDS,
            derive=wait_seconds,
            ticks=is_waiting,
            wide=True,
            aliases=("wait",),
        ),
        Column(
            "exit_code",
            "EXIT",
            "As a shell reports it: 128 + signal when killed",
            ValueKind.INTEGER,
            nullable=True,
            wide=True,
            aliases=("exit",),
        ),
        # The sentence of `why` may change with any release, the type and its figures may not.
        Column(
            "reason",
            "REASON",
            "Why it waits, for programs: a type and its data",
            ValueKind.RECORD,
            words=reason_type,
            words_from=("reason",),
            record_json=reason_json,
            schema=REASON_SCHEMA,
            nullable=True,
            wide=True,
        ),
        # Null both for a job that nothing ends and for an ended one, which has `end_cause` then.
        Column("ending", "ENDING", "Why it is being ended", nullable=True, wide=True, values=EndCause),
        Column("end_cause", "END CAUSE", "Why it ended", nullable=True, wide=True, aliases=("cause",), values=EndCause),
        Column(
            "staged",
            "STAGED",
            "How far the copies are that it waits for",
            ValueKind.RECORD,
            words=lambda row, _: copied_percent(row.staged),
            words_from=("staged",),
            record_json=copied_json,
            schema=STAGED_SCHEMA,
            nullable=True,
            wide=True,
        ),
        # Not nullable: no account is an empty text, as in `sacct`.
        Column("account", "ACCOUNT", "What it is charged to", wide=True),
        Column("qos", "QOS", "Its QOS", wide=True),
        Column(
            "array",
            "ARRAY",
            "The array that it is a task of",
            ValueKind.INTEGER,
            derive=lambda row, _: None if row.array is None else row.array.array,
            nullable=True,
            wide=True,
        ),
        # A folded row has no index of its own; how many tasks it stands for says `tasks`.
        Column(
            "task",
            "TASK",
            "Its index there",
            ValueKind.INTEGER,
            derive=lambda row, _: None if row.array is None or task_count(row) > 1 else row.array.index,
            nullable=True,
            wide=True,
        ),
        Column(
            "tasks",
            "TASKS",
            "The number of jobs in the row; more than one if an array is folded",
            ValueKind.INTEGER,
            derive=lambda row, _: task_count(row),
            wide=True,
        ),
        Column(
            "component",
            "PART",
            "Which component of its heterogeneous job it is, from 0",
            ValueKind.INTEGER,
            derive=lambda row, _: None if row.component is None or task_count(row) > 1 else row.component[1],
            nullable=True,
            wide=True,
            rare=True,
        ),
        Column(
            "progress",
            "ENDED",
            "Where tasks are folded: how many have ended, of how many",
            ValueKind.FRACTION,
            derive=progress_of,
            nullable=True,
            rare=True,
        ),
        Column("project", "PROJECT", "Who it counts for", wide=True),
        Column(
            "access",
            "ACCESS",
            "What other members of its project may do: all (rw), look and copy (ro)",
            nullable=True,
            wide=True,
            values=(Access.RW, Access.RO),
        ),
        Column("pool", "POOL", "The pool it asks for", wide=True),
        Column(
            "kind",
            "KIND",
            "One command (regular), tasks with a command each (batch), or a session (interactive)",
            wide=True,
            values=JobKind,
        ),
        Column(
            "alert",
            "ALERT",
            "The last alert about it",
            derive=lambda row, context: (
                alert_sentence(row.alert, context.now, context.zone) if row.alert is not None else None
            ),
            nullable=True,
            wide=True,
            rare=True,
        ),
        Column("command", "COMMAND", "What it runs", wide=True),
        Column(
            "algorithm",
            "ALGORITHM",
            "Its algorithm: a folder, a name of the catalogue, or favorite/ and a name",
            wide=True,
        ),
        Column(
            "output",
            "OUTPUT",
            "Its output folder; on Slurm the file that its script writes to, empty where accounting does not know it",
            wide=True,
            aliases=("outputs", "output_folder"),
        ),
    ),
    # For filters alone: users search for jobs by what these ask of a node, which no column of a table could show.
    keys=(Column("spec", "SPEC", "What it asks of each node", derive=node_spec),),
)


OPTIONAL: Final = frozenset(column.screen.optional for column in JOBS.screen) - {""}
"""Attributes that jobs have on some clusters only; where none has one, its column leaves its width to the reasons."""
WIDENING: Final = frozenset({"partitions", "clusters", "priority"})
"""Ids of the optional columns for which lesser columns need as much more width."""
LESSER: Final = frozenset({"nodes", "placed_on"})
"""Ids of the columns that a narrow table leaves out in favour of the optional ones."""


@lru_cache(maxsize=64)
def laid_out_jobs(
    total: int, id_columns: int = LEAST_ID_COLUMNS, without: frozenset[str] = frozenset()
) -> Sequence[tuple[Column, int]]:
    """Return the columns that fit this width, except those `without`, with their widths."""
    # `need` counts without the optional columns: where these are shown, lesser columns need as much more.
    wanted = [each for each in JOBS.screen if each.screen.optional not in without]
    optional = {each.id: each.screen.width + GAP for each in wanted if each.id in WIDENING}
    always = optional.get("clusters", 0)  # it is shown in every width, so that all others need as much more

    def fitted(column: Column) -> Column:
        cell = column.screen
        need = cell.need and cell.need + (sum(optional.values()) if column.id in LESSER else always)
        return replace(column, cell=replace(cell, need=need, width=id_columns if column.id == "id" else cell.width))

    return laid_out(list(map(fitted, wanted)), total)
