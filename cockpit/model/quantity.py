"""Sizes and times as people write them. A str answer is the error: a clause that says what was expected."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import TypeGuard

from cockpit.model.text import visible

MEMORY_PATTERN = r"^\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(?:([KMGTPkmgtp])[iI]?)?[bB]?\s*$"
DURATION_UNITS_PATTERN = r"^\s*(?:[0-9]{1,12}(?:\.[0-9]{1,9})?\s*[wdhmsWDHMS]\s*){1,5}$"
DURATION_CLOCK_PATTERN = r"^\s*(?:[0-9]{1,9}-[0-9]{1,2}(?::[0-9]{1,2}){0,2}|[0-9]{1,9}(?::[0-9]{1,2}){0,2})\s*$"

_LONGEST = 64
_KIB_PER_UNIT = {"K": 1, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}
_SECONDS_PER_UNIT = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}

_MEMORY = re.compile(MEMORY_PATTERN)
_UNITS = re.compile(DURATION_UNITS_PATTERN)
_UNIT = re.compile(r"([0-9.]+)\s*([wdhms])")
_CLOCK = re.compile(DURATION_CLOCK_PATTERN)


def parse_memory(value: object) -> int | str:
    """Return the MiB of `512M`, `2G`, `1.5Gi`, `1T`, or what is wrong.

    K, M, G, T and P are binary, as in Slurm, and so are MB and MiB. A number without a unit is MiB. Fractions of a MiB
    are rounded up.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    mib = _memory_mib(value) if _may_be_one(value) else None
    return _not_a("size", value, "512M, 2G, 1.5G or a number of MiB") if mib is None else mib


def parse_duration(value: object) -> int | str:
    """Return the seconds of `90s`, `10m`, `1h30m`, `2d`, or of a time limit of Slurm, or what is wrong.

    Slurm's are `minutes:seconds`, `hours:minutes:seconds`, `days-hours`, `days-hours:minutes` and
    `days-hours:minutes:seconds`. Other than in Slurm, a number without a unit is seconds.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    seconds = _duration_seconds(value) if _may_be_one(value) else None
    return _not_a("time", value, "90s, 10m, 1h30m, 2-12:00:00 or a number of seconds") if seconds is None else seconds


def memory_text(mib: int) -> str:
    """Return the shortest text that `parse_memory` reads back as `mib`."""
    # The largest unit that divides the size exactly; others would need a fraction.
    for unit, size in (("T", 1024**2), ("G", 1024)):
        if mib and mib % size == 0:
            return f"{mib // size}{unit}"
    return f"{mib}M"


def duration_text(seconds: int) -> str:
    """Return a text that `parse_duration` reads back as `seconds`: `1d12h`, `10m`, `0s`."""
    parts = []
    rest = seconds
    for unit in "dhms":
        # Without weeks: `7d` is easier to compare with a limit of days than `1w`.
        count, rest = divmod(rest, _SECONDS_PER_UNIT[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _may_be_one(value: object) -> TypeGuard[str]:
    """Return whether it is a short text: a longer one is no quantity, and would only keep the patterns busy."""
    return isinstance(value, str) and value.isascii() and len(value) <= _LONGEST


@lru_cache(maxsize=256)
def _memory_mib(text: str) -> int | None:
    match = _MEMORY.match(text)
    if match is None:
        return None
    number, unit = match.groups()
    # Fractions, not floats: 0.1 has no exact double, and rounding up would add a MiB to an exact size.
    return math.ceil(Fraction(number) * _KIB_PER_UNIT[(unit or "M").upper()] / 1024)


@lru_cache(maxsize=256)
def _duration_seconds(text: str) -> int | None:
    if _UNITS.match(text):
        return _units_seconds(text.lower())
    return _clock_seconds(text.strip()) if _CLOCK.match(text) else None


def _units_seconds(text: str) -> int:
    return math.ceil(sum(Fraction(number) * _SECONDS_PER_UNIT[unit] for number, unit in _UNIT.findall(text)))


def _clock_seconds(text: str) -> int | None:
    """Return the seconds of a clock time; None where a part is too large: minutes and seconds from 60, hours from 24
    after days. Only the first part may be larger."""
    days, dash, rest = text.rpartition("-")
    numbers = [int(part) for part in rest.split(":")]
    if dash:
        # After days the first number is hours: Slurm reads `1-12` as a day and twelve hours.
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        fits = hours < 24 and minutes < 60 and seconds < 60
    else:
        # Without days the last number is seconds: `90:00` is ninety minutes, as in Slurm.
        hours, minutes, seconds = [0, 0, *numbers][-3:]
        fits = all(number < 60 for number in numbers[1:])
    return int(days or 0) * 86_400 + hours * 3600 + minutes * 60 + seconds if fits else None


def _not_a(kind: str, value: object, expected: str) -> str:
    shown = f'"{visible(value)}"' if isinstance(value, str) else visible(str(value))
    return f"{shown} is no {kind}; write {expected}"
