"""The moments of sbatch's `--begin` and `--deadline`. Source: sbatch(1).

The forms are tried in this order: seconds since 1970 (`uts1700000000`), a time from now (`now+2hours`), then a day, a
time of a day, or both. A day alone means its midnight (`tomorrow`: the present time of day); a time alone is the next
moment at which a clock shows it.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

_NAMED: Final = {"midnight": time(0), "noon": time(12), "elevenses": time(11), "fika": time(15), "teatime": time(16)}
_CLOCK: Final = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?\s*(?P<half>[ap]m)?", re.IGNORECASE
)
_RELATIVE: Final = re.compile(r"now(?:\s*(?P<sign>[+-])\s*(?P<count>\d{1,9})\s*(?P<unit>[a-z]*))?", re.IGNORECASE)
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_UNIX: Final = re.compile(r"uts(?P<seconds>\d{1,12})", re.IGNORECASE)
_DATES: Final = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"),
    re.compile(r"(?P<month>\d{1,2})[/.](?P<day>\d{1,2})(?:[/.](?P<year>\d{2}|\d{4}))?"),
    re.compile(r"(?P<month>\d{2})(?P<day>\d{2})(?P<year>\d{2})"),
)
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NAMED_DATE: Final = re.compile(
    r"(?P<month>[a-z]{3})[a-z]*\.? +(?P<day>\d{1,2})(?:,? +(?P<year>\d{4}))?", re.IGNORECASE
)
_CENTURY: Final = 2000


def begin_moment(text: str, now: datetime) -> datetime:
    """Return the begin time that the text means at `now`, whose time zone local times are in. Raises ValueError with a
    clause."""
    plain = text.strip()
    if match := _UNIX.fullmatch(plain):
        return datetime.fromtimestamp(int(match["seconds"]), now.tzinfo)
    if match := _RELATIVE.fullmatch(plain):
        # in UTC, since a span of hours does not follow the clocks when they change
        return (now.astimezone(UTC) + timedelta(seconds=_offset(match, text))).astimezone(now.tzinfo)
    try:
        return _local(plain, now)
    except ValueError:
        raise _wrong(text) from None


def _local(text: str, now: datetime) -> datetime:
    """Return the moment of a day, a time of a day, or both: with a `T` between them, or blanks in any order."""
    words = re.split(r"[T\s]+", text) if re.match(r"\d{4}-", text) else text.split()
    day, clock = _split(words)
    if not day:
        return _next_at(_time_of(clock), now) if clock else now
    at = _time_of(clock) if clock else time(0)
    if day == "today":
        return _combine(now.date(), at, now)
    if day == "tomorrow":
        # without a time of day it is this time of the next day
        return _combine(now.date() + timedelta(days=1), at if clock else now.time().replace(microsecond=0), now)
    return _combine(_date_of(day, now), at, now)


def _split(words: list[str]) -> tuple[str, str]:
    clocks = [index for index, word in enumerate(words) if _is_clock(word)]
    if not clocks:
        return " ".join(words).lower(), ""
    first = clocks[0]
    # `4:00 pm` is two words when it is split at blanks.
    last = first + 1 + (first + 1 < len(words) and words[first + 1].lower() in {"am", "pm"})
    return " ".join([*words[:first], *words[last:]]).lower(), " ".join(words[first:last])


def _is_clock(word: str) -> bool:
    return word.lower() in _NAMED or _CLOCK.fullmatch(word) is not None


def _time_of(text: str) -> time:
    """Return the time of a day. Raises ValueError."""
    if text.lower() in _NAMED:
        return _NAMED[text.lower()]
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError(text)
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(text)
        # 12 am is midnight and 12 pm is noon.
        hour = hour % 12 + (12 if match["half"].lower() == "pm" else 0)
    return time(hour, int(match["minute"]), int(match["second"] or 0))


def _date_of(text: str, now: datetime) -> date:
    """Return the date. Raises ValueError."""
    if named := _NAMED_DATE.fullmatch(text):
        month = _MONTHS.index(named["month"].lower()) + 1
        return _next_date(month, int(named["day"]), int(named["year"] or 0), now)
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            year = int(match["year"] or 0)
            # sbatch writes years with two digits (MMDDYY, MM/DD/YY); none of these moments is in the past century.
            year += _CENTURY if 0 < year < 100 else 0
            return _next_date(int(match["month"]), int(match["day"]), year, now)
    raise ValueError(text)


def _next_date(month: int, day: int, year: int, now: datetime) -> date:
    """Return the date; without a year the next such day."""
    if year:
        return date(year, month, day)
    day_of_this_year = date(now.year, month, day)
    return day_of_this_year if day_of_this_year >= now.date() else date(now.year + 1, month, day)


def _next_at(at: time, now: datetime) -> datetime:
    """Return the next moment at which a clock shows this time."""
    moment = _combine(now.date(), at, now)
    return moment if moment > now else _combine(now.date() + timedelta(days=1), at, now)


def _combine(day: date, at: time, now: datetime) -> datetime:
    return datetime.combine(day, at, now.tzinfo)


def _offset(match: re.Match[str], text: str) -> int:
    """Return the seconds behind `now`. Raises ValueError for an unknown unit."""
    if match["count"] is None:
        return 0
    unit = (match["unit"] or "second").lower()
    # A unit may be shortened (`now+2h`), as long as one unit alone begins so.
    names = [name for name in _SECONDS if f"{name}s".startswith(unit)]
    if len(names) != 1:
        raise _wrong(text)
    return int(match["count"]) * _SECONDS[names[0]] * (-1 if match["sign"] == "-" else 1)


def _wrong(text: str) -> ValueError:
    return ValueError(
        f'"{text}" is no moment of sbatch\'s; write 16:00, now+1hour, tomorrow, 2026-11-25T10:00, 11/25/26 or noon'
    )
