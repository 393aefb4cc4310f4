"""The figures of `cockpit overview`, as one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cockpit.model.job import JobState
from cockpit.model.node import Node
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import NodeRow, Overview
from cockpit.present import units
from cockpit.present.columns import Column, Context, Fraction, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.present.states import GLYPHS


def _in_state(state: JobState) -> Callable[[Overview, Context], int]:
    return lambda row, _: row.jobs_by_state.get(state, 0)


OVERVIEW: Final = TableView(
    name="overview",
    identity=("cluster",),
    help="The cluster at a glance",
    empty="",
    columns=(
        Column("cluster", "CLUSTER", "Its name"),
        Column("running", "RUNNING", "Jobs that run", ValueKind.INTEGER, derive=_in_state(JobState.RUNNING)),
        Column("queued", "QUEUED", "Jobs that wait", ValueKind.INTEGER, derive=_in_state(JobState.QUEUED)),
        Column("kept", "HELD", "Jobs whose containers are held", ValueKind.INTEGER, field="held"),
        Column("nodes", "NODES", "How many nodes", ValueKind.INTEGER),
        Column(
            "cpus",
            "CPUS",
            "In use, of all",
            ValueKind.FRACTION,
            derive=lambda row, _: Fraction(row.used_cpus, row.cpus),
        ),
        Column(
            "memory_mib",
            "MEMORY",
            "In use, of all, in MiB",
            ValueKind.MEMORY_FRACTION,
            derive=lambda row, _: Fraction(row.used_memory_mib, row.memory_mib),
            aliases=("memory",),
        ),
        Column(
            "cards",
            "CARDS",
            "In use, of all",
            ValueKind.FRACTION,
            derive=lambda row, _: Fraction(units.cards(row.used_card_milli), units.cards(row.card_milli)),
        ),
        Column("trouble", "TROUBLE", "What is wrong with the engine just now", ValueKind.WORDS),
    ),
)


BAR_COLUMNS = 10
NO_CONTAINERS = "No containers here: jobs are plain processes with nothing between them; see `cockpit doctor`."


def overview_lines(overview: Overview, nodes: Sequence[NodeRow]) -> list[str]:
    """Return the overview as harmless lines, the sentence first."""
    # A demo of one node has a node that is not this machine.
    place = "This machine" if len(nodes) == 1 and not nodes[0].node.virtual else safe(overview.cluster)
    jobs = any(overview.jobs_by_state.values())
    lines = [f"{place}: {capacity([row.node for row in nodes], overview)}." + ("" if jobs else " No jobs yet.")]
    lines += (f"⚠ {safe(sentence)}" for sentence in overview.trouble)
    # On every overview, not only once: nothing separates such jobs from each other.
    lines += [f"⚠ {NO_CONTAINERS}"] if overview.plain else []
    if jobs:
        lines += [counts(overview), *usage(overview)]
    return [*lines, *(f"  {command:<26}{purpose}" for command, purpose in hints(overview))]


def capacity(nodes: Sequence[Node], overview: Overview) -> str:
    """Return the resources of the nodes: `16 CPUs, 128G, 2 × RTX 4090`; first the number of nodes where there are
    several."""
    cards = Counter(card.model for node in nodes for card in node.cards)
    parts = [units.counted(len(nodes), "node")] if len(nodes) > 1 else []
    parts += [units.counted(overview.cpus, "CPU"), units.memory(overview.memory_mib)]
    parts += [f"{number} × {safe(model)}" for model, number in cards.items()]
    return ", ".join(parts)


def counts(overview: Overview) -> str:
    """Return the number of jobs by state: `● 41 running   ◌ 128 queued   3 held`."""
    parts = [
        f"{GLYPHS[state]} {overview.jobs_by_state[state]} {state}"
        for state in JobState
        if overview.jobs_by_state.get(state)
    ]
    if overview.held:
        parts.append(f"{overview.held} held")
    return "   ".join(parts)


def usage(overview: Overview) -> Iterator[str]:
    """Yield the used part of each existing resource, as fraction and bar."""
    yield _bar("CPUs", overview.used_cpus, overview.cpus, f"{overview.used_cpus}/{overview.cpus}")
    used, total = units.memory(overview.used_memory_mib), units.memory(overview.memory_mib)
    yield _bar("memory", overview.used_memory_mib, overview.memory_mib, f"{used}/{total}")
    if overview.card_milli:
        text = f"{units.cards(overview.used_card_milli)}/{overview.card_milli // WHOLE_CARD}"
        yield _bar("cards", overview.used_card_milli, overview.card_milli, text)


def hints(overview: Overview) -> Iterator[tuple[str, str]]:
    """Yield commands that the user may want next, each with its purpose."""
    if not any(overview.jobs_by_state.values()):
        # For the first minute on a new machine; later the list of jobs is what one wants.
        yield "cockpit submit job.yaml", "submit one"
        yield "cockpit doctor", "see what this machine has and lacks"
    else:
        yield "cockpit jobs", "the jobs"
    if overview.held:
        yield "cockpit holds", "held containers of failed jobs"
    yield "cockpit --help", "everything else"


def _bar(label: str, used: int, total: int, text: str) -> str:
    return f"  {label:<8}{units.bar(used / total if total else 0.0, BAR_COLUMNS)} {text}"
