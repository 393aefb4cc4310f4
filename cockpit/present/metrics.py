"""The figures of a cluster for monitoring systems: families of samples with labels, whose number is bounded.

They are made from what the user may see: sums of a whole cluster where the cluster tells them to everyone, and
otherwise the user's own jobs. No job, user or command is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model.node import NodeState
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import QueueKind
from cockpit.present.safe import safe
from cockpit.present.stranded import known_requests
from cockpit.present.tables.cards import CardState, card_rows
from cockpit.present.tables.queues import ALL_NODES
from cockpit.present.waits.causes import WaitCause, cause_of

if TYPE_CHECKING:
    from cockpit.model.cluster import Partition
    from cockpit.model.ids import Millis
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import NodeRow, Overview, QueueRow

MOST_QUEUES: Final = 100
MOST_MODELS: Final = 20
OTHER: Final = "(other)"
"""The label for everything beyond the bound of a label."""
_MIB: Final = 1 << 20


class Sample(NamedTuple):
    """One figure: the values of the family's labels, and the number."""

    labels: tuple[str, ...]
    value: float


class Family(NamedTuple):
    """A metric with its samples; all of them are gauges."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: tuple[Sample, ...]


class Figures(NamedTuple):
    """What the metrics are made from."""

    overview: Overview
    jobs: Sequence[JobRow]
    nodes: Sequence[NodeRow]
    queues: Sequence[QueueRow]
    partitions: Sequence[Partition]
    now: Millis


def families(figures: Figures) -> Iterator[Family]:
    """Yield the metrics of a cluster that answers."""
    yield Family("cockpit_up", "Whether the cluster answers", (), (Sample((), 1),))
    yield from _jobs(figures.overview)
    yield from _queues(figures.queues)
    yield from _waits(figures)
    yield from _capacity(figures.overview, figures.nodes)
    yield from _cards(figures)
    if figures.overview.pass_ms is not None:
        words = "Duration of the last scheduling pass"
        yield Family("cockpit_pass_seconds", words, (), (Sample((), figures.overview.pass_ms / 1000),))


def silent() -> Iterator[Family]:
    """Yield the metrics of a cluster that does not answer."""
    yield Family("cockpit_up", "Whether the cluster answers", (), (Sample((), 0),))


def _jobs(overview: Overview) -> Iterator[Family]:
    states = tuple(Sample((safe(state),), count) for state, count in sorted(overview.jobs_by_state.items()))
    yield Family("cockpit_jobs", "Jobs by state, without those that are only in the accounting", ("state",), states)
    yield Family("cockpit_held_containers", "Jobs with containers held for debugging", (), (Sample((), overview.held),))
    yield Family("cockpit_troubles", "Present problems of the engine", (), (Sample((), _troubles(overview)),))


def _troubles(overview: Overview) -> int:
    return 0 if overview.hidden else len(overview.trouble)


def _queues(rows: Sequence[QueueRow]) -> Iterator[Family]:
    busiest = sorted(rows, key=lambda row: (-(row.waiting + row.running), row.path))
    shown = busiest[:MOST_QUEUES]
    labels = ("kind", "queue")
    names = [(str(row.kind), queue_label(row.path)) for row in shown]
    lengths = (("waiting", "Jobs that wait in a queue"), ("running", "Jobs that run out of a queue"))
    for field, words in lengths:
        samples = [Sample(name, getattr(row, field)) for name, row in zip(names, shown, strict=True)]
        # Only what does not nest may be added up: the queues of a tree count the jobs of those below them.
        rest = [row for row in busiest[MOST_QUEUES:] if row.kind is QueueKind.PARTITION]
        if rest:
            samples.append(Sample((str(QueueKind.PARTITION), OTHER), sum(getattr(row, field) for row in rest)))
        yield Family(f"cockpit_queue_{field}_jobs", words, labels, tuple(samples))
    for suffix, words, field in (
        ("used", "Resources that a queue's jobs hold, in CPUs, MiB and cards", "used"),
        ("limit", "The most that a queue's jobs may hold; absent: unlimited", "max"),
    ):
        amounts = tuple(
            Sample((*name, safe(resource)), amount / 1000)
            for name, row in zip(names, shown, strict=True)
            for resource, amount in sorted(getattr(row, field).items())
        )
        yield Family(f"cockpit_queue_{suffix}", words, (*labels, "resource"), amounts)


def queue_label(path: str) -> str:
    """Return a queue's or partition's name for a label."""
    return safe(path) or ALL_NODES


def _waits(figures: Figures) -> Iterator[Family]:
    """Yield how many jobs wait, and for how long, by partition and cause."""
    counts: Counter[tuple[str, str]] = Counter()
    sums: Counter[tuple[str, str]] = Counter()
    longest: dict[tuple[str, str], int] = {}
    waiting = [row for row in figures.jobs if row.queued]
    known = _most_frequent((_partition_of(row) for row in waiting), MOST_QUEUES)
    for row in waiting:
        partition = _partition_of(row)
        key = (partition if partition in known else OTHER, str(cause_of(row.reason)))
        seconds = max(0, figures.now - row.submitted_at) // 1000
        # A row may stand for several equal tasks of an array.
        tasks = max(1, len(row.tasks))
        counts[key] += tasks
        sums[key] += seconds * tasks
        longest[key] = max(longest.get(key, 0), seconds)
    labels = ("partition", "cause")
    # Every cause of every partition, so that a graph falls to 0 and does not end.
    keys = [(name, str(cause)) for name in sorted({name for name, _ in counts} or {ALL_NODES}) for cause in WaitCause]
    for name, words, values in (
        ("cockpit_waiting_jobs", "Jobs that you may see and that wait, by the cause of their wait", counts),
        ("cockpit_waiting_seconds", "Time for which these jobs have waited, added up", sums),
        ("cockpit_longest_wait_seconds", "Time for which the longest waiting of these jobs has waited", longest),
    ):
        yield Family(name, words, labels, tuple(Sample(key, values.get(key, 0)) for key in keys))


def _partition_of(row: JobRow) -> str:
    return queue_label(row.partitions[0] if row.partitions else "")


def _most_frequent(names: Iterable[str], most: int) -> set[str]:
    return {name for name, _ in Counter(names).most_common(most)}


def _capacity(overview: Overview, nodes: Sequence[NodeRow]) -> Iterator[Family]:
    states = Counter(str(row.node.state) for row in nodes)
    samples = tuple(Sample((str(state),), states[str(state)]) for state in NodeState)
    yield Family("cockpit_nodes", "Nodes by state", ("state",), samples)
    for name, words, value in (
        ("cockpit_cpus", "CPUs of all nodes", overview.cpus),
        ("cockpit_used_cpus", "CPUs that jobs hold", overview.used_cpus),
        ("cockpit_memory_bytes", "Memory of all nodes", overview.memory_mib * _MIB),
        ("cockpit_used_memory_bytes", "Memory that jobs hold", overview.used_memory_mib * _MIB),
    ):
        yield Family(name, words, (), (Sample((), value),))


def _cards(figures: Figures) -> Iterator[Family]:
    """Yield the cards by state, model and partition, and the stranded fraction of those that are free."""
    requests = known_requests(figures.jobs)
    models = _most_frequent((card.model for row in figures.nodes for card in row.node.cards), MOST_MODELS)
    partitions = figures.partitions[:MOST_QUEUES]
    cards: Counter[tuple[str, str]] = Counter()
    free: Counter[str] = Counter()
    stranded: Counter[str] = Counter()
    for row in figures.nodes:
        names = [queue_label(each.name) for each in partitions if _has_node(each, row)] or [ALL_NODES]
        for part in card_rows(row, requests):
            model = safe(part.card.model) if part.card.model in models else OTHER
            cards[model, part.state.name.lower()] += part.milli
            if part.state in {CardState.FREE, CardState.STRANDED}:
                for name in names:
                    free[name] += part.milli
                    stranded[name] += part.milli if part.state is CardState.STRANDED else 0
    states = [state.name.lower() for state in CardState]
    shown = tuple(
        Sample((model, state), cards[model, state] / WHOLE_CARD)
        for model in sorted({model for model, _ in cards})
        for state in states
    )
    yield Family(
        "cockpit_cards",
        "Cards by model and state; stranded: free, of no use to any known request",
        ("model", "state"),
        shown,
    )
    yield Family(
        "cockpit_stranded_fraction",
        "The part of a partition's free cards that no known request can use",
        ("partition",),
        tuple(Sample((name,), fraction) for name, fraction in _fractions(stranded, free)),
    )


def _fractions(parts: Mapping[str, int], wholes: Mapping[str, int]) -> list[tuple[str, float]]:
    return [(name, parts[name] / whole) for name, whole in sorted(wholes.items()) if whole]


def _has_node(partition: Partition, row: NodeRow) -> bool:
    everything = not partition.pools and not partition.nodes
    return everything or row.node.pool in partition.pools or row.node.name in partition.nodes
