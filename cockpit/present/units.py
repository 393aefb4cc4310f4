"""Quantities as people read them: durations, memory, cards, fractions, bars. `model.quantity` parses what they
write."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cockpit.model.spec import NO_LIMIT_SECONDS, WHOLE_CARD

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86_400

_SECONDS_LEFT: Final = [f":{seconds:02}" for seconds in range(60)]

FULL, HALF = "━", "╸"
"""Signs of a bar's full and half cells, of the same height as the dots after them."""


def limit(seconds: int) -> str:
    """Return a time limit as `duration` does, or `no limit`."""
    return duration(seconds) if seconds < NO_LIMIT_SECONDS else "no limit"


def duration(seconds: int) -> str:
    """Return a duration as Slurm writes elapsed time: `0:07` minutes and seconds, `3:12:09` hours, `1-02:03:04`
    days."""
    minutes, left = divmod(max(seconds, 0), MINUTE)
    return _minutes(minutes) + _SECONDS_LEFT[left]


@lru_cache(maxsize=16_384)
def _minutes(minutes: int) -> str:
    """Return the part of a duration before the seconds, cached: a hundred thousand jobs have few different minutes."""
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}" if hours else f"{minutes}"


def countdown(seconds: int) -> str:
    """Return the time left in hours and minutes: `3:59`; below a minute in seconds: `42 s`."""
    if seconds < MINUTE:
        return f"{max(seconds, 0)} s"
    return f"{seconds // HOUR}:{seconds % HOUR // MINUTE:02}"


def spoken(seconds: int) -> str:
    """Return a duration for a sentence: `30 s`, `10 min`, `4 h`, `2 d 3 h`."""
    units = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2]) or "0 s"


def age(seconds: int) -> str:
    """Return a duration for a column, only its largest unit: `2 s`, `17 h`, `3 d`."""
    return " ".join(spoken(seconds).split(" ")[:2])


def memory(mib: int) -> str:
    """Return memory in the largest unit that needs at most one decimal: `512M`, `64G`, `1.5T`."""
    # Binary units under the letters of Slurm, which also counts 1 G as 1024 M.
    for unit, size in (("T", 1024 * 1024), ("G", 1024)):
        if mib >= size:
            return f"{decimal(mib, size, digits=1)}{unit}"
    return f"{mib}M"


def size(amount: int) -> str:
    """Return bytes in binary units with at most one decimal: `120 B`, `3.5K`, `12M`, `1.2G`."""
    if amount >= 1 << 20:
        return memory(amount >> 20)
    return f"{decimal(amount, 1024, digits=1)}K" if amount >= 1024 else f"{amount} B"


def cards(milli: int) -> int | float:
    """Return thousandths as a number of cards: `2`, `0.5`."""
    return milli // WHOLE_CARD if milli % WHOLE_CARD == 0 else milli / WHOLE_CARD


def counted_cards(milli: int, models: str = "") -> str:
    """Return thousandths of cards for a sentence: `1 card`, `0.5 card`, `0 cards`; `models` replaces the word card."""
    return f"{cards(milli)} {models or ('card' if 0 < milli <= WHOLE_CARD else 'cards')}"


def decimal(amount: int, unit: int, *, digits: int) -> str:
    """Return an amount in units, without trailing zeros."""
    text = f"{amount / unit:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def grouped(number: float) -> str:
    """Return a large figure for reading, rounded: `17 450`."""
    return f"{number:,.0f}".replace(",", " ")


def tenths(number: float) -> str:
    """Return a figure with one decimal: `1 234.5`; small figures above 0 differ from 0: `0.003`, `<0.001`."""
    # With one decimal it would be 0.0, as if there were nothing.
    if 0 < number < 0.05:
        return f"{number:.1g}" if number >= 0.001 else "<0.001"
    return f"{number:,.1f}".replace(",", " ")


def counted(amount: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 card`, `4 cards`; `many` is a plural that is not formed with s."""
    return f"{amount} {one if amount == 1 else many or one + 's'}"


def fraction(used: str, total: str) -> str:
    return f"{used}/{total}"


def bar(part: float, columns: int) -> str:
    """Return a bar of `columns` cells for a part between 0 and 1, in halves of a cell."""
    # Clamped: a measured use may exceed what was allocated.
    full, rest = divmod(round(min(max(part, 0.0), 1.0) * columns * 2), 2)
    return (FULL * full + HALF * rest).ljust(columns)
