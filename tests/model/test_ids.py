"""Numbers of jobs and of an array's tasks, as people read them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.ids import (
    JobId,
    ReplicaId,
    index_ranges,
    is_apart,
    is_named,
    job_words,
    member_id,
    member_of,
    named_id,
    named_id_of,
    named_words,
    replica_id_from_folder,
    rest_id,
    seniority,
    task_id,
    task_of,
)


@pytest.mark.req("JT-25")
@pytest.mark.parametrize(
    ("indices", "said"),
    [((), ""), ((7,), "7"), ((0, 1, 2, 5), "0-2,5"), ((1, 3, 5), "1,3,5"), ((0, 1, 3, 4, 9, 10, 11), "0-1,3-4,9-11")],
)
def test_neighbours_are_a_range(indices: tuple[int, ...], said: str) -> None:
    assert index_ranges(indices) == said


@pytest.mark.req("JT-25")
@given(st.sets(st.integers(0, 60)))
def test_ranges_name_each_index_once(indices: set[int]) -> None:
    named: list[int] = []
    for part in filter(None, index_ranges(sorted(indices)).split(",")):
        low, _, high = part.partition("-")
        named += range(int(low), int(high or low) + 1)
    assert named == sorted(indices)


NUMBERS = st.integers(1, (1 << 26) - 1)
"""Slurm's job numbers."""


@pytest.mark.req("JT-25", "SL-01")
@given(NUMBERS, st.integers(0, 4_000_000))
def test_the_id_of_a_task_encodes_array_and_index_and_fits_into_json_numbers(number: int, index: int) -> None:
    task = task_id(number, index)
    assert task_of(task) == (number, index)
    assert number < task < 1 << 53
    assert task_of(number) == (number, None)


@pytest.mark.req("JT-25")
@given(st.lists(st.tuples(NUMBERS, st.integers(0, 4_000_000)), unique=True))
def test_tasks_are_sorted_by_array_then_index_and_among_jobs_by_array_id(
    pairs: list[tuple[int, int]],
) -> None:
    tasks = [task_id(*pair) for pair in pairs]
    assert [task_of(task) for task in sorted(tasks)] == sorted(pairs)
    others = [JobId(number) for number in {number for number, _ in pairs}]
    numbers = [task_of(job)[0] for job in sorted([*tasks, *others], key=seniority)]
    assert numbers == sorted(numbers)


@pytest.mark.req("UI-10")
@given(st.integers(1, 500), NUMBERS, st.integers(0, 4_000_000))
def test_the_id_of_a_members_job_encodes_the_member_and_its_own_id(member: int, number: int, index: int) -> None:
    for own in (JobId(number), task_id(number, index)):
        assert member_of(member_id(member, own)) == (member, own)
        assert task_of(member_id(member, own)) == task_of(own)
        assert seniority(member_id(member, own)) < seniority(member_id(member + 1, JobId(1)))


@pytest.mark.req("JT-25", "SL-01")
def test_jobs_tasks_and_components_are_written_as_slurm_writes_them() -> None:
    assert [job_words(each) for each in (JobId(7), task_id(7, 0), task_id(7, 12))] == ["7", "7_0", "7_12"]
    assert job_words(rest_id(7)) == "7_[…]"
    assert job_words(JobId(9), (7, 2)) == "7+2"


@pytest.mark.req("JT-25")
def test_an_array_comes_before_its_tasks_and_both_before_the_next_job() -> None:
    in_order = [JobId(6), JobId(7), task_id(7, 0), task_id(7, 1), rest_id(7), JobId(8)]
    keys = [seniority(each) for each in in_order]
    assert all(earlier < later for earlier, later in pairwise(keys))


@pytest.mark.req("UI-10")
def test_the_jobs_of_a_member_come_before_those_of_the_next_with_the_largest_array_too() -> None:
    last = member_id(1, rest_id((1 << 26) - 1))
    assert seniority(last) < seniority(member_id(2, JobId(1)))


@pytest.mark.req("UI-10")
def test_only_ids_of_tasks_and_members_are_out_of_the_order_of_submission() -> None:
    assert [is_apart(each) for each in (JobId(1), JobId((1 << 52) - 1))] == [False, False]
    assert [is_apart(each) for each in (task_id(0, 0), member_id(1, JobId(1)))] == [True, True]


@pytest.mark.req("JT-40")
def test_the_folder_of_a_replica_names_it_and_other_names_name_none() -> None:
    replica = ReplicaId(JobId(12), 2, 3)
    assert (str(replica), replica.folder) == ("12/3#2", "12.2.3")
    assert replica_id_from_folder("12.2.3") == replica
    for name in ("12.2", "12.2.3.4", "12.2.x", "12.2.٣", "12.2.", "lost+found"):
        assert replica_id_from_folder(name) is None


@pytest.mark.req("SL-01", "UI-10")
def test_the_places_of_member_array_and_index_in_an_id_never_change() -> None:
    assert task_id(7, 3) == 2**52 + 7 * 2**26 + 3
    assert rest_id(7) == 2**52 + 8 * 2**26 - 1
    assert member_id(2, JobId(5)) == 2 * 2**53 + 5
    assert seniority(member_id(2, task_id(7, 3))) == 2 * 2**80 + 7 * 2**27 + 4


_SECONDS = st.integers(0, (1 << 30) - 1)
_MIXED = st.integers(0, (1 << 32) - 1)


@pytest.mark.req("KU-01")
@given(_SECONDS, _MIXED)
def test_the_id_of_a_job_with_a_name_is_written_and_read_again(seconds: int, mixed: int) -> None:
    job = named_id(seconds, mixed)
    assert named_id_of(named_words(job)) == job
    assert job_words(job) == named_words(job)
    assert (len(named_words(job)), is_named(job), is_apart(job), task_of(job)) == (11, True, False, (job, None))
    # JSON's numbers have 53 bits.
    assert job < 1 << 53
    assert member_of(member_id(3, job)) == (3, job)


@pytest.mark.req("KU-01")
@given(_SECONDS, _SECONDS, _MIXED, _MIXED)
def test_jobs_with_names_sort_by_the_time_of_their_creation(one: int, other: int, a: int, b: int) -> None:
    first, second = sorted((one, other))
    if first != second:
        assert seniority(named_id(first, a)) < seniority(named_id(second, b))


@pytest.mark.req("KU-01")
@pytest.mark.parametrize("text", ["", "k", "k5v7500017", "k5v7500017bb", "k5v7500017u", "K5V7500017B", "x5v7500017b"])
def test_any_other_text_is_no_id(text: str) -> None:
    assert named_id_of(text) is None


@pytest.mark.req("KU-01")
def test_numbers_and_tasks_are_not_named() -> None:
    assert not any(map(is_named, (1, (1 << 50) - 1, task_id(3, 4), rest_id(3))))
