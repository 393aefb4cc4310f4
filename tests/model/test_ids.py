"""Numbers of jobs and of an array's tasks, as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.ids import JobId, index_ranges, member_id, member_of, seniority, task_id, task_of


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
