"""`cockpit usage`: what a job's replicas really use."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from cockpit.model.jobdetail import ReplicaUse
from cockpit.model.usage import Sample
from tests.doubles.samples import detail
from tests.headless.conftest import Desk

USE = ReplicaUse(
    0,
    cpu_ms=7_140_000,
    peak_memory_mib=12_288,
    mean_card_percent=81,
    peak_card_percent=99,
    course=(Sample(5_000, 1_500, 2_048, None), Sample(5_000, 3_900, 12_288, 97)),
)


@pytest.fixture
def used(desk: Desk) -> Desk:
    desk.backend.details[4715] = replace(detail(), use=(USE,))
    return desk


@pytest.mark.req("JT-48")
def test_totals_of_an_ended_job_as_a_table_and_as_data(used: Desk) -> None:
    titles, row = used("usage", "4715").lines
    assert titles.split()[:6] == ["RANK", "NODE", "CPU", "TIME", "CPUS", "BUSY"]
    assert row.split() == ["0", "n03", "1:59:00", "1.0/4", "–", "12G", "81"]
    (found,) = json.loads(used("usage", "4715", "-o", "json").out)["rows"]
    assert (found["cpu_seconds"], found["peak_memory_mib"], found["peak_card_percent"]) == (7140, 12_288, 99)
    assert found["course"][1] == {"seconds": 5.0, "cpus_busy": 3.9, "memory_mib": 12_288, "card_percent": 97}


@pytest.mark.req("JT-48")
def test_usage_is_watched_until_the_job_has_ended(used: Desk) -> None:
    """Each change once."""
    waits = iter([None, None, detail().job])
    seen = iter([100, 100, 200])

    async def wait(*_: object, timeout_seconds: float) -> object:
        assert timeout_seconds > 0
        used.backend.details[4715] = replace(detail(), use=(replace(USE, cpu_ms=next(seen) * 1000),))
        return next(waits)

    used.backend.wait = wait
    lines = [json.loads(line) for line in used("usage", "4715", "--watch", "--columns", "rank,cpu_time").lines]
    assert [line["row"] for line in lines] == [{"rank": 0, "cpu_seconds": 100}, {"rank": 0, "cpu_seconds": 200}]


@pytest.mark.req("JT-48")
def test_the_details_of_a_job_show_its_usage(used: Desk) -> None:
    assert "     used 1:59:00 CPU time, 12G at most, cards 81 % busy on average" in used("job", "4715").lines


@pytest.mark.req("JT-48")
def test_without_measurements_there_is_no_usage_row(desk: Desk) -> None:
    done = desk("usage", "4715", terminal=True)
    assert "This job was not measured" in done.err
