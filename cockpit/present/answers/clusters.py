"""The panel about the cluster under the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cockpit.model.view import ClusterRow, ClusterState, Overview
from cockpit.present import units
from cockpit.present.cells.clusters import SHAPES, age_words
from cockpit.present.columns import Context
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.tables.clusters import cards, cpus

INDENT = "  "


def cluster_answer(row: ClusterRow, context: Context, keys: Mapping[str, str], columns: int) -> Iterator[Line]:
    """Harmless lines. `keys`: of actions by id."""
    left = line(Span(f"{safe(row.name)}  ", ACCENT), Span(_standing(row, context), _role(row)))
    hints = [
        (keys.get("open_cluster", "Enter"), " its jobs   " if row.fleet else " opens it   "),
        (keys.get("every_job", ":every-job"), " all jobs"),
    ]
    right = tuple(span for key, words in hints for span in (Span(key, ACCENT), Span(words, MUTED)))
    yield spread(left, right, columns)
    if row.overview is not None:
        yield line(Span(f"{INDENT}jobs   ", MUTED), _jobs(row.overview))
        yield line(Span(f"{INDENT}holds  ", MUTED), _holds(row, row.overview))
    elif row.state is ClusterState.SILENT:
        yield line(Span(f"{INDENT}It is asked again by itself; the others do not wait for it.", MUTED))
    yield line(Span(f"{INDENT}way    ", MUTED), safe(row.way))


def _role(row: ClusterRow) -> str:
    return SHAPES[row.state][1] if row.state is ClusterState.SILENT else STRONG


def _standing(row: ClusterRow, context: Context) -> str:
    """A sentence."""
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


def _jobs(seen: Overview) -> str:
    counts = [f"{number} {state}" for state, number in sorted(seen.jobs_by_state.items(), key=lambda each: -each[1])]
    return ", ".join([*counts, *([f"{seen.held} held"] if seen.held else [])]) or "none"


def _holds(row: ClusterRow, seen: Overview) -> str:
    (held, of), (busy, cores) = cards(row), cpus(row)
    parts = [f"{held:g} of {of:g} cards"] if of else []
    memory = f"{units.memory(seen.used_memory_mib)} of {units.memory(seen.memory_mib)}"
    parts += [f"{busy} of {cores} CPUs", memory]
    return f"{', '.join(parts)}, on {units.counted(seen.nodes, 'node')}"
