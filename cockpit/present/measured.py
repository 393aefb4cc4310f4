"""The measured use of a job's replicas beside their allocations: figures, bars, and charts over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model.spec import WHOLE_CARD
from cockpit.present import units
from cockpit.present.bars import Part, bar, sparkline
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, STRONG, Line, Span, line, small_table
from cockpit.present.width import pad

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.ids import JobId, Millis, NodeName
    from cockpit.model.jobdetail import JobDetail, ReplicaUse
    from cockpit.model.node import Allocation, Node
    from cockpit.model.usage import Sample

    Nodes = Callable[[NodeName], Node | None]

LABEL, USED, GIVEN, BAR, NOTE = 13, 6, 9, 10, 21
"""Widths of a line's parts in terminal columns; the chart gets what is left between the bar and the note."""
FEW: Final = 4
"""Largest number of replicas that are shown one by one; more are shown as a table."""
LEAST_CHART: Final = 8
UNKNOWN: Final = "n/a"
ROLE, TIGHT, NEARLY_ALL = "running", "tight", 0.9


class MeasuredUse(NamedTuple):
    """The measured use of one replica, and its allocation."""

    job: JobId
    use: ReplicaUse
    place: Allocation
    ran_ms: int
    """Milliseconds from its start to now, or to its end."""
    runs: bool

    @property
    def mean_busy(self) -> float | None:
        """Mean number of CPUs that the replica kept busy since its start; None: not measured."""
        return self.use.cpu_ms / self.ran_ms if self.use.cpu_ms is not None and self.ran_ms > 0 else None

    @property
    def busy(self) -> float | None:
        """Number of CPUs that the replica keeps busy now; after its end the mean."""
        # The newest sample; the mean since the start hides that a job has stopped working.
        last = self.use.course[-1].busy_milli if self.runs and self.use.course else None
        return self.mean_busy if last is None else last / 1000

    @property
    def memory_mib(self) -> int | None:
        """Memory in MiB that the replica uses now; after its end the most that it used."""
        return self.use.memory_mib if self.runs else self.use.peak_memory_mib

    @property
    def card_percent(self) -> int | None:
        """Percentage of its cards that is busy now; after its end the mean."""
        return self.use.card_percent if self.runs else self.use.mean_card_percent

    @property
    def card_memory_mib(self) -> int | None:
        """Card memory in MiB that the replica uses now; after its end the most that it used."""
        return self.use.card_memory_mib if self.runs else self.use.peak_card_memory_mib


def measured(detail: JobDetail, now: Millis) -> list[MeasuredUse]:
    """Return the measured replicas of the last attempt, in order of rank."""
    attempt = detail.job.attempt
    if attempt is None:
        return []
    places = attempt.places
    replicas = {each.rank: each for each in attempt.replicas}
    measurements = []
    for use in detail.use:
        replica = replicas[use.rank]
        began, ended = replica.started_at, replica.ended_at
        ran = (now if ended is None else ended) - began if began is not None else 0
        # A replica may have no end of its own although the job holds nothing any more.
        runs = ended is None and detail.row.holds
        measurements.append(MeasuredUse(detail.job.id, use, places[use.rank], max(ran, 0), runs))
    return measurements


def measured_lines(replicas: Sequence[MeasuredUse], columns: int, node: Nodes) -> Iterator[Line]:
    """Yield harmless lines in which the figures of all replicas are aligned. `node`: a function from a node's name to
    the known node."""
    runs = any(each.runs for each in replicas)
    yield line(Span(f"{INDENT}{'uses, as it is measured' if runs else 'used, as it was measured'}", STRONG))
    # Four blocks of lines fill a screen; more are compared better in a table.
    if len(replicas) > FEW:
        yield from _table(replicas)
        return
    for each in replicas:
        yield from _replica(each, columns, node, alone=len(replicas) == 1)


def why_cards_are_not_measured(place: Allocation, node: Nodes) -> str:
    """Return the words for why the cards' use is not measured."""
    # The driver counts a card as a whole: its figures include what others do on the same card.
    if any(part.milli < WHOLE_CARD for part in place.slices):
        return "not measured: a part of a card has no figures of its own"
    held = {part.card for part in place.slices}
    host = node(place.node)
    if host is not None and any(card.declared for card in host.cards if card.index in held):
        return "not measured: the card is only declared"
    return "not measured"


def _replica(each: MeasuredUse, columns: int, node: Nodes, *, alone: bool) -> Iterator[Line]:
    """Yield the lines of one replica; the replica is named where it is not `alone`."""
    use, place = each.use, each.place
    if not alone:
        yield line(Span(f"{INDENT}replica {place.rank} on {safe(place.node)}", MUTED))
    total = "" if use.cpu_ms is None else f"{units.duration(use.cpu_ms // 1000)} CPU time"
    busy = None if each.busy is None else f"{each.busy:.1f}"
    of_cpus = None if each.busy is None else each.busy / max(place.cpus, 1)
    yield _line("CPUs", busy, str(place.cpus), of_cpus, total, _chart(use, columns, _busy, place.cpus))
    # After the end the peak is the figure itself.
    peak = "" if use.peak_memory_mib is None or not each.runs else f"{units.memory(use.peak_memory_mib)} at most"
    memory, given = each.memory_mib, max(place.memory_mib, 1)
    yield _line(
        "memory" if each.runs else "memory most",
        None if memory is None else units.memory(memory),
        units.memory(given),
        None if memory is None else memory / given,
        peak,
        _chart(use, columns, lambda sample: sample.memory_mib, given),
        tight=True,
    )
    if place.slices:
        yield from _cards(each, columns, node)


def _cards(each: MeasuredUse, columns: int, node: Nodes) -> Iterator[Line]:
    """Yield the lines about the use of a replica's cards, or why it is not measured."""
    use, percent = each.use, each.card_percent
    # Not measured is not 0 %: an idle card would be a reason to complain.
    if percent is None and use.mean_card_percent is None:
        why = why_cards_are_not_measured(each.place, node)
        yield line(Span(f"{INDENT * 2}{'cards':<{LABEL}}", MUTED), Span(why, MUTED))
        return
    mean = f"mean {use.mean_card_percent} %, " if use.mean_card_percent is not None and each.runs else ""
    most = f"most {use.peak_card_percent} %" if use.peak_card_percent is not None else ""
    chart = _chart(use, columns, lambda sample: sample.card_percent, 100)
    busy = None if percent is None else f"{percent} %"
    label = "cards" if each.runs else "cards mean"
    yield _line(label, busy, "", None if percent is None else percent / 100, f"{mean}{most}", chart)
    memory, size = each.card_memory_mib, _card_memory(each.place, node)
    if memory is not None:
        peak = units.memory(use.peak_card_memory_mib or memory)
        part = memory / size if size else None
        text = units.memory(size) if size else ""
        note = f"{peak} at most" if each.runs else ""
        yield _line("card memory", units.memory(memory), text, part, note, "", tight=True)


def _card_memory(place: Allocation, node: Nodes) -> int:
    host = node(place.node)
    sizes = {card.index: card.memory_mib for card in host.cards} if host is not None else {}
    return sum(sizes.get(part.card, 0) for part in place.slices)


def _line(
    label: str, used: str | None, limit: str, part: float | None, note: str, chart: str, *, tight: bool = False
) -> Line:
    """Return a line with label, figure, bar and chart. `tight`: highlight a use of nearly all."""
    figure = f"{UNKNOWN if used is None else used:>{USED}}"
    of = f" of {limit}" if limit and used is not None else ""
    role = TIGHT if tight and part is not None and part >= NEARLY_ALL else ROLE
    # The use may exceed the allocation where no cgroup enforces it.
    filled = bar(min(part, 1.0), BAR, role) if part is not None else line(" " * BAR)
    shown = (Span(f"  {chart}", role),) if chart else ()
    left = line(Span(f"{INDENT * 2}{label:<{LABEL}}", MUTED), figure, Span(pad(of, GIVEN), MUTED))
    return (*left, *filled, Span(f"  {pad(note, NOTE) if chart else note}", MUTED), *shown)


def _chart(use: ReplicaUse, columns: int, figure: Callable[[Sample], float | None], most: float) -> str:
    """Return the chart of a figure over time, as wide as the rest of the line; empty where there is no room."""
    # What the line has besides the chart, with gaps of two columns and one column at the edge.
    room = columns - (2 * len(INDENT) + LABEL + USED + GIVEN + BAR + 2 + NOTE + 2 + 1)
    if room < LEAST_CHART or len(use.course) < 2:
        return ""
    parts: list[Part] = [(sample.lasted_ms, figure(sample)) for sample in use.course]
    return sparkline(parts, room, most)


def _busy(sample: Sample) -> float | None:
    return None if sample.busy_milli is None else sample.busy_milli / 1000


def _table(replicas: Sequence[MeasuredUse]) -> Iterator[Line]:
    titles = ("RANK", "NODE", "CPU TIME", "CPUS BUSY", "MEMORY", "MOST", "OF", "CARDS", "MEAN", "MOST")
    yield from small_table(titles, [_row(each) for each in replicas], right=range(2, len(titles)))


def _row(each: MeasuredUse) -> tuple[str, ...]:
    """Return the cells of one replica for the table."""
    use, place = each.use, each.place
    busy = UNKNOWN if each.busy is None else f"{each.busy:.1f} of {place.cpus}"
    return (
        str(place.rank),
        safe(place.node),
        UNKNOWN if use.cpu_ms is None else units.duration(use.cpu_ms // 1000),
        busy,
        *(UNKNOWN if each is None else units.memory(each) for each in (use.memory_mib, use.peak_memory_mib)),
        units.memory(place.memory_mib),
        *(
            UNKNOWN if each is None else f"{each} %"
            for each in (use.card_percent, use.mean_card_percent, use.peak_card_percent)
        ),
    )
