"""Priorities of a long queue, every factor of every job in each of its partitions, and the order that they make."""

from __future__ import annotations

import gc
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from cockpit.sched.priority.priorities import PriorityTable, prioritised
from tests.sched.crowd import Crowd, cluster_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.figures import Figures

JOBS = 100_000
ROUNDS = 41
CHANGED = 50


@pytest.fixture(scope="module")
def crowd() -> Iterator[Crowd]:
    crowd = Crowd(JOBS, cluster_of())
    gc.collect()
    gc.freeze()
    yield crowd
    gc.unfreeze()


def milliseconds(crowd: Crowd, change: Callable[[], None]) -> float:
    """The median over rounds; every round's table is made from the last one's."""
    table: PriorityTable | None = prioritised(crowd.snapshot())
    taken = []
    for _ in range(ROUNDS):
        change()
        snapshot = crowd.snapshot()
        last = table  # which stays until then: a crowd's snapshot is a copy, a machine's is not
        before = perf_counter()
        table = prioritised(snapshot, last)
        taken.append((perf_counter() - before) * 1000)
    return median(taken)


def test_a_pass_over_usage(figure: Figures, crowd: Crowd):
    """All ages and all fair shares are new."""
    taken = milliseconds(crowd, lambda: crowd.pass_over_usage(300))
    figure("PF-02", "priorities with their parts, 100 000 jobs", taken)


def test_between_two_passes(figure: Figures, crowd: Crowd):
    def change() -> None:
        for _ in range(CHANGED):
            crowd.submit()
            crowd.start(crowd.any_job().id)

    figure("PF-02", "of it, after 100 of them changed", milliseconds(crowd, change))


def test_from_nothing(figure: Figures, crowd: Crowd):
    snapshot = crowd.snapshot()
    before = perf_counter()
    prioritised(snapshot)
    figure("PF-02", "of it, from nothing: the rules are new", (perf_counter() - before) * 1000)
