"""The moments of sbatch's --begin, at one moment in one zone."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cockpit.formats.slurm.begin import begin_moment

pytestmark = pytest.mark.req("LA-71", "LA-70")

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 28, 14, 30, tzinfo=BERLIN)
"""A Saturday; in the night that follows, clocks go forward."""


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("16:00", "2026-03-28T16:00:00+01:00"),
        ("09:15:30", "2026-03-29T09:15:30+02:00"),
        ("4:00PM", "2026-03-28T16:00:00+01:00"),
        ("12:00 am", "2026-03-29T00:00:00+01:00"),
        ("midnight", "2026-03-29T00:00:00+01:00"),
        ("noon", "2026-03-29T12:00:00+02:00"),
        ("elevenses", "2026-03-29T11:00:00+02:00"),
        ("fika", "2026-03-28T15:00:00+01:00"),
        ("teatime", "2026-03-28T16:00:00+01:00"),
        ("now", "2026-03-28T14:30:00+01:00"),
        ("now+60", "2026-03-28T14:31:00+01:00"),
        ("now+1hour", "2026-03-28T15:30:00+01:00"),
        ("now + 2days", "2026-03-30T15:30:00+02:00"),
        ("today", "2026-03-28T00:00:00+01:00"),
        ("tomorrow", "2026-03-29T14:30:00+02:00"),
        ("tomorrow 08:00", "2026-03-29T08:00:00+02:00"),
        ("2026-11-25", "2026-11-25T00:00:00+01:00"),
        ("2026-11-25T10:00", "2026-11-25T10:00:00+01:00"),
        ("2026-07-25T10:00:05", "2026-07-25T10:00:05+02:00"),
        ("07/25/26", "2026-07-25T00:00:00+02:00"),
        ("072526", "2026-07-25T00:00:00+02:00"),
        ("01/20", "2027-01-20T00:00:00+01:00"),
        ("25 Jul", None),
        ("uts1774704600", "2026-03-28T14:30:00+01:00"),
    ],
)
def test_a_time_is_in_the_zone_of_the_user(text: str, moment: str | None) -> None:
    if moment is None:
        with pytest.raises(ValueError, match="is no moment"):
            begin_moment(text, NOW)
        return
    found = begin_moment(text, NOW)
    assert found.astimezone(UTC) == datetime.fromisoformat(moment).astimezone(UTC)


@pytest.mark.parametrize("text", ["soon", "25:00", "now+3fortnights", "2026-13-01", "16", "13:00pm"])
def test_an_invalid_time_is_refused_with_the_valid_forms(text: str) -> None:
    with pytest.raises(ValueError, match="write 16:00, now\\+1hour, tomorrow"):
        begin_moment(text, NOW)
