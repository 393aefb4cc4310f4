"""Whether a row of a list waits or runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.present.job_values import is_running, is_waiting
from tests.doubles.samples import queued_row


@pytest.mark.req("JT-31")
@pytest.mark.parametrize(
    ("started", "ended", "waiting", "running"),
    [(None, None, True, False), (5, None, False, True), (5, 9, False, False), (None, 9, False, False)],
)
def test_a_job_waits_until_its_start_and_runs_until_its_end(
    started: int | None, ended: int | None, waiting: bool, running: bool
) -> None:
    started_at, ended_at = (None if each is None else Millis(each) for each in (started, ended))
    row = replace(queued_row(1), started_at=started_at, ended_at=ended_at)
    assert (is_waiting(row), is_running(row)) == (waiting, running)
