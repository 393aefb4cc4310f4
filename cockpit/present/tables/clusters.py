"""Clusters: the columns of their list for every output, and the panel about the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Final

from cockpit.model.job import JobState
from cockpit.model.view import ClusterRow, ClusterState, Overview
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING, Cell, Column, Context, Fraction, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, line, spread

WORDS: Final = {
    ClusterState.CONNECTING: "connecting",
    ClusterState.LIVE: "live",
    ClusterState.STILL: "snapshot",
    ClusterState.SILENT: "no answer",
}


SHAPES: Final = {
    ClusterState.LIVE: ("●", "running"),
    ClusterState.CONNECTING: ("◌", "queued"),
    ClusterState.STILL: ("■", MUTED),
    ClusterState.SILENT: ("✗", "error"),
}
OLD_SECONDS = 60
"""Age in seconds from which the data of a live cluster is highlighted."""
LEAST_BAR = 6
GAP = 1


def age_seconds(row: ClusterRow, context: Context) -> int | None:
    """Return the age of the cluster's data in seconds; None without data."""
    return None if row.heard_at is None else max(0, (context.now - row.heard_at) // 1000)


def count(row: ClusterRow, state: JobState) -> int:
    """Return the number of the cluster's jobs in this state, by its last answer."""
    return row.overview.jobs_by_state.get(str(state), 0) if row.overview is not None else 0


def cards(row: ClusterRow) -> tuple[int | float, int | float]:
    """Return the allocated cards and all cards."""
    overview = row.overview
    return (units.cards(overview.used_card_milli), units.cards(overview.card_milli)) if overview is not None else (0, 0)


def cpus(row: ClusterRow) -> tuple[int, int]:
    """Return the allocated CPUs and all CPUs."""
    return (row.overview.used_cpus, row.overview.cpus) if row.overview is not None else (0, 0)


def _fraction_column(
    used_and_total: Callable[[ClusterRow], tuple[float, float]],
) -> Callable[[ClusterRow, Context], Fraction | None]:
    return lambda row, _: Fraction(*used_and_total(row)) if row.overview is not None else None


def _jobs(state: JobState) -> Callable[[ClusterRow, Context], int | None]:
    return lambda row, _: count(row, state) if row.overview is not None else None


def state_cell(row: ClusterRow, _: Context) -> Line:
    shape, role = SHAPES[row.state]
    return line(Span(f"{shape} {WORDS[row.state]}", role))


def age_words(row: ClusterRow, context: Context) -> str:
    """Return the age of the cluster's data: `2 s`, `17 h`; a dash without data."""
    seconds = age_seconds(row, context)
    return NOTHING if seconds is None else units.age(seconds)


def _age_cell(row: ClusterRow, context: Context) -> Line:
    seconds = age_seconds(row, context)
    # A snapshot is old by its nature.
    old = row.state is not ClusterState.STILL and (seconds or 0) >= OLD_SECONDS
    return line(Span(age_words(row, context), "warning" if old else MUTED))


def _jobs_cell(state: JobState, role: str) -> Callable[[ClusterRow, Context], Line]:
    def cell(row: ClusterRow, _: Context) -> Line:
        if row.overview is None:
            return line(Span(NOTHING, MUTED))
        number = count(row, state)
        return line(Span(str(number), role if number else MUTED))

    return cell


def _held_cell(
    digits: int, used_and_total: Callable[[ClusterRow], tuple[float, float]]
) -> Callable[[ClusterRow, Context, int], Line]:
    """Return a function that makes the cell `115/132` with a bar."""

    def cell(row: ClusterRow, _: Context, columns: int) -> Line:
        used, total = used_and_total(row)
        # Without an answer, or without cards, there is no whole to draw a part of.
        if not total:
            return line(Span(NOTHING.rjust(digits), MUTED))
        text = f"{used:g}/{total:g}".rjust(digits)
        room = columns - len(text) - GAP
        # Old figures stay visible, without the colour of live ones.
        role = "running" if row.state is not ClusterState.SILENT else MUTED
        return (Span(text), Span(" " * GAP), *bar(used / total, room, role)) if room >= LEAST_BAR else line(Span(text))

    return cell


def _name_cell(row: ClusterRow, _: Context) -> Line:
    """Return the cell with the cluster's name; the members of a fleet stand below it as in a tree."""
    return line(Span("  └ ", MUTED), Span(safe(row.name), STRONG)) if row.fleet else line(Span(safe(row.name), STRONG))


def _way_cell(row: ClusterRow, _: Context) -> Line:
    """Return the cell with the way to the cluster, or why the cluster does not answer that way."""
    # One column for both: a cluster that does not answer is reached by no way.
    return line(Span(safe(row.reason), "error") if row.reason else Span(safe(row.way), MUTED))


# Figures of a cluster without an answer are null and not 0, which would be an answer.
CLUSTERS: Final = TableView(
    name="clusters",
    identity=("name",),
    key=attrgetter("name"),
    help="The clusters that you use: those of config.toml, and those of this machine",
    empty="No clusters. Name some in config.toml: [clusters]",
    columns=(
        Column(
            "name",
            "NAME",
            "As config.toml calls it; for -c",
            aliases=("cluster",),
            cell=Cell(12, _name_cell, title="CLUSTER", grows=1, most=24),
        ),
        Column(
            "state",
            "STATE",
            "Whether it answers",
            words=lambda row, _: WORDS[row.state],
            values=ClusterState,
            cell=Cell(14, state_cell),
        ),
        Column(
            "age_seconds",
            "AGE",
            "How old is what is known of it",
            ValueKind.SECONDS,
            derive=age_seconds,
            nullable=True,
            aliases=("age",),
            cell=Cell(6, _age_cell),
        ),
        Column(
            "running",
            "RUN",
            "Jobs that run",
            ValueKind.INTEGER,
            derive=_jobs(JobState.RUNNING),
            nullable=True,
            cell=Cell(5, _jobs_cell(JobState.RUNNING, "running")),
        ),
        Column(
            "queued",
            "WAIT",
            "Jobs that wait",
            ValueKind.INTEGER,
            derive=_jobs(JobState.QUEUED),
            nullable=True,
            cell=Cell(6, _jobs_cell(JobState.QUEUED, "queued")),
        ),
        Column(
            "cards",
            "CARDS",
            "Cards that are held, of how many",
            ValueKind.FRACTION,
            derive=_fraction_column(cards),
            nullable=True,
            cell=Cell(18, fill=_held_cell(9, cards), right=False, grows=1, most=26),
        ),
        Column(
            "cpus",
            "CPUS",
            "CPUs that are held, of how many",
            ValueKind.FRACTION,
            derive=_fraction_column(cpus),
            nullable=True,
            cell=Cell(18, fill=_held_cell(11, cpus), right=False, grows=1, most=28, need=100),
        ),
        Column(
            "nodes",
            "NODES",
            "How many it has",
            ValueKind.INTEGER,
            derive=lambda row, _: row.overview.nodes if row.overview is not None else None,
            nullable=True,
            cell=Cell(5, role=MUTED, need=110),
        ),
        Column("way", "WAY", "How it is reached", spare=True, cell=Cell(16, _way_cell, grows=2, need=110)),
        Column("reason", "WHY", "Why it does not answer", derive=lambda row, _: row.reason or None, nullable=True),
    ),
)


def cluster_answer(row: ClusterRow, context: Context, keys: Mapping[str, str], columns: int) -> Iterator[Line]:
    """Yield harmless lines about the cluster. `keys`: the first key of each action by the action's id."""
    left = line(Span(f"{safe(row.name)}  ", ACCENT), Span(_state_sentence(row, context), _role(row)))
    hints = [
        (keys.get("open_cluster", "Enter"), " its jobs   " if row.fleet else " opens it   "),
        (keys.get("every_job", ":every-job"), " all jobs"),
    ]
    right = tuple(span for key, words in hints for span in (Span(key, ACCENT), Span(words, MUTED)))
    yield spread(left, right, columns)
    if row.overview is not None:
        yield line(Span(f"{INDENT}jobs   ", MUTED), _jobs_words(row.overview))
        yield line(Span(f"{INDENT}holds  ", MUTED), _holds_words(row, row.overview))
    # While it connects for the first time there is nothing to say about it yet.
    elif row.state is ClusterState.SILENT:
        yield line(Span(f"{INDENT}Cockpit asks it again automatically; the other clusters do not wait for it.", MUTED))
    yield line(Span(f"{INDENT}way    ", MUTED), safe(row.way))


def _role(row: ClusterRow) -> str:
    return SHAPES[row.state][1] if row.state is ClusterState.SILENT else STRONG


def _state_sentence(row: ClusterRow, context: Context) -> str:
    """Return the sentence about the cluster's state and the age of its data."""
    age = age_words(row, context)
    if row.state is ClusterState.SILENT:
        known = f"; what is shown is {age} old" if row.heard_at is not None else ""
        return f"does not answer{known}: {safe(row.reason)}"
    words = {
        ClusterState.CONNECTING: "is being contacted for the first time …",
        ClusterState.STILL: f"is a snapshot from {age} ago; you can look at it but not change it.",
        ClusterState.LIVE: f"answers; heard {age} ago.",
    }
    return words[row.state]


def _jobs_words(overview: Overview) -> str:
    # The largest number first: the line is cut at its end.
    counts = [
        f"{number} {state}" for state, number in sorted(overview.jobs_by_state.items(), key=lambda each: -each[1])
    ]
    return ", ".join([*counts, *([f"{overview.held} held"] if overview.held else [])]) or "none"


def _holds_words(row: ClusterRow, overview: Overview) -> str:
    (held, of), (busy, cores) = cards(row), cpus(row)
    parts = [f"{held:g} of {of:g} cards"] if of else []
    memory = f"{units.memory(overview.used_memory_mib)} of {units.memory(overview.memory_mib)}"
    parts += [f"{busy} of {cores} CPUs", memory]
    return f"{', '.join(parts)}, on {units.counted(overview.nodes, 'node')}"
