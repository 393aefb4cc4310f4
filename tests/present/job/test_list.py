from __future__ import annotations

from datetime import UTC
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis, member_id, rest_id, task_id
from cockpit.model.job import ENDED, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held
from cockpit.present.columns import Context
from cockpit.present.filters import FilterError, compile_filter
from cockpit.present.job.list import JobList
from cockpit.present.sorting import sorted_rows
from cockpit.present.tables.jobs import JOBS
from tests.doubles.samples import HOUR, NOW, five_jobs, job_row

CONTEXT = Context(now=NOW, zone=UTC, user="bob")
FILTERS = ["", "state:queued", "user:me", "name~a", "cards>=1", "a", "bert", "!b state:running", "wait>1h"]
COLUMNS = ["", "id", "name", "user", "state", "cards", "started_at", "exit_code", "elapsed", "why"]


def a_list(rows: list[JobRow]) -> JobList:
    jobs = JobList(lambda: CONTEXT)
    jobs.apply(rows, ())
    return jobs


def fresh_order(rows: list[JobRow], text: str, column: str, *, descending: bool) -> list[int]:
    """What the order must be, made from nothing."""
    matches = compile_filter(text, JOBS)
    shown = [row for row in sorted(rows, key=lambda row: row.id) if matches(row, CONTEXT)]
    found = JOBS.find(column)
    if found is None:
        return [row.id for row in sorted(shown, key=landing_place)]
    return [row.id for row in sorted_rows(shown, [(found, descending)], CONTEXT)]


def landing_place(row: JobRow) -> tuple[int, int]:
    """The group and the place in it of bob's list."""
    mine, ended = row.user == "bob", row.state in ENDED
    if mine and (row.state is JobState.ERROR or isinstance(row.reason, Held)):
        return 0, -row.id
    if ended:
        return (5 if mine else 6), -row.id
    group = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}
    return group[mine, row.state is JobState.QUEUED], row.id


def random_row(random: Random, job: int) -> JobRow:
    return job_row(
        job,
        name=random.choice(["bert", "Anna", "vit", "größe", "a|b", "\x1bx"]) + str(random.randrange(20)),
        user=random.choice(["ann", "bob"]),
        state=random.choice([JobState.RUNNING, JobState.QUEUED, JobState.ERROR, JobState.SUCCEEDED]),
        started_at=random.choice([None, NOW - HOUR, NOW - 2 * HOUR]),
        exit_code=random.choice([None, 0, 3]),
        card_milli=random.choice([0, 500, 4000]),
        version=random.randrange(10**9),
    )


@given(
    seed=st.integers(0, 10**6),
    text=st.sampled_from(FILTERS),
    column=st.sampled_from(COLUMNS),
    descending=st.booleans(),
    number=st.integers(0, 400),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.req("PF-17", "UI-23")
def test_an_incrementally_updated_list_equals_a_new_one(
    seed: int, text: str, column: str, descending: bool, number: int
) -> None:
    random = Random(seed)
    rows = {job: random_row(random, job) for job in range(1, number)}
    jobs = a_list(list(rows.values()))
    jobs.filter_by(text)
    jobs.sort_by(column, descending=descending)
    for _ in range(5):
        changed = [random_row(random, random.randrange(1, number + 50)) for _ in range(random.randrange(20))]
        rows |= {row.id: row for row in changed}
        removed = random.sample(sorted(rows), min(len(rows), 3))
        removed = [job for job in removed if job not in {row.id for row in changed}]
        for job in removed:
            del rows[job]
        jobs.apply(changed, [JobId(job) for job in removed])
        assert list(jobs.order) == fresh_order(list(rows.values()), text, column, descending=descending)
        assert [jobs.place(job) for job in jobs.order] == list(range(len(jobs.order)))
        assert sum(jobs.counts.values()) == len(rows)


def test_a_change_names_the_shown_rows_and_whether_they_moved() -> None:
    jobs = a_list([job_row(1, name="one"), job_row(2, name="two"), job_row(3, name="three", user="bob")])
    jobs.filter_by("user:ann")
    jobs.sort_by("name", descending=False)
    assert list(jobs.order) == [1, 2]
    assert jobs.apply([job_row(1, name="one", version=2)], ()) == ([1], False)
    assert jobs.apply([job_row(1, name="zero", version=3)], ()) == ([1], True)
    assert list(jobs.order) == [2, 1]
    assert jobs.apply([job_row(3, name="hidden", user="bob", version=2)], ()) == ([], False)
    assert jobs.apply([], [JobId(2)]) == ([], True)
    assert jobs.apply([], [JobId(2)]) == ([], False)


def test_a_row_that_no_longer_matches_is_removed_and_may_return() -> None:
    jobs = a_list([job_row(1), job_row(2)])
    jobs.filter_by("state:running")
    ended = replace(job_row(1), state=JobState.SUCCEEDED)
    assert jobs.apply([ended], ()) == ([], True)
    assert list(jobs.order) == [2]
    assert jobs.apply([job_row(1)], ()) == ([1], True)
    assert jobs.counts == {"running": 2}


def test_counts_are_of_all_jobs_whatever_is_shown() -> None:
    jobs = a_list(five_jobs())
    jobs.filter_by("no such job")
    assert list(jobs.order) == []
    assert jobs.counts == {"running": 2, "queued": 2, "error": 1}


def test_mine_shows_the_jobs_the_user_submitted() -> None:
    jobs = a_list([job_row(1, user="ann"), job_row(2, user="bob")])
    jobs.show_mine(True)
    assert list(jobs.order) == [2]


def test_time_alone_can_change_what_is_shown() -> None:
    moments = [NOW]
    jobs = JobList(lambda: Context(now=moments[-1], zone=UTC))
    jobs.apply([job_row(1, started_at=None, submitted_at=NOW - HOUR, state=JobState.QUEUED)], ())
    jobs.filter_by("wait>2h")
    assert list(jobs.order) == []
    moments.append(NOW + 2 * HOUR)
    assert jobs.renew()
    assert list(jobs.order) == [1]


def test_an_invalid_filter_changes_no_row() -> None:
    jobs = a_list(five_jobs())
    jobs.filter_by("state:running")
    before = list(jobs.order)
    with pytest.raises(FilterError):
        jobs.filter_by("no_such_column:1")
    jobs.apply([job_row(9)], ())
    assert list(jobs.order) == sorted([*before, 9])


def test_a_word_typed_letter_by_letter_finds_what_it_finds_at_once() -> None:
    jobs = a_list(five_jobs())
    for typed in ("b", "be", "ber", "bert"):
        jobs.filter_by(typed)
    assert list(jobs.order) == [4715]
    jobs.apply([job_row(1, name="bertha")], ())
    assert list(jobs.order) == [4715, 1]
    jobs.filter_by("b")
    assert set(jobs.order) > {1, 4715}


def test_removed_rows_are_dropped_from_the_cache() -> None:
    jobs = a_list([job_row(1, name="old")])
    jobs.filter_by("old")
    jobs.apply([job_row(1, name="new")], ())
    assert list(jobs.order) == []
    jobs.replace_all([job_row(1, name="old")])
    assert list(jobs.order) == [1]


@given(
    seed=st.integers(0, 10**6),
    word=st.sampled_from(
        ["1", "12", "0:0", "10-05", "a", "e", "held", "–", "running", "G", "16384", "wait", "\x1b", "ß"]
    ),
)
@settings(max_examples=80, deadline=None)
@pytest.mark.req("PF-17", "UI-22")
def test_a_cached_row_is_found_by_the_words_of_its_cells_only(seed: int, word: str) -> None:
    random = Random(seed)
    moments = [NOW]
    rows = [replace(random_row(random, job), held_until=random.choice([None, NOW + HOUR])) for job in range(1, 60)]
    jobs = JobList(lambda: context_at(moments[-1]))
    jobs.apply(rows, ())
    for later in (0, 61_000, 3 * HOUR, 40 * 24 * HOUR):
        moments.append(NOW + later)
        jobs.filter_by("")
        jobs.filter_by(word)
        cells = zip(*(column.texts(rows, context_at(moments[-1])) for column in JOBS.columns), strict=True)
        shown = ["\n".join((row.name, *texts)).casefold() for row, texts in zip(rows, cells, strict=True)]
        matching = [row.id for row, text in zip(rows, shown, strict=True) if word.casefold() in text]
        assert sorted(jobs.order) == matching


def context_at(moment: int) -> Context:
    return Context(now=Millis(moment), zone=UTC, user="bob")


@pytest.mark.req("SL-10", "UI-01")
def test_tasks_named_by_two_numbers_are_sorted_with_their_array() -> None:
    in_order = [JobId(9), task_id(10, 0), task_id(10, 2), rest_id(10), JobId(11), JobId(12)]
    jobs = a_list([job_row(job) for job in (11, 9, 12)])
    jobs.apply([job_row(job) for job in (rest_id(10), task_id(10, 2))], ())
    jobs.apply([job_row(task_id(10, 0))], ())
    assert list(jobs.order) == in_order
    assert [jobs.place(job) for job in in_order] == list(range(len(in_order)))
    assert list(a_list([job_row(job) for job in reversed(in_order)]).order) == in_order
    fleet = [member_id(member, job) for member in (1, 2) for job in in_order]
    assert list(a_list([job_row(job) for job in sorted(fleet)]).order) == fleet


@pytest.mark.req("SL-10", "UI-01")
def test_a_list_whose_rows_are_all_replaced_sorts_tasks_with_their_array_and_moves_them_right() -> None:
    in_order = [JobId(9), task_id(10, 0), task_id(10, 2), JobId(11), JobId(12)]
    jobs = a_list([job_row(9)])
    jobs.replace_all([job_row(job) for job in reversed(in_order) if job != task_id(10, 2)])
    assert list(jobs.order) == [job for job in in_order if job != task_id(10, 2)]
    jobs.apply([job_row(task_id(10, 2))], ())
    assert list(jobs.order) == in_order


@pytest.mark.req("UI-01")
def test_counts_are_of_the_rows_that_replaced_all_others() -> None:
    jobs = a_list(five_jobs())
    jobs.replace_all(five_jobs()[:2])
    assert jobs.counts == {"running": 1, "queued": 1}
