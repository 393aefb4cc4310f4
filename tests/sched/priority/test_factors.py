from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.ids import Millis
from cockpit.model.priority import FactorName, Part
from cockpit.sched.priority.factors import (
    MOST,
    Size,
    age,
    clamped,
    job_size,
    job_size_by_time,
    normalised,
    weighted_sum,
)

pytestmark = pytest.mark.req("SC-01")

T = 1_700_000_000_000
CLUSTER = Size(4.0, 40.0)


def at(seconds: float) -> Millis:
    return Millis(int(T + 1000 * seconds))


class TestAge:
    def test_the_age_factor_is_the_fraction_of_the_greatest_age_that_counts(self):
        assert age(at(0), at(25), 100) == 0.25

    def test_the_age_factor_is_at_most_one(self):
        assert age(at(0), at(100), 100) == age(at(0), at(1000), 100) == 1.0

    def test_the_age_factor_is_zero_while_the_age_does_not_count(self):
        assert age(None, at(50), 100) == 0.0

    def test_the_age_factor_is_zero_for_jobs_submitted_after_the_last_pass(self):
        assert age(at(60), at(50), 100) == 0.0

    def test_the_age_factor_of_whole_seconds_equals_that_of_seconds(self):
        """Slurm divides seconds; milliseconds give the same double."""
        assert age(at(0), at(123_457), 604_800) == 123_457 / 604_800

    @given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**7))
    def test_the_age_factor_grows_with_time(self, early: int, late: int, most: int):
        early, late = sorted((early, late))
        assert 0 <= age(Millis(T), Millis(T + early), most) <= age(Millis(T), Millis(T + late), most) <= 1


class TestPriorityOfMost:
    def test_a_normalised_priority_is_a_fraction_of_the_highest(self):
        assert normalised(10, 500, raw=False) == 10 / 500

    def test_a_normalised_priority_is_zero_where_the_highest_value_is_zero(self):
        assert normalised(0, 0, raw=False) == 0.0

    def test_a_priority_is_not_normalized_under_no_normal(self):
        assert normalised(10, 500, raw=True) == 10.0


class TestSize:
    def test_the_job_size_factor_is_nodes_and_cpus_by_half(self):
        assert job_size(Size(2, 16), CLUSTER, small=False) == (2 / 4 + 16 / 40) / 2

    def test_the_job_size_factor_that_favours_small_jobs_is_the_rest_to_one(self):
        assert job_size(Size(2, 16), CLUSTER, small=True) == (2 / 4 + 24 / 40) / 2

    def test_the_job_size_factor_beyond_the_cluster_is_one_or_zero(self):
        assert job_size(Size(9, 99), CLUSTER, small=False) == 1.0
        assert job_size(Size(9, 99), CLUSTER, small=True) == 0.0

    def test_the_job_size_factor_on_no_nodes_is_zero(self):
        assert (
            job_size(Size(1, 1), Size(0, 0), small=False)
            == job_size_by_time(Size(1, 1), Size(0, 0), 60, small=True)
            == 0
        )

    @pytest.mark.parametrize(("limit", "minutes"), [(60, 1), (61, 2), (3600, 60), (1, 1)])
    def test_the_job_size_factor_by_time_is_cpus_per_minute(self, limit: int, minutes: int):
        assert job_size_by_time(Size(1, 16), CLUSTER, limit, small=False) == 16 / minutes / 40

    def test_the_job_size_factor_by_time_counts_average_nodes_where_they_are_more(self):
        assert job_size_by_time(Size(2, 4), CLUSTER, 600, small=False) == 2 * 40 / 4 / 10 / 40

    def test_the_job_size_factor_by_time_that_favours_small_jobs_is_the_rest_to_one(self):
        assert job_size_by_time(Size(2, 4), CLUSTER, 600, small=True) == 1 - 2 * 40 / 4 / 10 / 40

    @given(*[st.floats(0, 1e6)] * 2, *[st.floats(1, 1e6)] * 2, st.integers(1, 10**8), st.booleans())
    def test_the_job_size_factor_is_between_zero_and_one(self, nodes, cpus, all_nodes, all_cpus, limit, small):
        job, cluster = Size(nodes, cpus), Size(all_nodes, all_cpus)
        assert 0 <= job_size(job, cluster, small=small) <= 1
        assert 0 <= job_size_by_time(job, cluster, limit, small=small) <= 1


def part(name: FactorName, contribution: float, tres: str = "") -> Part:
    return Part(name, contribution, 1.0, contribution, tres)


class TestSum:
    def test_the_priority_sum_is_of_all_parts_less_nice(self):
        parts = [part(FactorName.AGE, 10.5), part(FactorName.SITE, 777.0), part(FactorName.TRES, 3.0, "cpu")]
        assert weighted_sum(parts, 90) == 700.5

    def test_the_priority_sum_adds_resources_among_themselves_first(self):
        """In doubles the order shows."""
        parts = [part(FactorName.AGE, 0.1), part(FactorName.TRES, 0.2, "cpu"), part(FactorName.TRES, 0.3, "mem")]
        assert weighted_sum(parts, 0) == 0.1 + (0.2 + 0.3) != 0.1 + 0.2 + 0.3

    @pytest.mark.parametrize(
        ("priority", "total"),
        [(0.0, 1), (-5.0, 1), (0.99, 1), (1.0, 1), (1.99, 1), (12.5, 12), (4294967295.9, MOST), (1e30, MOST)],
    )
    def test_the_priority_sum_is_clamped_and_truncated(self, priority: float, total: int):
        assert clamped(priority) == total
