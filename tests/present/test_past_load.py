from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.view import Overview
from cockpit.present.bars import GAP
from cockpit.present.load_history import PART_MS, PARTS, LoadHistory
from cockpit.present.past_load import Load, PastLoad
from tests.doubles.samples import NOW, job_row, overview

pytestmark = pytest.mark.req("UI-13")

NOW = Millis(NOW // PART_MS * PART_MS + 90_000)


def ago(parts: float) -> Millis:
    return Millis(NOW - int(parts * PART_MS))


def job(number: int, submitted: float, started: float | None = None, ended: float | None = None, **fields) -> JobRow:
    """A job of four cards and eight CPUs; its times are in parts before now."""
    times = {"started_at": None if started is None else ago(started), "ended_at": None if ended is None else ago(ended)}
    fields = {"card_milli": 4000, "cpus": 8, "tasks": ()} | times | fields
    return job_row(number, submitted_at=ago(submitted), **fields)


def cluster(used: int, queued: int) -> Overview:
    figures = replace(overview(), card_milli=16_000, used_card_milli=1000 * used, cpus=64, used_cpus=2 * used)
    return replace(figures, jobs_by_state={JobState.QUEUED: queued})


def told(jobs: list[JobRow], figures: Overview) -> dict[int, Load]:
    """What these jobs tell, by the number of whole parts before now."""
    past = PastLoad(NOW, PART_MS, PARTS)
    past.add(jobs)
    return {(NOW - moment) // PART_MS: load for moment, load in past.figures(figures)}


def test_each_moment_has_what_the_jobs_of_then_occupied_and_how_many_waited() -> None:
    jobs = [
        job(1, 9.0, 8.5, 5.5),
        job(2, 8.0, 3.5),
        job(3, 6.0, None, 2.5),  # stopped before it started
        job(4, 1.5),
    ]
    loads = told(jobs, cluster(used=4, queued=1))
    assert loads[5] == Load(0, 0, 2), "the first has ended, the second and third wait"
    assert loads[4] == Load(0, 0, 2)
    assert loads[3] == Load(4000, 8, 1)
    assert loads[2] == Load(4000, 8, 0)
    assert loads[1] == Load(4000, 8, 1)


def test_nothing_is_said_of_the_time_before_the_first_end_that_the_list_has() -> None:
    loads = told([job(1, 9.0, 8.5, 5.5), job(2, 8.0, 7.5)], cluster(used=4, queued=0))
    assert max(loads) == 5
    assert told([job(2, 8.0, 7.5)], cluster(used=4, queued=0)) == {}, "nothing has ended: ended jobs may leave the list"
    long_ago = told([job(1, 90.0, 80.0, 70.0), job(2, 8.0, 7.5)], cluster(used=4, queued=0))
    assert max(long_ago) == PARTS - 2
    assert long_ago[PARTS - 2] == Load(0, 0, 0)


@pytest.mark.parametrize(("used", "queued"), [(8, 0), (4, 2)])
def test_a_list_without_the_jobs_of_others_says_nothing(used: int, queued: int) -> None:
    jobs = [job(1, 9.0, 8.5, 5.5), job(2, 8.0, 7.5)]
    assert told(jobs, cluster(used=4, queued=0))
    assert told(jobs, cluster(used, queued)) == {}


def test_a_row_of_waiting_tasks_counts_each_of_them() -> None:
    jobs = [job(1, 9.0, 8.5, 5.5), job(2, 3.5, tasks=tuple(range(30)))]
    assert told(jobs, cluster(used=0, queued=30))[3] == Load(0, 0, 30)


def test_on_a_cluster_without_cards_its_cpus_agree() -> None:
    cpus = replace(cluster(used=4, queued=0), card_milli=0, used_card_milli=0)
    assert told([job(1, 9.0, 8.5, 5.5, card_milli=0), job(2, 8.0, 7.5, card_milli=0)], cpus)


def test_the_charts_go_back_before_the_first_look() -> None:
    history, figures = LoadHistory(), cluster(used=16, queued=0)
    history.note(figures, NOW)
    past = PastLoad(NOW, PART_MS, PARTS)
    past.add([job(1, 9.0, 8.5, 5.5), *[job(each, 8.0, 2.5) for each in (2, 3, 4, 5)]])
    assert history.fill(past, figures)
    charts = history.charts(NOW)
    assert charts is not None
    assert len(charts.used) == len(charts.queued) == 7
    assert GAP not in charts.used
    assert charts.used[-1] == charts.used[-2] != charts.used[0]
    assert charts.queued[0] != charts.queued[-1]


def test_what_was_seen_is_kept() -> None:
    history = LoadHistory()
    history.note(cluster(used=0, queued=0), ago(1))
    history.note(cluster(used=4, queued=0), NOW)
    seen = history.charts(NOW)
    past = PastLoad(NOW, PART_MS, PARTS)
    past.add([job(1, 4.0, 3.5, 1.5), job(2, 8.0, 1.1)])
    assert history.fill(past, cluster(used=4, queued=0))
    charts = history.charts(NOW)
    assert seen is not None
    assert charts is not None
    assert charts.used[-2:] == seen.used
