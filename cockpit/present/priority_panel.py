"""Texts of the Priority view: the legend, the weights that are tried out, and the panel about the job under the
cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.priority import Breakdown, FactorName
from cockpit.model.view import Priorities, PriorityRow
from cockpit.present import units
from cockpit.present.priority import figure, total_words
from cockpit.present.priority_columns import Figures, factor_text, id_text, moved
from cockpit.present.priority_parts import BETWEEN, SIGNS, amounts, swatch, weight_of
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, line, line_width, spread
from cockpit.present.width import pad

TALL: Final = 6
"""Least number of lines of a panel in which each factor has a line of its own."""
_WEIGHED: Final = frozenset(SIGNS) - {FactorName.SITE}
NAMED: Final = 3
"""Number of factors that a comparison of two jobs names."""


# The legend


class Detail(Enum):
    """Amount of text in the legend; the most detailed one that fits is shown."""

    WORDS = auto()
    """Full words and every weight."""
    WEIGHTS = auto()
    """Short words and every weight."""
    CHANGES = auto()
    """Only the weights that are tried out."""
    NAMES = auto()


def legend(
    weights: Weights,
    before: Weights | None,
    factors: Sequence[FactorName],
    chosen: FactorName | None,
    columns: int,
    *,
    letters: bool,
) -> Line:
    """Return each factor as it looks in the bars, with its weight and its former weight. The chosen factor is
    highlighted."""
    # If even the shortest form is too wide, it is cut at the edge.
    for detail in Detail:
        parts = [_entry(name, weights, before, detail, letters=letters, chosen=name is chosen) for name in factors]
        shown = (Span(" "), *(span for part in parts for span in part))
        if line_width(shown) <= columns:
            break
    return shown


def _entry(
    name: FactorName, weights: Weights, before: Weights | None, detail: Detail, *, letters: bool, chosen: bool
) -> Line:
    """Return the legend's entry of one factor; weights that are tried out are shown with their former value."""
    sign, weight = SIGNS[name], units.grouped(weight_of(weights, name))
    was = units.grouped(weight_of(before, name)) if before is not None else weight
    changed = was != weight and detail is not Detail.NAMES
    figures = f" {was} → {weight}" if changed else f" {weight}" * (detail in {Detail.WORDS, Detail.WEIGHTS})
    word = sign.word if detail is Detail.WORDS else sign.title.lower()
    label = Span(f" {word}", ACCENT if chosen else MUTED)
    return (swatch(name, letters=letters), label, Span(figures, STRONG if changed else MUTED), Span("  "))


def trial_words(rows: Iterable[PriorityRow]) -> str:
    """Return the number of jobs that the weights tried out move: `12 up, 9 down`."""
    # Once for each job, though it may have a row in several partitions.
    places = {row.job or (row.position, row.partition): moved(row) for row in rows}
    up, down = sum(rise > 0 for rise in places.values()), sum(rise < 0 for rise in places.values())
    return f"{up} up, {down} down" if up or down else "the same order"


# The panel


def priority_answer(
    row: PriorityRow, queue: Sequence[PriorityRow], columns: int, lines: int, *, tried: bool, offers: Line = ()
) -> Iterator[Line]:
    """Yield harmless lines about a row of `queue`, whose rows are in the cluster's order."""
    yield spread(_head(row, queue, tried=tried), offers, columns)
    if row.breakdown is None or row.position is None:
        return
    yield _beside(row, queue)
    counting = [(name, amount) for name, amount in amounts(row.breakdown).items() if amount.contribution]
    if lines >= TALL:
        yield from _each_factor(row.breakdown)
    elif counting:
        parts = (
            f"{SIGNS[name].word} {figure(amount.contribution)} of {units.grouped(amount.weight)}"
            for name, amount in sorted(counting, key=lambda each: -each[1].contribution)
        )
        yield line(Span(f"{INDENT}made of ", MUTED), " · ".join(parts), _nice(row.breakdown))


def _head(row: PriorityRow, queue: Sequence[PriorityRow], *, tried: bool) -> Line:
    """Return the panel's first line: the job, its place and its priority."""
    if row.breakdown is None:
        return line(Span("Another user's job", ACCENT), Span("  is shown with its place only.", STRONG))
    name = (Span(f"{id_text(row)} ", MUTED), Span(safe(row.name), ACCENT))
    if row.position is None:
        return (*name, Span("  is held: it is not considered until it is released.", "held"))
    # The largest place and not the number of rows: a job has a row in each of its partitions.
    of = max((each.position or 0 for each in queue), default=0)
    if tried and row.position_before is not None:
        return (*name, Span(f"  {_moves(row)} of {of}", STRONG), *_totals(row))
    return (*name, Span(f"  is at place {row.position} of {of} with {total_words(row.breakdown)}.", STRONG))


def _moves(row: PriorityRow) -> str:
    rise = moved(row)
    if not rise:
        return f"would stay at place {row.position}"
    return f"would go {'up' if rise > 0 else 'down'} by {abs(rise)}, from place {row.position_before} to {row.position}"


def _totals(row: PriorityRow) -> Line:
    assert row.breakdown is not None
    before = f"{units.grouped(row.total_before)} → " if row.total_before is not None else ""
    return line(Span(f"   priority {before}", MUTED), Span(total_words(row.breakdown), STRONG))


def _beside(row: PriorityRow, queue: Sequence[PriorityRow]) -> Line:
    """Return the line about the job just ahead: the difference and the factors that cause it. For the first job: the
    one behind."""
    # The neighbour is another job that counts: not a held one, nor the same job in another partition.
    ahead = _neighbour(row, queue, reversed(range(_index(row, queue))))
    if ahead is not None:
        return line(Span(f"{INDENT}behind  ", MUTED), *_gap(row, ahead))
    behind = _neighbour(row, queue, range(_index(row, queue) + 1, len(queue)))
    if behind is None:
        return line(Span(f"{INDENT}first   ", MUTED), "no other job waits")
    return line(Span(f"{INDENT}first   ", MUTED), "ahead of ", *_gap(row, behind))


def _index(row: PriorityRow, queue: Sequence[PriorityRow]) -> int:
    return next((at for at, each in enumerate(queue) if each is row or each == row), 0)


def _neighbour(row: PriorityRow, queue: Sequence[PriorityRow], places: Iterable[int]) -> PriorityRow | None:
    others = (queue[at] for at in places)
    return next((each for each in others if each.position is not None and (not each.job or each.job != row.job)), None)


def _gap(row: PriorityRow, other: PriorityRow) -> Line:
    if other.breakdown is None or row.breakdown is None:
        return line("a job that you may not see")
    who = (Span(f"{id_text(other)} ", MUTED), Span(safe(other.name)), Span(f" ({safe(other.user)}) ", MUTED))
    apart = other.breakdown.total - row.breakdown.total
    # The order may contradict the figures, as where partitions have tiers: then figures would explain nothing.
    first = (other.position or 0) < (row.position or 0)
    if not apart or (apart > 0) is not first:
        return (*who, Span(_tie(row, other, first=first)))
    return (*who, Span(f"by {units.grouped(abs(apart))}", STRONG), *_differences(row.breakdown, other.breakdown))


def _tie(row: PriorityRow, other: PriorityRow, *, first: bool) -> str:
    """Return why a job is ahead of or behind another although the figures do not decide it."""
    if set(other.partition.split(BETWEEN)).isdisjoint(row.partition.split(BETWEEN)):
        return f"whose queue {safe(other.partition)} comes {'first' if first else 'later'}"
    return f"which has just as much and came {'earlier' if first else 'later'}"


def _differences(mine: Breakdown, theirs: Breakdown) -> Iterator[Span]:
    """Yield the factors by which the first job is ahead, the largest first, then those in which the other has more."""
    if mine.source or theirs.source:
        yield Span(f": {safe(mine.source)} against {safe(theirs.source)}")
        return
    if mine.direct or theirs.direct:
        yield Span(": set by an administrator")
        return
    own, other = amounts(mine), amounts(theirs)
    # Factors that both have; nice counts against a job, hence the other way round.
    gaps = {name: own[name].contribution - other[name].contribution for name in own if name in other}
    words: dict[str, float] = {SIGNS[name].word: gap for name, gap in gaps.items()} | {"nice": theirs.nice - mine.nice}
    # What decides comes first, and what speaks against it is not hidden.
    sign = 1 if mine.total > theirs.total else -1
    largest = sorted(((word, gap) for word, gap in words.items() if round(gap)), key=lambda each: -abs(each[1]))
    deciding = [_signed(word, gap) for word, gap in largest if gap * sign > 0]
    against = [_signed(word, gap) for word, gap in largest if gap * sign < 0]
    yield Span(f": {', '.join(deciding[:NAMED])}" if deciding else "")
    yield Span(f"; in spite of {', '.join(against[:NAMED])}" if against else "", MUTED)


def _signed(word: str, gap: float) -> str:
    return f"{word} {'+' if gap > 0 else ''}{figure(gap)}"


def _each_factor(breakdown: Breakdown) -> Iterator[Line]:
    """Yield a line for each factor: `fair share  11 800 = 0.590 × 20 000   the less its share was used`."""
    known = amounts(breakdown).items()
    counting = [(name, amount) for name, amount in known if amount.contribution or (amount.weight and name in _WEIGHED)]
    counting.sort(key=lambda each: -each[1].contribution)
    widths = [max((len(figure(each.contribution)) for _, each in counting), default=0)]
    for name, amount in counting:
        sign = SIGNS[name]
        raw, weight = factor_text(amount, Figures.RAW), factor_text(amount, Figures.WEIGHT)
        product = f" = {raw} × {weight}" if name is not FactorName.SITE else ""
        yield line(
            Span(f"{INDENT}{pad(sign.word, 12)}", sign.role),
            Span(f"{figure(amount.contribution):>{widths[0]}}"),
            Span(f"{product:<22}", MUTED),
            Span(f"  {sign.means}", MUTED),
        )
    if breakdown.nice:
        yield line(Span(f"{INDENT}{pad('nice', 12)}", "nice"), Span(figure(-breakdown.nice)))


def _nice(breakdown: Breakdown) -> Span:
    return Span(f" · nice {figure(-breakdown.nice)}" if breakdown.nice else "", MUTED)


# Where there are no rows


def nothing_to_rank(priorities: Priorities | None, hidden: int, keys: Mapping[str, str], *, tried: bool) -> list[Line]:
    """Return the lines that replace an empty list; empty where rows are shown."""
    if priorities is None:
        return [line(), line(Span("   counting …", MUTED))]
    # With tried weights even such a cluster has priorities to show.
    if priorities.kind is PriorityKind.BASIC and not tried:
        return _in_order(keys, bool(priorities.rows))
    if not priorities.rows:
        return [
            line(),
            line(Span("   No jobs are queued.", STRONG)),
            line(),
            line(Span("   "), *_key(keys, "new"), "  submit one"),
        ]
    if hidden and hidden == len(priorities.rows):
        sentence = f"{units.counted(hidden, 'row')} {'is' if hidden == 1 else 'are'} hidden."
        return [
            line(),
            line(Span("   No queued job matches.", STRONG), Span(f" {sentence}", MUTED)),
            line(),
            line(Span("   "), *_key(keys, "back"), "  show them all"),
        ]
    return []


def _in_order(keys: Mapping[str, str], queued: bool) -> list[Line]:
    """Return the lines of the Priority view under order of submission, where jobs have no priority."""
    lines = [
        line(),
        line(Span("   This cluster serves in order of submission (priority/basic): jobs have no priority.", STRONG)),
        line(),
        line(Span("   cockpit cluster init", ACCENT), "   writes a cluster.toml with the usual weights"),
        line(Span("   docs/scheduling.md  ", ACCENT), "   says what each factor is, and what to weigh"),
    ]
    if queued:
        lines.append(
            line(Span("   "), *_key(keys, "weights"), "                      try weights out on the jobs that wait now")
        )
    return lines


def _key(keys: Mapping[str, str], action: str) -> Line:
    return line(Span(keys.get(action, f":{action}"), ACCENT))
