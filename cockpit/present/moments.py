"""Moments as words: ISO 8601 in UTC for programs, the local clock for people."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from cockpit.model.ids import Millis

QUARTER: Final = 15
"""Minutes of a quarter of an hour: the hours of every time zone begin at one, and a month has few enough to cache."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_SECOND: Final = [f"{second:02}." for second in range(60)]
_MILLIS: Final = [f"{millis:03}Z" for millis in range(1000)]
"""Milliseconds as text, made once: a list of ten thousand jobs has thirty thousand moments."""


def iso(moment: Millis) -> str:
    """Return the moment in ISO 8601 UTC: `2026-10-05T09:14:03.120Z`."""
    seconds, millis = divmod(moment, 1000)
    minutes, second = divmod(seconds, 60)
    return _iso_minute(minutes) + _SECOND[second] + _MILLIS[millis]


def clock(moment: Millis, now: Millis, zone: tzinfo | None) -> str:
    """Return the local time: `09:14` on the same day as now, else `10-05 09:14`, in another year `2025-10-05 09:14`.

    `zone` None: this machine's time zone.
    """
    # The offsets of all zones are whole quarters of an hour, so that within one only the minute has to be added.
    quarter, minute = divmod(moment // 60_000, QUARTER)
    before, first = _clock_of_quarter(quarter, now // 60_000 // QUARTER, zone)
    return f"{before}{first + minute:02}"


def clock_of_second(moment: Millis, zone: tzinfo | None) -> str:
    """Return the local time with seconds, `09:14:03`, whatever the day. `zone` None: this machine's."""
    return f"{_local(moment // 60_000, zone):%H:%M}:{moment // 1000 % 60:02}"


def brief_clock(moment: Millis, now: Millis, zone: tzinfo | None) -> str:
    """Return the local time in at most five columns: `09:14` on the same day as now, `10-05` in the same year, else
    `2025`."""
    return _brief_clock(moment // 60_000, now // 60_000, zone)


def day(now: Millis, zone: tzinfo | None) -> date:
    """Return the date of now; while it is the same, `clock` returns the same text for a moment."""
    return _local(now // 60_000, zone).date()


def parse_moment(text: str) -> Millis | None:
    """Parse an ISO date or date and time, in this machine's zone unless the text names one."""
    try:
        return Millis(round(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=4096)
def _iso_minute(minutes: int) -> str:
    return f"{EPOCH + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:}"


@lru_cache(maxsize=16_384)
def _clock_of_quarter(quarter: int, now_quarter: int, zone: tzinfo | None) -> tuple[str, int]:
    """Return the text before the minute, and the minute at which the quarter of an hour begins."""
    local, today = _local(quarter * QUARTER, zone), _local(now_quarter * QUARTER, zone)
    if local.date() == today.date():
        before = f"{local:%H:}"
    else:
        before = f"{local:%m-%d %H:}" if local.year == today.year else f"{local:%Y-%m-%d %H:}"
    return before, local.minute


@lru_cache(maxsize=4096)
def _brief_clock(minutes: int, now_minutes: int, zone: tzinfo | None) -> str:
    local, today = _local(minutes, zone), _local(now_minutes, zone)
    if local.date() == today.date():
        return f"{local:%H:%M}"
    return f"{local:%m-%d}" if local.year == today.year else f"{local:%Y}"


def _local(minutes: int, zone: tzinfo | None) -> datetime:
    return (EPOCH + timedelta(minutes=minutes)).astimezone(zone)
