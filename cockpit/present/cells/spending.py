"""The list below the chart of what was held: a row for each name, and the panel about the one under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cockpit.present.accounting import By, Held, card_hours, hours
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING
from cockpit.present.layout import fitting
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.sparkline import sparkline
from cockpit.present.spending_chart import MONTHS, Sign, amounts, in_cards
from cockpit.present.units import counted, tenths

if TYPE_CHECKING:
    from datetime import datetime

BAR_COLUMNS = 12
MARK = "■ "
INDENT = "  "


class Shown(NamedTuple):
    """A row with what its cells depend on."""

    row: Held
    sign: Sign
    cards: bool
    """Card-hours are drawn, else CPU-hours."""
    letters: bool
    """Colours are not seen."""


class SpendingColumn(NamedTuple):
    """One column of the list."""

    id: str
    title: str
    width: int
    cell: Callable[[Shown, int], Line]
    """Of so many columns."""
    right: bool = False
    grows: int = 0
    most: int = 0
    need: int = 0


def _name(shown: Shown, _: int) -> Line:
    mark = f"{shown.sign.letter} " if shown.letters else MARK
    return line(Span(mark, shown.sign.role), Span(safe(shown.row.name), STRONG))


def _card_hours(shown: Shown, _: int) -> Line:
    amount = card_hours(sum(shown.row.card_milli_ms))
    return line(tenths(amount) if amount else Span(NOTHING, MUTED))


def _share(shown: Shown, _: int) -> Line:
    share = shown.row.share
    return (Span(f"{share:>5.1f}% "), *bar(share / 100, BAR_COLUMNS, shown.sign.role))


def _cpu_hours(shown: Shown, _: int) -> Line:
    return line(Span(tenths(hours(sum(shown.row.cpu_ms))), MUTED))


def _course(shown: Shown, columns: int) -> Line:
    figures = amounts(shown.row, cards=shown.cards)
    room = min(columns, len(figures) * max(1, columns // max(len(figures), 1)))
    return line(Span(sparkline([(1.0, each) for each in figures], room, max(figures, default=0.0)), shown.sign.role))


COLUMNS = (
    SpendingColumn("name", "NAME", 14, _name, grows=1, most=26),
    SpendingColumn("card_hours", "CARD-HOURS", 10, _card_hours, right=True),
    SpendingColumn("share", "SHARE", 7 + BAR_COLUMNS, _share),
    SpendingColumn("cpu_hours", "CPU-HOURS", 10, _cpu_hours, right=True),
    SpendingColumn("by_day", "BY DAY", 10, _course, grows=2),
)


@lru_cache(maxsize=16)
def laid_out(total: int) -> tuple[tuple[SpendingColumn, int], ...]:
    """The columns that fit, with their widths."""
    return tuple(fitting(COLUMNS, total))


def spending_title(by: By, days: int, rows: Sequence[Held]) -> str:
    """`12 345.6 card-hours in the last 30 days, by user`."""
    cards = in_cards(rows)
    total = sum(sum(amounts(row, cards=cards)) for row in rows)
    return f"{tenths(total)} {'card' if cards else 'CPU'}-hours in the last {counted(days, 'day')}, by {by}"


def spending_answer(
    row: Held, begins: Sequence[datetime], by: By, keys: Mapping[str, str], columns: int, *, cards: bool
) -> Iterator[Line]:
    """Harmless lines about one name. `begins`: of each stretch; `cards`: card-hours are drawn, else CPU-hours."""
    unit, figures = "card-hours" if cards else "CPU-hours", amounts(row, cards=cards)
    total = sum(figures)
    held = f"  held {tenths(total)} {unit}, {row.share:.1f}% of all."
    left = line(Span(safe(row.name), ACCENT), Span(held, STRONG))
    offers = [(keys.get(name, f":{name}"), word) for name, word in (("by", "by"), ("days", "days"))]
    yield spread(left, tuple(span for key, word in offers for span in _offer(key, word)), columns)
    most = max(range(len(figures)), key=lambda place: figures[place])
    day = f"{begins[most].day} {MONTHS[begins[most].month - 1]}"
    mean = tenths(total / len(figures))
    yield _labelled(
        "a day", f"{mean} on average; most on {day}, {tenths(figures[most])}; today so far {tenths(figures[-1])}"
    )
    yield _labelled("CPUs", f"{tenths(hours(sum(row.cpu_ms)))} CPU-hours held")
    yield _labelled("same", f"cockpit accounting hours --days {len(figures)} --by {by}")


def _offer(key: str, word: str) -> Line:
    return line(Span(f"  {key}", ACCENT), Span(f" {word}", MUTED))


def _labelled(label: str, words: str) -> Line:
    return line(Span(f"{INDENT}{label:<10}", MUTED), words)
