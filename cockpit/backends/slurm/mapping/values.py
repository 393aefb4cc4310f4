"""Parses single values of Slurm's output: times, amounts, lists of hosts (`n[1-3,07],login`) and of numbers, job ids.

A value that is not set (`N/A`, `(null)`, `Unknown` …) becomes None. Each task of an array has one id in cockpit, which
stays the same from its wait to its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo
from functools import lru_cache

from cockpit.model.attempt import ExitStatus
from cockpit.model.cluster import Tres
from cockpit.model.ids import JobId, Millis, NodeName, job_words, task_id, task_of

NOTHING = frozenset({"", "N/A", "n/a", "(null)", "NONE", "None", "Unknown", "UNLIMITED", "INFINITE", "NOT_SET", "ALL"})
"""Words for values that are not set. Readers of fields in which one of them is a real value treat it themselves."""

_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
# Behind the unit: `iB` or `B`, and sacct's `c` or `n` (per CPU, per node), which ReqMem had before Slurm 21.08.
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)(?:i?B)?[cn]?", re.IGNORECASE)
# Groups: days before a dash, then one or two figures with colons, then the last figure. `seconds` decides what they
# count.
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
    # squeue shortens large counts as it does sizes, by 1024 and not by 1000.
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
    # A plain number is MiB, the unit of RealMemory and MinMemory.
    return round(float(match[1]) * _UNITS[match[2].upper() or "M"]) if match else None


@lru_cache(maxsize=4096)
def seconds(value: str) -> int | None:
    """Parse a duration, `1-02:03:04`, `02:03:04`, `3:04` (min and s), `30 sec`, `1-02` (days and hours), in seconds."""
    match = _DURATION.match(value)
    if match is None:
        return None
    # sbatch(1), --time: behind days the figures begin with hours (`1-02`, `1-02:03`), without days they end with
    # seconds (`3:04` is minutes and seconds).
    days, first, second = (int(each) if each else None for each in match.groups()[:3])
    last = int(match[4])
    if days is not None and first is None:
        return 3600 * (24 * days + last)
    if days is not None and second is None:
        return 86400 * days + 3600 * (first or 0) + 60 * last
    hours, minutes = (first or 0, second) if second is not None else (0, first or 0)
    return 86400 * (days or 0) + 3600 * hours + 60 * minutes + last


@lru_cache(maxsize=65536)
def moment(value: str, zone: tzinfo | None) -> Millis | None:
    """Parse a time, `2026-11-21T08:01:13` in the cluster's zone (None: this machine's), or seconds since 1970."""
    if value.isdigit():
        # Records of slurmrestd have times so; 0 is a time that is not set.
        return Millis(1000 * int(value)) if int(value) else None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    # Slurm's commands print local times without a zone. Commands that read run with TZ=UTC (`wire`), hence `zone`.
    aware = at if at.tzinfo is not None else (at.replace(tzinfo=zone) if zone is not None else at.astimezone())
    return Millis(int(aware.timestamp() * 1000))


@lru_cache(maxsize=16384)
def _tres(value: str) -> tuple[tuple[str, float], ...]:
    """Return the amounts of a list of TRES, memory in MiB."""
    amounts = []
    for part in value.split(","):
        name, equals, amount = part.rpartition("=")
        figure = memory_mib(amount) if name == "mem" else decimal(amount) if equals else None
        # Counts of licences or CPUs may be shortened, too: `cpu=12K`.
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
    # sacct and scontrol print the signal as 0 where the program ended by itself.
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


MOST = 1 << 16
"""The largest number of names that Slurm itself expands from one list."""
_PIECE = re.compile(r"([^,\[]*(?:\[[^\]]*\][^,\[]*)*)(?:,|$)")
_RANGE = re.compile(r"\[([^\]]*)\]")


@lru_cache(maxsize=4096)
def hosts(value: str) -> tuple[NodeName, ...]:
    """Return all names in order, at most `MOST`."""
    names: list[NodeName] = []
    for piece in filter(None, _PIECE.findall(value)):
        # Stop here rather than cut afterwards: `n[0-99999][0-99999]` of a damaged answer would fill the memory first.
        for name in _expand_hosts(piece):
            if len(names) == MOST:
                return tuple(names)
            names.append(NodeName(name))
    return tuple(names)


def _expand_hosts(piece: str) -> Iterator[str]:
    """Yield the hosts of one piece of a list, such as `rack[0-1]n[1-4]`."""
    # Host names may have several brackets, `rack[0-1]n[1-4]`; the last one counts fastest, as in Slurm.
    match = _RANGE.search(piece)
    if match is None:
        yield piece
        return
    for each in _padded_numbers(match[1]):
        for rest in _expand_hosts(piece[match.end() :]):
            yield piece[: match.start()] + each + rest


def _padded_numbers(ranges: str) -> Iterator[str]:
    """Yield the numbers of ranges, with leading zeros; `MOST` bounds each range."""
    for part in ranges.split(","):
        low, dash, high = part.partition("-")
        if not dash or not (low.isdigit() and high.isdigit()):
            yield part
            continue
        for each in range(int(low), min(int(high), int(low) + MOST) + 1):
            # The first number of a range has the width of all: `n[08-10]` is n08, n09, n10.
            yield str(each).zfill(len(low))


def numbers(value: str) -> tuple[int, ...]:
    """Return the numbers of a text such as `0-3,8`, with steps as in `0-8:4`; at most `MOST`."""
    values: list[int] = []
    for part in value.split(","):
        span, _, step = part.partition(":")
        low, dash, high = span.partition("-")
        if low.isdigit() and (not dash or high.isdigit()):
            last = min(int(high or low), int(low) + MOST)
            values += range(int(low), last + 1, int(step) if step.isdigit() and int(step) else 1)
    return tuple(values[:MOST])


def job_id(number: int, task: int | None = None) -> JobId:
    """Return the cockpit's id of Slurm's job `number`, or of that task of the array `number`."""
    return JobId(number) if task is None else task_id(number, task)


def slurm_id(job: JobId | int, task: int | None = None) -> str:
    """Return the id for Slurm's commands: `123` or `123_4`."""
    return job_words(job) if task is None else f"{task_of(job)[0]}_{task}"
