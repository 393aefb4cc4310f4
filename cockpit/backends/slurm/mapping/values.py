"""Parses single values of Slurm's output. A value that is not set (`N/A`, `(null)`, `Unknown` …) becomes None."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from functools import lru_cache

from cockpit.model.attempt import ExitStatus
from cockpit.model.cluster import Tres
from cockpit.model.ids import Millis

NOTHING = frozenset({"", "N/A", "n/a", "(null)", "NONE", "None", "Unknown", "UNLIMITED", "INFINITE", "NOT_SET", "ALL"})
"""Words for values that are not set. Readers of fields in which one of them is a real value treat it themselves."""

_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)(?:i?B)?[cn]?", re.IGNORECASE)
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(?:(\d+):)?(\d+)(?:\.\d+)?")


def text(value: str) -> str:
    """Return the text, or an empty one if it is not set."""
    return "" if value in NOTHING else value


@lru_cache(maxsize=4096)
def number(value: str) -> int | None:
    """Parse a whole number; of `4-8` the first, and `12K` in Slurm's way of counting nodes and CPUs."""
    match = _AMOUNT.match(value)
    if match is None:
        return None
    return int(float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}.get(match[2].upper(), 1))


def decimal(value: str) -> float | None:
    """Parse a decimal number, also `inf`."""
    try:
        return float(value)
    except ValueError:
        return None


def memory_mib(value: str) -> int | None:
    """Parse an amount of memory, `64G`, `500M` or a plain number of MiB; return it in MiB."""
    match = _AMOUNT.match(value)
    return round(float(match[1]) * _UNITS[match[2].upper() or "M"]) if match else None


@lru_cache(maxsize=4096)
def seconds(value: str) -> int | None:
    """Parse a duration, `1-02:03:04`, `02:03:04`, `3:04` (min and s), `30 sec`, `1-02` (days and hours), in seconds."""
    match = _DURATION.match(value)
    if match is None:
        return None
    days, first, second, last = (int(each) if each else None for each in match.groups())
    if days is not None and first is None:
        return 3600 * (24 * days + (last or 0))
    if days is not None and second is None:
        return 86400 * days + 3600 * (first or 0) + 60 * (last or 0)
    hours, minutes = (first or 0, second) if second is not None else (0, first or 0)
    return 86400 * (days or 0) + 3600 * hours + 60 * minutes + (last or 0)


@lru_cache(maxsize=65536)
def moment(value: str, zone: tzinfo | None) -> Millis | None:
    """Parse a time, `2026-11-21T08:01:13` in the cluster's zone (None: this machine's), or seconds since 1970."""
    if value.isdigit():
        return Millis(1000 * int(value)) if int(value) else None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    aware = at if at.tzinfo is not None else (at.replace(tzinfo=zone) if zone is not None else at.astimezone())
    return Millis(int(aware.timestamp() * 1000))


@lru_cache(maxsize=16384)
def _tres(value: str) -> tuple[tuple[str, float], ...]:
    amounts = []
    for part in value.split(","):
        name, equals, amount = part.rpartition("=")
        figure = memory_mib(amount) if name == "mem" else decimal(amount) if equals else None
        if figure is None and equals:
            figure = number(amount)
        if figure is not None:
            amounts.append((name.lower(), float(figure)))
    return tuple(amounts)


def tres(value: str) -> Tres:
    """Parse TRES, `cpu=4,mem=8G,gres/gpu:a100=4`; memory in MiB. Entries that cannot be parsed are left out."""
    return dict(_tres(value))


def exit_status(value: str) -> ExitStatus:
    """Parse an exit status `3:0` (code:signal)."""
    code, _, signal = value.partition(":")
    killed = number(signal) if signal else None
    if killed:
        return ExitStatus(signal=killed)
    return ExitStatus(code=number(code) or 0)


@lru_cache(maxsize=4096)
def names(value: str) -> tuple[str, ...]:
    """Parse names, `a,b,c`; empty for ALL and values that are not set."""
    return tuple(each for each in text(value).split(",") if each)


def truth(value: str) -> bool:
    return value.upper() in {"YES", "1", "TRUE"}
