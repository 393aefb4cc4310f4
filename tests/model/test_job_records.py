"""What follows from a job's record and its row in a list: its id, state, times and position."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.forecast import ExpectedStart, Forecast, HoldingJob
from cockpit.model.ids import JobId, JobRef, Millis
from cockpit.model.job import ENDED, ArrayTask, JobState
from cockpit.model.jobdetail import ReplicaUse, in_the_end
from cockpit.model.reasons import BehindHead, Explanation, Held
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Dependency, DependencyKind, JobKind
from tests.builders import a_spec
from tests.doubles.samples import detail, job, outlook, queued_row

TASK = ArrayTask(JobId(100), 4)
ELASTIC = a_spec("e", elastic=Elastic(workers=1, max_workers=2, max_wait_seconds=60))


@pytest.mark.req("JT-25")
def test_a_task_of_an_array_is_shown_and_waited_for_by_array_and_index() -> None:
    alone, task = job(7), job(104, array=TASK)
    assert (alone.shown_id, task.shown_id) == ("7", "100_4")

    def is_meant(named: Dependency) -> list[bool]:
        return [each.is_meant(named) for each in (alone, task)]

    assert is_meant(Dependency(DependencyKind.AFTER_OK, JobId(7))) == [True, False]
    assert is_meant(Dependency(DependencyKind.AFTER_OK, JobId(7), 1)) == [False, False]
    assert is_meant(Dependency(DependencyKind.AFTER_OK, JobId(100))) == [False, True]
    assert is_meant(Dependency(DependencyKind.AFTER_OK, JobId(100), 4)) == [False, True]
    assert is_meant(Dependency(DependencyKind.AFTER_OK, JobId(100), 5)) == [False, False]
    assert is_meant(Dependency(DependencyKind.AFTER_OK, JobId(104))) == [False, True]


@pytest.mark.req("JT-03")
def test_a_task_is_of_the_kind_batch_only_if_its_array_is_a_batch() -> None:
    assert job(104, array=replace(TASK, batch=True)).kind is JobKind.BATCH
    assert job(104, array=TASK).kind is JobKind.REGULAR
    assert job(104).kind is JobKind.REGULAR


@pytest.mark.req("EL-04")
def test_a_job_below_its_least_workers_is_shown_as_suspended_and_waits_at_most_its_wait_time() -> None:
    below = job(7, state=JobState.QUEUED, spec=ELASTIC, below_min_at=Millis(5000))
    assert (below.shown_state, below.waits_until) == (JobState.SUSPENDED, 65_000)
    queued = replace(below, below_min_at=None)
    assert (queued.shown_state, queued.waits_until) == (JobState.QUEUED, None)
    assert replace(below, spec=a_spec("x")).waits_until is None


@pytest.mark.req("JT-31", "JT-40")
def test_an_ended_job_is_held_as_long_as_its_containers_are() -> None:
    assert {state for state in JobState if job(7, state=state).ended} == ENDED
    assert job(7, held_until=Millis(1)).kept
    assert not job(7, held_until=None).kept


@pytest.mark.req("EL-04")
def test_a_row_is_in_the_queue_or_occupies_resources_but_a_waiting_elastic_job_only_queues() -> None:
    queued = queued_row(1)
    waiting = replace(queued, state=JobState.SUSPENDED, waits_until=Millis(1))
    running, ended = (replace(queued, state=state) for state in (JobState.RUNNING, JobState.STOPPED))
    suspended = replace(queued, state=JobState.SUSPENDED)
    rows = (queued, waiting, running, suspended, ended)
    assert [row.queued for row in rows] == [True, True, False, False, False]
    assert [row.holds for row in rows] == [False, False, True, True, False]


@pytest.mark.req("SC-12")
def test_an_outlook_shows_the_position_of_the_explanation_and_its_own_where_the_job_starts_now() -> None:
    starts_now = replace(outlook(), position=3, explanation=None)
    assert starts_now.place == 3
    assert replace(starts_now, explanation=Explanation(JobId(1), BehindHead(JobId(2)), 5, ())).place == 5
    assert replace(starts_now, explanation=Explanation(JobId(1), Held("ann", Millis(0)), 5, ())).place is None
    named = HoldingJob(JobId(8), "a", "ann", True, 1, 1, 1, 0)
    other = replace(named, job=JobId(9))
    assert replace(starts_now, named=(named, other)).holding(JobId(9)) is other
    assert replace(starts_now, named=(named, other)).holding(JobId(7)) is None


@pytest.mark.req("SC-12")
def test_a_start_without_a_forecast_still_has_its_likely_time() -> None:
    whole = Forecast(likely_at=Millis(5), latest_at=Millis(9))
    assert ExpectedStart(JobId(1), Millis(5), whole).forecast is whole
    assert ExpectedStart(JobId(1), Millis(5)).forecast == Forecast(likely_at=Millis(5))


@pytest.mark.req("JT-48")
def test_the_figures_of_a_running_replica_are_stored_and_shown_again_once_it_has_ended() -> None:
    use = ReplicaUse(3, 1, 2, 3, 4, 5, 6, 7, 8)
    total = use.total
    assert (total.cpu_ms, total.peak_memory_mib, total.card_percent) == (1, 3, 6)
    assert (total.peak_card_percent, total.peak_card_memory_mib) == (7, 8)
    shown = in_the_end(3, total)
    assert (shown.rank, shown.total) == (3, total)
    assert (shown.memory_mib, shown.card_percent, shown.card_memory_mib) == (None, None, None)


@pytest.mark.req("JT-33")
def test_the_id_of_a_batch_means_all_its_tasks_and_the_id_of_a_task_that_task() -> None:
    batch = a_spec("whole")
    task = replace(detail(), job=job(104, array=replace(TASK, batch=True)), batch=batch)
    assert task.named_by(JobRef(JobId(100))) is batch
    assert task.named_by(JobRef(JobId(100), task=4)) is task.job.spec
    assert task.named_by(JobRef(JobId(104))) is task.job.spec
    assert replace(task, batch=None).named_by(JobRef(JobId(100))) is task.job.spec
    assert replace(task, job=job(7)).named_by(JobRef(JobId(100))) is not batch
