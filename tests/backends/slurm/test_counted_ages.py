"""When Slurm last computed the ages of waiting jobs, by the factors that sprio rounds."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.snapshot import counted_at
from cockpit.model.cluster import Priority, Weights
from cockpit.model.ids import JobId, Millis
from cockpit.model.priority import Breakdown, FactorName, Part
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SC-24", "SL-30")
SECOND = 1000
BEGAN = 1_795_248_000
NOW = Millis(SECOND * (BEGAN + 10_000))
PRIORITY = Priority(weights=Weights(age=1000), max_age_seconds=10_000, calc_period_seconds=300)
"""An age factor grows by one in ten seconds."""


def counted(*jobs: tuple[int | None, int | None], priority: Priority = PRIORITY) -> float | None:
    """Return the moment in seconds after BEGAN. `jobs`: each one's accrual, in seconds after BEGAN, and its age."""
    listed, printed = [], {}
    for number, (since, age) in enumerate(jobs, 1):
        accrued = {"AccrueTime": str(BEGAN + since)} if since is not None else {}
        listed.append(Listed(a_record(JobID=str(number), State="PENDING", **accrued)))
        parts = (Part(FactorName.AGE, 0.0, 1000, float(age)),) if age is not None else ()
        printed[number] = (Breakdown(JobId(number), "batch", 1, parts),)
    found = counted_at(listed, printed, priority, NOW)
    return None if found is None else found / SECOND - BEGAN


@pytest.mark.parametrize(
    ("jobs", "moment"),
    [
        ([], (10_000 - 600 + 10_000) / 2),
        ([(0, 990)], (9_895 + 9_905) / 2),
        ([(0, 990), (4, 990)], (9_899 + 9_905) / 2),
        ([(0, 990), (9_897, 0)], (9_895 + 9_902) / 2),
        ([(0, 990), (None, 5), (3, None)], (9_895 + 9_905) / 2),
        ([(0, 1000)], (10_000 - 600 + 10_000) / 2),
        ([(0, 999)], (9_985 + 9_995) / 2),
        ([(0, 990), (0, 950)], None),
    ],
)
def test_ages_were_counted_in_the_middle_of_the_time_that_all_factors_allow(jobs: Any, moment: float | None) -> None:
    assert counted(*jobs) == moment


def test_without_a_weight_ages_say_nothing() -> None:
    priority = Priority(weights=Weights(age=0), max_age_seconds=10_000, calc_period_seconds=300)
    assert counted((0, 0), priority=priority) == counted(priority=priority) == 9_700
