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
        ("14:30", "2026-03-29T14:30:00+02:00"),
        ("14:30:01", "2026-03-28T14:30:01+01:00"),
        ("16:00:05.75", "2026-03-28T16:00:05+01:00"),
        ("12:00 pm", "2026-03-29T12:00:00+02:00"),
        ("1:00am", "2026-03-29T01:00:00+01:00"),
        ("11:59 PM", "2026-03-28T23:59:00+01:00"),
        ("0:30am", None),
        ("now-1hour", "2026-03-28T13:30:00+01:00"),
        ("now+2h", "2026-03-28T16:30:00+01:00"),
        ("now+3mi", "2026-03-28T14:33:00+01:00"),
        ("now+1week", "2026-04-04T15:30:00+02:00"),
        ("now+1s", "2026-03-28T14:30:01+01:00"),
        ("now+1days", "2026-03-29T15:30:00+02:00"),
        ("today 16:00", "2026-03-28T16:00:00+01:00"),
        ("4:00 pm tomorrow", "2026-03-29T16:00:00+02:00"),
        ("16:00 2026-11-25", "2026-11-25T16:00:00+01:00"),
        ("2026-11-25 16:00", "2026-11-25T16:00:00+01:00"),
        ("03/28", "2026-03-28T00:00:00+01:00"),
        ("03/27", "2027-03-27T00:00:00+01:00"),
        ("3.28.2031", "2031-03-28T00:00:00+01:00"),
        ("07/25/99", "2099-07-25T00:00:00+02:00"),
        ("jul 25, 2027", "2027-07-25T00:00:00+02:00"),
        ("December 24 teatime", "2026-12-24T16:00:00+01:00"),
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


@pytest.mark.parametrize(
    "text",
    ["soon", "25:00", "now+3fortnights", "2026-13-01", "16", "13:00pm", "now+", "foo 25", "16:00 17:00"],
)
def test_an_invalid_time_is_refused_with_the_valid_forms(text: str) -> None:
    with pytest.raises(ValueError, match="write 16:00, now\\+1hour, tomorrow"):
        begin_moment(text, NOW)
