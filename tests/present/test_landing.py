from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ArrayTask, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held, NeverFits, Resource
from cockpit.present.columns import Context
from cockpit.present.job.folded_list import FoldedList
from cockpit.present.job.list import JobList
from cockpit.present.landing import Rank, landing_keys, landing_order, rank_of
from tests.doubles.samples import HOUR, NOW, failed_row, job_row, queued_row

pytestmark = pytest.mark.req("UI-13")
NEVER = NeverFits(Resource.CARDS, 16, 8)


def ended(job: int, user: str, state: JobState = JobState.SUCCEEDED) -> JobRow:
    return failed_row(job, user=user, state=state, held_until=None, exit_code=0)


@pytest.mark.parametrize(
    ("row", "rank"),
    [
        (failed_row(1, user="ann"), Rank.NEEDS_YOU),
        (failed_row(1, user="ann", held_until=None), Rank.NEEDS_YOU),
        (ended(1, "ann", JobState.EXPIRED), Rank.NEEDS_YOU),
        (queued_row(1, user="ann", reason=Held("root", Millis(NOW - HOUR))), Rank.NEEDS_YOU),
        (queued_row(1, user="ann", reason=NEVER), Rank.NEEDS_YOU),
        (queued_row(1, user="ann"), Rank.MY_QUEUED),
        (queued_row(1, user="ann", reason=None), Rank.MY_QUEUED),
        (job_row(1, user="ann"), Rank.MY_RUNNING),
        (job_row(1, user="ann", state=JobState.STAGING), Rank.MY_RUNNING),
        (job_row(1, user="bob"), Rank.RUNNING),
        (job_row(1, user="bob", state=JobState.SUSPENDED), Rank.RUNNING),
        (queued_row(1, user="bob", reason=NEVER), Rank.QUEUED),
        (ended(1, "ann"), Rank.MY_ENDED),
        (ended(1, "ann", JobState.STOPPED), Rank.MY_ENDED),
        (failed_row(1, user="bob"), Rank.ENDED),
    ],
)
def test_each_job_has_its_group(row: JobRow, rank: Rank) -> None:
    assert rank_of(row, "ann") is rank


def rows_of_all_groups() -> list[JobRow]:
    """Two of each group, in order of submission, which is that of no group."""
    made = (
        lambda job: ended(job, "bob"),
        lambda job: ended(job, "ann"),
        lambda job: queued_row(job, user="bob"),
        lambda job: job_row(job, user="bob"),
        lambda job: job_row(job, user="ann"),
        lambda job: queued_row(job, user="ann"),
        lambda job: failed_row(job, user="ann"),
    )
    return [make(job) for job, make in enumerate((*made, *made), 1)]


IN_ORDER = [14, 7, 6, 13, 5, 12, 4, 11, 3, 10, 9, 2, 8, 1]
"""The last failure and the last end first; what waits or runs as it was submitted."""


def test_the_list_opens_on_what_needs_the_user() -> None:
    rows = rows_of_all_groups()
    assert landing_order(rows, "ann") == IN_ORDER
    keys = landing_keys(rows, [row.id for row in rows], "ann")
    assert [row.id for _, row in sorted(zip(keys, rows, strict=True), key=lambda pair: pair[0])] == IN_ORDER


def test_a_job_that_fails_moves_to_the_top() -> None:
    jobs = JobList(lambda: Context(now=NOW, zone=UTC, user="ann"))
    jobs.apply(rows_of_all_groups(), ())
    assert list(jobs.order) == IN_ORDER
    jobs.apply([failed_row(5, user="ann")], ())
    assert list(jobs.order)[:3] == [14, 7, 5]
    jobs.sort_by("id", descending=False)
    assert list(jobs.order) == sorted(IN_ORDER)
    jobs.sort_by("", descending=False)
    assert list(jobs.order)[:3] == [14, 7, 5]


def test_unfolded_tasks_of_an_array_stand_together() -> None:
    tasks = [
        replace(make(10 + index, user="ann", name="sweep"), array=ArrayTask(JobId(10), index, 0, 3, 0, 2))
        for index, make in enumerate((job_row, queued_row, failed_row))
    ]
    jobs = FoldedList(JobList(lambda: Context(now=NOW, zone=UTC, user="ann")))
    jobs.replace_all([queued_row(9, user="ann"), *tasks, queued_row(20, user="ann")])
    assert list(jobs.order) == [10, 9, 20]
    jobs.toggle(JobId(10))
    assert list(jobs.order) == [10, 11, 12, 9, 20]
    jobs.jobs.sort_by("state", descending=False)
    assert list(jobs.order) == [12, 9, 11, 20, 10]
