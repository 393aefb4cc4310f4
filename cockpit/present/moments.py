"""Moments as words: ISO 8601 in UTC for programs, the local clock for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from cockpit.model.ids import Millis

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_SECOND: Final = [f"{second:02}." for second in range(60)]
_MILLIS: Final = [f"{millis:03}Z" for millis in range(1000)]
"""Written once: a list of ten thousand jobs holds thirty thousand moments."""


def iso(moment: Millis) -> str:
    """`2026-10-05T09:14:03.120Z`."""
    seconds, millis = divmod(moment, 1000)
    minutes, second = divmod(seconds, 60)
    return _iso_minute(minutes) + _SECOND[second] + _MILLIS[millis]


def clock(moment: Millis, now: Millis, zone: tzinfo | None) -> str:
    """`09:14` on the same day as now, else `10-05 09:14`, in another year `2025-10-05 09:14`.

    `zone` None: this machine's.
    """
    return _clock(moment // 60_000, now // 60_000, zone)


def brief_clock(moment: Millis, now: Millis, zone: tzinfo | None) -> str:
    """`09:14` on the same day as now, `10-05` in the same year, else `2025`: five columns at most."""
    return _brief_clock(moment // 60_000, now // 60_000, zone)


def parse_moment(text: str) -> Millis | None:
    """An ISO date or date and time, in this machine's zone unless it names one."""
    try:
        return Millis(round(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=4096)
def _iso_minute(minutes: int) -> str:
    return f"{EPOCH + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:}"


@lru_cache(maxsize=4096)
def _clock(minutes: int, now_minutes: int, zone: tzinfo | None) -> str:
    local, today = _local(minutes, zone), _local(now_minutes, zone)
    if local.date() == today.date():
        return f"{local:%H:%M}"
    return f"{local:%m-%d %H:%M}" if local.year == today.year else f"{local:%Y-%m-%d %H:%M}"


@lru_cache(maxsize=4096)
def _brief_clock(minutes: int, now_minutes: int, zone: tzinfo | None) -> str:
    local, today = _local(minutes, zone), _local(now_minutes, zone)
    if local.date() == today.date():
        return f"{local:%H:%M}"
    return f"{local:%m-%d}" if local.year == today.year else f"{local:%Y}"


def _local(minutes: int, zone: tzinfo | None) -> datetime:
    return (EPOCH + timedelta(minutes=minutes)).astimezone(zone)
