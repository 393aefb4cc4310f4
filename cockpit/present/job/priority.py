"""The Priority tab of a job's page: its place in the queue, a bar of its priority's parts, and how each part is
computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.model.priority import FactorName
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.job.answer import ahead_of_it
from cockpit.present.priority import IN_ORDER, factor_word, figure, says_something, total_words
from cockpit.present.priority_parts import NICE, SIGNS, added, stacked, swatch
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, STRONG, Line, Span, line
from cockpit.present.width import pad, widest

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.priority import Breakdown
    from cockpit.present.job.answer import PanelContext

MOST_COLUMNS: Final = 100
"""Largest width of the bar in terminal columns; a longer bar cannot be read at a glance."""
PART_COLUMNS: Final = 20
WAITS_NO_LONGER: Final = "It waits no longer: a priority counts only among jobs that wait."
HELD: Final = "It is held, and not considered until it is released."
BY_CLASS: Final = (
    "This cluster computes no priorities: the number is the value of a class, and of equal ones the oldest is first."
)
SET: Final = "An administrator set it: its factors do not count."


def priority_tab(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield harmless lines: one bar and one table for each queue in which the job waits."""
    if not detail.row.queued:
        yield line(Span(INDENT + WAITS_NO_LONGER, MUTED))
        return
    if detail.explanation is not None and detail.explanation.place is not None:
        place = str(detail.explanation.place)
        yield line(Span(f"{INDENT}place ", MUTED), Span(place, STRONG), Span(" in the queue", MUTED))
        if ahead := tuple(ahead_of_it(detail.explanation, panel, INDENT)):
            yield ahead
    breakdowns = [each for each in detail.priority if says_something(each)]
    if not breakdowns:
        yield line(Span(INDENT + (HELD if detail.job.held_by else IN_ORDER), MUTED))
    for breakdown in breakdowns:
        yield line()
        yield from _made_of(breakdown, panel)


def _made_of(breakdown: Breakdown, panel: PanelContext) -> Iterator[Line]:
    """Yield the priority in one queue: its total, its bar and its table."""
    where = Span(f" in {safe(breakdown.partition)}" if breakdown.partition else "", MUTED)
    yield line(Span(f"{INDENT}priority ", MUTED), Span(total_words(breakdown), STRONG), where)
    if breakdown.direct or breakdown.source:
        yield line(Span(INDENT + (BY_CLASS if breakdown.source else SET), MUTED))
        return
    # The whole bar is this priority: parts are compared with each other, not with other jobs.
    columns = min(panel.columns - 2 * len(INDENT), MOST_COLUMNS)
    yield (Span(INDENT), *stacked(breakdown, added(breakdown), columns, letters=panel.letters))
    yield line()
    yield from _table(breakdown, panel)


def _table(breakdown: Breakdown, panel: PanelContext) -> Iterator[Line]:
    """Yield the table of factors, the largest contribution first, including weighted factors that add nothing: `▆ fair
    share  0.59 × 20 000 = 11 800 ━━━━`."""
    counting = (
        # A factor with a weight that adds nothing answers why the priority is low. The site factor has no weight.
        part
        for part in breakdown.parts
        if part.contribution or (part.weight and part.name is not FactorName.SITE)
    )
    parts = sorted(counting, key=lambda part: -part.contribution)
    nice = [("", "", figure(-breakdown.nice))] if breakdown.nice else []
    products = [(f"{part.raw:.4f}", units.grouped(part.weight), figure(part.contribution)) for part in parts] + nice
    total = ("", "", units.grouped(breakdown.total))
    words = widest([*map(factor_word, parts), "FACTOR", NICE, "total"])
    sizes = [
        widest([title, *(each[n] for each in (*products, total))]) for n, title in enumerate(("RAW", "WEIGHT", "ADDS"))
    ]
    yield line(Span(f"{INDENT}  {pad('FACTOR', words)}  {_columns(('RAW', 'WEIGHT', 'ADDS'), sizes, '   ')}", MUTED))
    largest = max((part.contribution for part in parts), default=0) or 1
    for part, product in zip(parts, products, strict=False):
        sign = swatch(part.name, letters=panel.letters)
        length = bar(max(part.contribution, 0) / largest, PART_COLUMNS, SIGNS[part.name].role)
        head = Span(f" {pad(factor_word(part), words)}  ", MUTED)
        yield (Span(INDENT), sign, head, Span(_columns(product, sizes, " × ", " = ")), Span(INDENT), *length)
    for word, product in (*((NICE, each) for each in nice), ("total", total)):
        yield line(Span(f"{INDENT}  {pad(word, words)}  ", MUTED), Span(_columns(product, sizes, "   "), STRONG))


def _columns(cells: tuple[str, str, str], sizes: list[int], first: str, second: str = "   ") -> str:
    raw, weight, adds = (cell.rjust(size) for cell, size in zip(cells, sizes, strict=True))
    return f"{raw}{first}{weight}{second}{adds}"
