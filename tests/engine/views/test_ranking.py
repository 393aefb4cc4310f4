from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.engine.views.ranking import breakdowns, present_order, ranked, tried_order
from cockpit.model.cluster import Cluster, Partition, Priority, PriorityKind, Weights
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ArrayTask, Job
from cockpit.model.priority import FactorName, WeightChanges
from cockpit.sched.priority.priorities import prioritised
from cockpit.sched.snapshot import Snapshot
from tests.builders import ANN, BOB, HOUR, NOON, a_node, a_spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.view import PriorityRow

NODE = a_node(cpus=100)
AGES = Cluster(priority=Priority(kind=PriorityKind.MULTIFACTOR, weights=Weights(age=1000), max_age_seconds=36_000))


def a_job(number: int, hours: int = 0, **fields: object) -> Job:
    """Waits for so many hours, of the ten that count."""
    waiting = Job(
        id=JobId(number),
        spec=a_spec(f"job-{number}", cpus=number),
        submitter=ANN,
        project="p",
        submitted_at=NOON,
        state_since=NOON,
        accrues_from=Millis(NOON - hours * HOUR),
    )
    return replace(waiting, **fields)


def snapshot(*jobs: Job, cluster: Cluster = AGES) -> Snapshot:
    return Snapshot(
        version=1,
        now=NOON,
        nodes={NODE.name: NODE},
        nodes_version=1,
        queue=jobs,
        occupied={},
        ends={},
        changes=(),
        changes_from=0,
        cluster=cluster,
        usage_at=NOON,
    )


def rows(taken: Snapshot, may_see: Callable[[Job], bool] = lambda _: True) -> list[PriorityRow]:
    return list(ranked(prioritised(taken), {job.id: job for job in taken.queue}, may_see))


def places(found: list[PriorityRow]) -> list[tuple[int, int | None]]:
    return [(row.job, row.position) for row in found]


@pytest.mark.req("SC-01")
def test_rows_are_in_order_of_priority_with_its_factors() -> None:
    first, second = rows(snapshot(a_job(1, 2), a_job(2, 5, account="nlp", qos="high")))
    assert (first.job, first.position, first.account, first.qos) == (2, 1, "nlp", "high")
    assert first.breakdown is not None
    assert first.breakdown.total == 500
    (age,) = [part for part in first.breakdown.parts if part.name is FactorName.AGE]
    assert (age.raw, age.weight, age.contribution) == (0.5, 1000, 500.0)
    assert (second.job, second.position) == (1, 2)


def test_held_jobs_are_last_and_have_no_position() -> None:
    found = rows(snapshot(a_job(1, 9, held_by="ann"), a_job(2)))
    assert places(found) == [(2, 1), (1, None)]
    assert found[1].breakdown is not None
    assert found[1].breakdown.total == 0


def test_a_position_counts_the_jobs_before_it_in_all_partitions() -> None:
    cluster = replace(AGES, partitions=(Partition(name="slow"), Partition(name="fast", priority_tier=9)))
    both, one = a_job(1, 3, partitions=("slow", "fast")), a_job(2, 5, partitions=("slow",))
    found = rows(snapshot(both, one, cluster=cluster))
    assert [(row.job, row.partition, row.position) for row in found] == [(1, "fast", 1), (2, "slow", 2), (1, "slow", 2)]


@pytest.mark.req("JT-60")
def test_only_the_position_of_a_job_hidden_from_the_user_is_shown() -> None:
    theirs = a_job(1, 9, submitter=BOB, account="nlp", array=ArrayTask(JobId(1), 0))
    held = a_job(3, 9, submitter=BOB, held_by="bob")
    hidden, mine = rows(snapshot(theirs, a_job(2), held), lambda job: job.submitter is ANN)
    assert places([hidden, mine]) == [(0, 1), (2, 2)]
    assert {hidden.name, hidden.user, hidden.account, hidden.qos} == {"-"}
    assert (hidden.breakdown, hidden.task, hidden.total_before) == (None, None, None)


def test_trial_weights_reorder_jobs_and_show_their_previous_positions() -> None:
    taken = snapshot(a_job(1, 5), a_job(90, 4))
    before = prioritised(taken)
    changed, table = tried_order(taken, WeightChanges(age=0, job_size=100))
    found = list(ranked(table, {job.id: job for job in taken.queue}, lambda _: True, before))
    assert [(row.job, row.position, row.position_before, row.total_before) for row in found] == [
        (90, 1, 2, 400),
        (1, 2, 1, 500),
    ]
    assert changed.cluster.priority.weights == Weights(age=0, job_size=100)
    assert prioritised(taken).order == before.order


def test_other_weights_can_be_tried_where_jobs_are_served_in_order_of_submission() -> None:
    taken = snapshot(a_job(1), a_job(2, 5), cluster=Cluster())
    before = prioritised(taken)
    changed, table = tried_order(taken, WeightChanges(age=1000))
    found = list(ranked(table, {job.id: job for job in taken.queue}, lambda _: True, before))
    assert changed.cluster.priority.kind is PriorityKind.MULTIFACTOR
    assert [(row.job, row.position_before, row.total_before) for row in found] == [(2, 2, None), (1, 1, None)]


def test_the_last_order_is_reused_until_a_job_is_added() -> None:
    last = prioritised(snapshot(a_job(1), a_job(2)))
    assert present_order(snapshot(a_job(2)), last) is last
    assert [job.id for job, _ in present_order(snapshot(a_job(2), a_job(3, 4)), last).order] == [3, 2]
    assert present_order(snapshot(), None).order == []
    assert places(list(ranked(last, {JobId(2): a_job(2)}, lambda _: True))) == [(2, 1)]


def test_the_priorities_of_one_job_are_listed_best_first() -> None:
    parts = (Partition(name="slow", priority_job_factor=1), Partition(name="fast", priority_job_factor=4))
    weights = replace(AGES.priority, weights=Weights(partition=100))
    job = a_job(1, partitions=("slow", "fast"))
    table = prioritised(snapshot(job, cluster=replace(AGES, partitions=parts, priority=weights)))
    assert [(each.partition, each.total) for each in breakdowns(table, job)] == [("fast", 100), ("slow", 25)]
