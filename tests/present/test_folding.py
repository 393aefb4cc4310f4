from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId, task_id
from cockpit.model.job import ArrayTask, JobState
from cockpit.model.jobrow import JobRow
from cockpit.present.columns import Context
from cockpit.present.folding import FoldedRow, fold, folded, id_text, progress, standing, task_count
from cockpit.present.job.folded_list import FoldedList
from cockpit.present.job.list import JobList
from cockpit.present.tables.jobs import JOBS
from tests.doubles.samples import NOW, failed_row, job_row, queued_row

ARRAY = JobId(10)


def task(index: int, *, running: bool = False, at_once: int = 0, **changes: object) -> JobRow:
    """Task `index` of array 10, whose jobs are 10, 11, …"""
    make = job_row if running else queued_row
    return make(10 + index, array=ArrayTask(ARRAY, index, at_once, 9, 0, 8), name="sweep", **changes)


def a_list(*rows: JobRow) -> FoldedList:
    made = FoldedList(JobList(lambda: Context(now=NOW, zone=UTC, user="ann")))
    made.replace_all(rows)
    return made


TASKS = (task(0, running=True), task(1, priority=7), task(2, priority=9))


@pytest.mark.parametrize(
    ("indices", "at_once", "text"),
    [((0, 1, 2), 0, "10_[0-2]"), ((0, 2), 2, "10_[0,2%2]"), ((1, 2, 4, 6, 7, 8), 4, "10_[1-2,4,6-8%4]")],
)
def test_the_id_of_folded_tasks_is_slurms(indices: tuple[int, ...], at_once: int, text: str) -> None:
    assert id_text(folded([task(index, at_once=at_once) for index in indices])) == text


def test_ids_of_jobs_and_of_single_tasks() -> None:
    assert [id_text(row) for row in fold([job_row(7), task(3)])] == ["7", "10_3"]


@pytest.mark.req("UI-01")
def test_a_folded_row_counts_states_and_sums_what_has_not_ended() -> None:
    row = folded([*TASKS, failed_row(14, array=ArrayTask(ARRAY, 4), nodes=50)])
    assert isinstance(row, FoldedRow)
    assert row.states == ((JobState.QUEUED, 2), (JobState.RUNNING, 1), (JobState.ERROR, 1))
    assert (row.id, row.state, row.speaker, task_count(row)) == (10, JobState.QUEUED, 11, 4)
    assert (row.nodes, row.card_milli, row.priority) == (3, 9000, 9)
    assert row.reason == TASKS[1].reason


def test_an_ended_array_is_summed_completely_and_a_held_task_represents_it() -> None:
    ended = [failed_row(10 + each, array=ArrayTask(ARRAY, each), held_until=None) for each in range(2)]
    row = folded([*ended, failed_row(12, array=ArrayTask(ARRAY, 2))])
    assert (row.speaker, row.nodes) == (12, 3)


@pytest.mark.req("UI-01")
def test_a_table_counts_tasks_by_state() -> None:
    (row,) = fold(TASKS)
    cells = {name: JOBS.find(name).texts([row], Context(now=NOW, zone=UTC))[0] for name in ("id", "state", "tasks")}
    assert cells == {"id": "10_[0-2]", "state": "2 queued, 1 running", "tasks": "3"}


@pytest.mark.req("UI-01", "UI-23")
def test_a_list_has_one_row_for_each_array_at_the_place_of_its_first_task() -> None:
    jobs = a_list(job_row(9), *TASKS, job_row(20))
    assert list(jobs.order) == [10, 9, 20]
    assert [jobs.place(JobId(each)) for each in (9, 10, 11, 20)] == [1, 0, None, 2]
    assert id_text(jobs.row(ARRAY)) == "10_[0-2]"
    assert [jobs.shown_as(JobId(each)) for each in (9, 12)] == [9, 10]
    assert [row.id for row in jobs.behind(ARRAY)] == [10, 11, 12]
    assert jobs.speaker(ARRAY).id == 11


@pytest.mark.req("UI-23")
def test_unfolding_puts_the_cursor_on_the_first_task_and_folding_on_the_array() -> None:
    jobs = a_list(job_row(9), *TASKS)
    assert jobs.toggle(ARRAY) == 10
    assert list(jobs.order) == [10, 11, 12, 9]
    assert id_text(jobs.row(ARRAY)) == "10_0"
    assert jobs.toggle(JobId(12)) == 10
    assert list(jobs.order) == [10, 9]
    assert jobs.toggle(JobId(9)) is None


@pytest.mark.req("UI-01")
def test_a_filter_counts_only_what_it_leaves_and_a_single_task_is_itself() -> None:
    jobs = a_list(*TASKS)
    jobs.jobs.filter_by("state:queued")
    assert id_text(jobs.row(ARRAY)) == "10_[1-2]"
    assert list(jobs.order) == [10]
    jobs.jobs.filter_by("state:running")
    assert (list(jobs.order), id_text(jobs.row(ARRAY))) == ([10], "10_0")
    jobs.jobs.filter_by("id:12")
    assert (list(jobs.order), jobs.place(JobId(12)), jobs.place(ARRAY)) == ([12], 0, None)


@pytest.mark.req("UI-23")
def test_an_array_is_sorted_by_its_best_task_in_any_order() -> None:
    jobs = a_list(queued_row(9, priority=8), *TASKS)
    jobs.jobs.sort_by("priority", descending=True)
    assert list(jobs.order) == [10, 9]
    jobs.jobs.sort_by("priority", descending=False)
    assert list(jobs.order) == [10, 9]


@pytest.mark.req("UI-23")
def test_changes_of_folded_tasks_are_changes_of_their_row() -> None:
    jobs = a_list(job_row(9), *TASKS)
    assert jobs.apply([task(1, running=True)], []).changed == [10]
    assert jobs.row(ARRAY).states == ((JobState.QUEUED, 1), (JobState.RUNNING, 2))
    assert jobs.apply([task(3)], [JobId(10)]).changed == [10]
    assert [row.id for row in jobs.behind(ARRAY)] == [11, 12, 13]
    jobs.apply([], [JobId(11), JobId(12)])
    assert list(jobs.order) == [13, 9]


def test_columns_that_some_job_fills_are_noticed() -> None:
    jobs = a_list(job_row(9, card_milli=0))
    assert jobs.used == set()
    jobs.apply([job_row(10, partitions=("gpu",), card_milli=0), queued_row(11, priority=0, card_milli=0)], [])
    assert jobs.used == {"partitions", "priority"}
    jobs.apply([task(3)], [])
    assert jobs.used == {"partitions", "priority", "array", "card_milli"}


def test_new_jobs_at_the_end_are_noticed() -> None:
    jobs = a_list(*TASKS)
    assert list(jobs.order) == [10]
    jobs.apply([job_row(30)], [])
    assert list(jobs.order) == [10, 30]
    assert jobs.place(JobId(30)) == 1


def test_an_action_on_an_array_applies_to_tasks_that_have_not_ended() -> None:
    ended = failed_row(13, array=ArrayTask(ARRAY, 3))
    jobs = a_list(*TASKS, ended, failed_row(40))
    assert [row.id for row in jobs.action_targets(ARRAY)] == [10, 11, 12]
    assert [row.id for row in jobs.action_targets(JobId(40))] == [40]
    assert jobs.action_targets(JobId(99)) == []
    assert jobs.tasks(JobId(11)) == [10, 11, 12, 13]
    assert jobs.tasks(JobId(40)) == []


def test_without_arrays_the_list_is_the_jobs_own() -> None:
    jobs = a_list(job_row(1), job_row(2))
    assert jobs.order is jobs.jobs.order
    assert jobs.used == {"card_milli"}
    assert jobs.place(JobId(2)) == 1


@pytest.mark.req("JT-03", "UI-01")
def test_the_remaining_tasks_of_a_batch_are_one_row_that_counts_the_ended_ones() -> None:
    batch = ArrayTask(ARRAY, 2, count=3, last=2, batch=True)
    left = job_row(12, array=batch)
    (row,) = fold([left], all_that_live=True)
    assert (id_text(row), progress(row)) == ("10_[2]", (2, 3))
    assert fold([left]) == [left], "others may be filtered away"
    assert fold([task(3)], all_that_live=True) == [task(3)]
    jobs = a_list(left, job_row(7))
    assert list(jobs.order) == [7, 10]
    assert progress(jobs.row(ARRAY)) == (2, 3)
    assert jobs.toggle(ARRAY) == 12
    assert (list(jobs.order), jobs.toggle(JobId(12))) == ([7, 12], 10)


@pytest.mark.req("UI-01")
def test_tasks_hidden_by_a_filter_are_not_counted_as_ended() -> None:
    jobs = a_list(*TASKS)
    assert progress(jobs.row(ARRAY)) == (6, 9)
    jobs.jobs.filter_by("state:queued")
    assert progress(jobs.row(ARRAY)) == (0, 2)


REST = queued_row(900, array=ArrayTask(ARRAY, 4, 5, 3, 4, 6), tasks=(4, 5, 6), name="sweep", cpus=2, priority=8)
"""What another scheduler tells of the tasks of the array that still wait."""


@pytest.mark.req("SL-10")
def test_one_row_for_tasks_that_wait_counts_as_all_of_them() -> None:
    row = folded([task(0, running=True, cpus=1), REST])
    assert (id_text(REST), id_text(row), task_count(row)) == ("10_[4-6%5]", "10_[0,4-6%5]", 4)
    assert (row.states, row.cpus) == (((JobState.QUEUED, 3), (JobState.RUNNING, 1)), 7)
    (alone,) = standing([REST])
    assert (alone.id, alone.cpus, task_count(alone)) == (REST.id, 6, 3)
    assert progress(fold([task(0, running=True), REST], all_that_live=True)[0]) == (5, 9)


@pytest.mark.req("SL-10")
def test_waiting_tasks_in_one_record_become_rows_when_unfolded() -> None:
    shown = a_list(task(0, running=True), REST)
    assert (shown.order, len(shown.jobs.rows())) == ([ARRAY], 2)
    shown.toggle(ARRAY)
    assert [id_text(shown.row(each)) for each in shown.order] == ["10_0", "10_4", "10_5", "10_6"]
    fewer = replace(REST, tasks=(5, 6))
    shown.apply([fewer], [])
    assert len(shown.order) == 3
    shown.apply([job_row(int(task_id(ARRAY, 5)), array=ArrayTask(ARRAY, 5))], [REST.id])
    assert [shown.row(each).state for each in shown.order] == [JobState.RUNNING, JobState.RUNNING]
    shown.apply([replace(REST, tasks=(6,))], [])
    shown.toggle(shown.order[0])
    assert (shown.order, task_count(shown.row(ARRAY))) == ([ARRAY], 3)
    assert {row.id for row in shown.action_targets(ARRAY)} == {10, task_id(ARRAY, 5), REST.id}


def test_a_single_record_of_waiting_tasks_is_one_folded_row_too() -> None:
    shown = a_list(REST)
    assert id_text(shown.row(ARRAY)) == "10_[4-6%5]"
    assert [row.id for row in shown.action_targets(ARRAY)] == [REST.id]


@pytest.mark.req("SL-10")
def test_the_components_of_a_job_are_listed_together() -> None:
    parts = [queued_row(20 + each, component=(20, each), cpus=4) for each in range(3)]
    shown = a_list(*parts)
    assert (id_text(shown.row(JobId(20))), shown.row(JobId(20)).cpus) == ("20+[0-2]", 12)
    assert [row.id for row in shown.action_targets(JobId(20))] == [20]
    shown.toggle(JobId(20))
    assert [id_text(shown.row(each)) for each in shown.order] == ["20+0", "20+1", "20+2"]
