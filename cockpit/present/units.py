"""Quantities as people read and write them: durations, memory, cards, fractions, bars. M and G are binary."""

from __future__ import annotations

import re
from typing import Final

from cockpit.model.spec import WHOLE_CARD

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86_400

SECONDS_OF_UNIT: Final = {"d": DAY, "h": HOUR, "m": MINUTE, "s": 1}
MIB_OF_UNIT: Final = {"m": 1, "g": 1024, "t": 1024 * 1024}

BAR_STEPS: Final = " ▏▎▍▌▋▊▉▇"


def duration(seconds: int) -> str:
    """`0:07` minutes and seconds, `3:12:09` hours, `1-02:03:04` days, as Slurm writes elapsed time."""
    days, rest = divmod(max(seconds, 0), DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, left = divmod(rest, MINUTE)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{left:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def countdown(seconds: int) -> str:
    """Whole hours and minutes that are left: `3:59`; below a minute the seconds: `42 s`."""
    if seconds < MINUTE:
        return f"{max(seconds, 0)} s"
    return f"{seconds // HOUR}:{seconds % HOUR // MINUTE:02}"


def spoken(seconds: int) -> str:
    """A duration inside a sentence: `30 s`, `10 min`, `4 h`, `2 d 3 h`."""
    units = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount} {unit}")
    return " ".join(parts[:2]) or "0 s"


def memory(mib: int) -> str:
    """`512M`, `64G`, `1.5T`: the largest unit that needs at most one decimal."""
    for unit, size in (("T", 1024 * 1024), ("G", 1024)):
        if mib >= size:
            return f"{decimal(mib, size, digits=1)}{unit}"
    return f"{mib}M"


def cards(milli: int) -> int | float:
    """Thousandths as a number of cards: `2`, `0.5`."""
    return milli // WHOLE_CARD if milli % WHOLE_CARD == 0 else milli / WHOLE_CARD


def decimal(amount: int, unit: int, *, digits: int) -> str:
    """An amount in units, without trailing zeros."""
    return f"{amount / unit:.{digits}f}".rstrip("0").rstrip(".")


def counted(amount: int, one: str, many: str = "") -> str:
    """`1 card`, `4 cards`; `many` where the plural is not just an s."""
    return f"{amount} {one if amount == 1 else many or one + 's'}"


def fraction(used: str, total: str) -> str:
    return f"{used}/{total}"


def bar(part: float, columns: int) -> str:
    """A bar of so many columns for a part between 0 and 1, in eighths of a column."""
    eighths = round(min(max(part, 0.0), 1.0) * columns * 8)
    full, rest = divmod(eighths, 8)
    return (BAR_STEPS[8] * full + (BAR_STEPS[rest] if rest else "")).ljust(columns)


def parse_duration(text: str) -> int | None:
    """Seconds of `90`, `90s`, `10m`, `1h30m`, `2d`, `3:12` (hours and minutes), `3:12:09`, `1-02:03:04`; else None."""
    if text.isascii() and text.isdigit():
        return int(text)
    if re.fullmatch(r"(\d+[dhms])+", text, re.ASCII | re.IGNORECASE):
        return sum(int(n) * SECONDS_OF_UNIT[unit.lower()] for n, unit in re.findall(r"(\d+)([dhmsDHMS])", text))
    clock = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d)(?::(\d\d))?", text, re.ASCII)
    if clock is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
    return days * DAY + hours * HOUR + minutes * MINUTE + seconds


def parse_memory(text: str) -> int | None:
    """MiB of `512`, `512M`, `4G`, `1.5T` (also `4GiB`, `4GB`: binary all the same); None when it is none of these."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([mgt])(?:i?b)?)?", text, re.ASCII | re.IGNORECASE)
    if found is None:
        return None
    return round(float(found[1]) * MIB_OF_UNIT[(found[2] or "m").lower()])
