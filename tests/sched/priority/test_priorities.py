"""The table: its order, what it says of a job, and that it is the same whatever it was made from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.model.cluster import Cluster, Partition, PriorityFlag, Weights
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job, JobState
from cockpit.model.priority import FactorName
from cockpit.model.spec import PriorityWord
from cockpit.sched.priority import priorities
from cockpit.sched.priority.factors import MOST, clamped, weighted_sum
from cockpit.sched.priority.priorities import PriorityTable, highest, prioritised
from cockpit.sched.snapshot import Snapshot
from tests.sched.crowd import WEIGHTS, Crowd, cluster_of
from tests.sched.world import World, wants

pytestmark = pytest.mark.req("SC-01")

FLAGS = (
    (),
    (PriorityFlag.NO_FAIR_TREE,),
    (PriorityFlag.NO_FAIR_TREE, PriorityFlag.DEPTH_OBLIVIOUS),
    (PriorityFlag.SMALL_RELATIVE_TO_TIME, PriorityFlag.ACCRUE_ALWAYS),
    (PriorityFlag.NO_NORMAL_ALL,),
    (PriorityFlag.NO_NORMAL_TRES, PriorityFlag.MAX_TRES),
)
NO_QOS_WEIGHT = replace(WEIGHTS, qos=0)


def places(table: PriorityTable) -> list[tuple[int, str]]:
    return [(job.id, name) for job, name in table.order]


def totals(table: PriorityTable) -> list[int]:
    return [table.breakdown(job, name).total for job, name in table.order]


def in_columns(snapshot: Snapshot, table: PriorityTable | None = None) -> PriorityTable:
    """As a long queue would be."""
    few, priorities.FEW = priorities.FEW, -1
    try:
        made = prioritised(snapshot, table)
    finally:
        priorities.FEW = few
    assert made.columns is not None
    return made


class Line:
    """A queue in which every job is as the first but for what is said."""

    def __init__(self, weights: Weights = Weights(), *flags: PriorityFlag, **cluster) -> None:  # noqa: B008 - frozen
        self.crowd = Crowd(0, replace(cluster_of(*flags, weights=weights), **cluster))
        self.jobs = 0

    def add(self, word: PriorityWord = PriorityWord.NORMAL, nice: int = 0, **fields) -> JobId:
        self.jobs += 1
        world = World()
        world.submit(wants(), nice=nice, priority=word)
        fields = {"submitted_at": Millis(1000 * self.jobs), "partitions": ("batch",), **fields}
        self.crowd.put(replace(world.queue[0], id=JobId(self.jobs), **fields))
        return JobId(self.jobs)

    def table(self) -> PriorityTable:
        """However it is made."""
        snapshot = self.crowd.snapshot(seen=False)
        table = prioritised(snapshot)
        assert places(table) == places(in_columns(snapshot))
        return table

    def order(self) -> list[int]:
        return [job.id for job, _ in self.table().order]


class TestOrder:
    def test_the_order_is_by_priority(self):
        line = Line()
        line.add(site_factor=5)
        line.add(site_factor=7)
        line.add(site_factor=6)
        assert line.order() == [2, 3, 1]

    def test_the_order_is_first_by_the_tier_of_the_partition(self):
        line = Line()
        line.add(site_factor=5)
        line.add(partitions=("first",))
        assert line.order() == [2, 1]

    def test_equal_priorities_are_ordered_by_urgency_where_qos_has_no_weight(self):
        line = Line()
        line.add()
        line.add(PriorityWord.URGENT)
        line.add(PriorityWord.VERY_URGENT)
        line.add(PriorityWord.URGENT)
        assert line.order() == [3, 2, 4, 1]

    def test_the_order_ignores_urgency_where_qos_has_a_weight(self):
        line = Line(Weights(qos=1))
        line.add()
        line.add(PriorityWord.VERY_URGENT)
        assert line.order() == [1, 2]

    def test_urgency_is_less_than_one_point_of_priority(self):
        line = Line()
        line.add(PriorityWord.VERY_URGENT, site_factor=1)
        line.add(site_factor=2)
        assert line.order() == [2, 1]

    def test_equal_priorities_are_ordered_by_submission_then_id(self):
        line = Line()
        for submitted in (30, 10, 20, 10):
            line.add(submitted_at=Millis(submitted))
        assert line.order() == [2, 4, 3, 1]

    def test_held_jobs_are_last_in_their_tier(self):
        line = Line()
        line.add(held_by="ann", site_factor=1000)
        line.add()
        line.add(held_by="ann", partitions=("first",))
        assert line.order() == [3, 2, 1]

    def test_a_job_has_one_entry_for_each_partition(self):
        line = Line(Weights(partition=100))
        line.add(partitions=("batch", "gpu"))
        line.add(partitions=("batch",))
        line.add(partitions=("gpu", "batch", "first"))
        assert places(line.table()) == [(3, "first"), (1, "gpu"), (3, "gpu"), (1, "batch"), (2, "batch"), (3, "batch")]

    def test_equal_partitions_are_in_the_order_in_which_the_job_lists_them(self):
        line = Line()
        line.add(partitions=("gpu", "batch"))
        assert places(line.table()) == [(1, "gpu"), (1, "batch")]

    def test_the_order_can_be_read_at_an_index_without_iteration(self):
        line = Line()
        for _ in range(5):
            line.add()
        snapshot = line.crowd.snapshot()
        one, other = prioritised(snapshot).order, in_columns(snapshot).order
        assert len(one) == len(other) == 5
        assert (one[0], one[-1], list(one[1:3])) == (other[0], other[-1], list(other[1:3]))
        with pytest.raises(IndexError):
            other[5]


class TestBasic:
    def test_basic_priority_is_the_order_of_submission(self):
        world = World()
        for _ in range(3):
            world.submit(wants())
        table = prioritised(world.snapshot())
        assert table.order == [(job, "") for job in world.queue]
        assert totals(table) == [MOST - 1, MOST - 2, MOST - 3]

    def test_basic_priority_counts_only_tiers(self):
        world = World()
        for _ in range(3):
            world.submit(wants())
        queue = [
            replace(job, partitions=names) for job, names in zip(world.queue, (("a",), ("b",), ("b", "a")), strict=True)
        ]
        cluster = Cluster(partitions=(Partition(name="a"), Partition(name="b", priority_tier=2)))
        table = prioritised(replace(world.snapshot(), queue=queue, cluster=cluster))
        assert places(table) == [(2, "b"), (3, "b"), (1, "a"), (3, "a")]

    def test_basic_priority_says_that_a_job_is_held(self):
        world = World()
        world.submit(wants(), held_by="ann")
        assert totals(prioritised(world.snapshot())) == [0]


class TestBreakdown:
    def test_a_breakdown_has_every_factor_in_sprios_order(self):
        line = Line(WEIGHTS)
        line.add()
        table = line.table()
        found = table.breakdown(line.crowd.queue[JobId(1)], "batch")
        assert [part.name for part in found.parts] == [*FactorName][:-1] + [FactorName.TRES] * 5
        assert [part.tres for part in found.parts[-5:]] == ["cpu", "mem", "billing", "gres/gpu", "gres/gpu:h100"]
        assert all(part.contribution == part.raw * part.weight for part in found.parts)

    def test_a_breakdown_of_a_held_job_is_zero(self):
        line = Line(WEIGHTS)
        line.add(held_by="ann", direct_priority=5)
        line.add(held_by="ann")
        assert totals(line.table()) == [0, 0]

    def test_a_breakdown_of_a_set_priority_has_no_factors(self):
        line = Line(WEIGHTS)
        line.add(direct_priority=5, nice=3)
        line.add(direct_priority=0)
        first, second = (line.table().breakdown(job, name) for job, name in line.table().order)
        assert (first.total, first.parts, first.nice, first.direct) == (5, (), 3, True)
        assert (second.total, second.direct) == (0, True)

    def test_the_total_subtracts_nice_and_is_at_least_one(self):
        line = Line()
        line.add(nice=40, site_factor=100)
        line.add(nice=400, site_factor=100)
        line.add(nice=-(2**31), site_factor=2**31)
        assert totals(line.table()) == [MOST, 60, 1]

    def test_a_breakdown_of_a_job_without_an_account_has_no_fair_share(self):
        line = Line(WEIGHTS)
        line.add(account="")
        found = {part.name: part.raw for part in line.table().breakdown(line.crowd.queue[JobId(1)], "batch").parts}
        assert found[FactorName.FAIRSHARE] == found[FactorName.ASSOC] == 0


class TestIncrementOnly:
    def flagged(self, made) -> None:
        line = Line(Weights(age=0), PriorityFlag.INCREMENT_ONLY)
        low, high = line.add(site_factor=50), line.add(site_factor=60)
        kept = highest(line.crowd.snapshot())
        assert kept == {low: {"batch": 50}, high: {"batch": 60}}
        line.crowd.put(replace(line.crowd.queue[low], site_factor=80))
        line.crowd.put(replace(line.crowd.queue[high], site_factor=10))
        table = made(replace(line.crowd.snapshot(), highest=kept))
        assert (places(table), totals(table)) == ([(low, "batch"), (high, "batch")], [80, 60])
        assert [table.breakdown(line.crowd.queue[job], "batch").kept for job in (low, high)] == [False, True]
        line.crowd.put(replace(line.crowd.queue[low], held_by="ann"))
        seen = replace(line.crowd.snapshot(), highest=kept)
        table = made(seen, table)
        assert (places(table), totals(table)) == ([(high, "batch"), (low, "batch")], [60, 0])
        assert highest(seen) == {high: {"batch": 60}}

    def test_no_priority_falls(self):
        self.flagged(prioritised)

    def test_no_priority_falls_in_columns_either(self):
        self.flagged(in_columns)

    def test_priorities_fall_without_increment_only(self):
        line = Line()
        low = line.add(site_factor=50)
        assert highest(line.crowd.snapshot()) == {}
        line.crowd.put(replace(line.crowd.queue[low], site_factor=20))
        assert totals(prioritised(replace(line.crowd.snapshot(), highest={low: {"batch": 50}}))) == [20]


@pytest.mark.req("PF-02", "SC-01")
@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: "-".join(flags) or "plain")
@pytest.mark.parametrize("weights", [WEIGHTS, NO_QOS_WEIGHT], ids=["qos", "no-qos"])
def test_columns_give_the_same_doubles(flags: tuple[PriorityFlag, ...], weights: Weights):
    snapshot = Crowd(400, cluster_of(*flags, weights=weights), seed=len(flags)).snapshot()
    one_by_one, at_once = prioritised(snapshot), in_columns(snapshot)
    assert one_by_one.columns is None
    assert at_once.calculator is not None
    assert at_once.columns is not None
    assert places(one_by_one) == places(at_once)
    rows = at_once.columns.totals(at_once.calculator)[at_once.order.rows]
    assert rows.tolist() == totals(one_by_one)
    assert len(set(totals(one_by_one))) > 50


@pytest.mark.req("SC-01")
@pytest.mark.parametrize("flags", [each for each in FLAGS if PriorityFlag.NO_NORMAL_ALL not in each], ids=str)
def test_factors_are_within_one_and_add_up(flags: tuple[PriorityFlag, ...]):
    table = prioritised(Crowd(300, cluster_of(*flags), seed=3).snapshot())
    raw_tres = PriorityFlag.NO_NORMAL_TRES in flags
    for job, name in table.order:
        found = table.breakdown(job, name)
        for part in found.parts:
            if part.name is not FactorName.SITE and not (raw_tres and part.tres):
                assert 0 <= part.raw <= 1, part
        if found.parts and not job.held_by:
            total = sum(part.contribution for part in found.parts) - found.nice
            assert weighted_sum(found.parts, found.nice) == pytest.approx(total, rel=1e-12)
            assert found.total == clamped(weighted_sum(found.parts, found.nice))


def test_more_age_never_lowers_a_priority():
    crowd = Crowd(200, cluster_of(), seed=4)
    before = crowd.snapshot()
    crowd.now += 3_600_000
    earlier, later = prioritised(before), prioritised(replace(before, usage_at=Millis(crowd.now)))
    for job, name in earlier.order:
        assert later.breakdown(job, name).total >= earlier.breakdown(job, name).total


def submit(crowd: Crowd, gone: list[Job]) -> None:
    crowd.submit()


def start(crowd: Crowd, gone: list[Job]) -> None:
    gone.append(crowd.start(crowd.any_job().id))


def hold_or_release(crowd: Crowd, gone: list[Job]) -> None:
    job = crowd.any_job()
    crowd.put(replace(job, held_by="" if job.held_by else "ann"))


def begin_its_age(crowd: Crowd, gone: list[Job]) -> None:
    crowd.put(replace(crowd.any_job(), accrues_from=Millis(crowd.now - 1000)))


def move(crowd: Crowd, gone: list[Job]) -> None:
    crowd.put(replace(crowd.any_job(), partitions=("batch", "first")))


def requeue(crowd: Crowd, gone: list[Job]) -> None:
    if gone:
        crowd.put(replace(gone.pop(), state=JobState.QUEUED))


def archive(crowd: Crowd, gone: list[Job]) -> None:
    if gone:
        crowd.touch(gone.pop().id)


def pass_over_usage(crowd: Crowd, gone: list[Job]) -> None:
    crowd.pass_over_usage(300)


def change_rules(crowd: Crowd, gone: list[Job]) -> None:
    crowd.cluster = cluster_of(PriorityFlag.NO_FAIR_TREE, favor_small=True)
    crowd.touch()


def lose_a_node(crowd: Crowd, gone: list[Job]) -> None:
    crowd.nodes.popitem()
    crowd.nodes_version += 1
    crowd.touch()


CHANGES = (
    submit, start, hold_or_release, begin_its_age, move, requeue, archive, pass_over_usage, change_rules, lose_a_node,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(CHANGES), max_size=4), max_size=6), st.integers(0, 99), st.booleans())
def test_a_table_updated_from_the_last_one_equals_a_new_one(steps: list, seed: int, long: bool):
    make = in_columns if long else prioritised
    crowd = Crowd(40, cluster_of(weights=NO_QOS_WEIGHT), seed)
    gone: list[Job] = []
    table = make(crowd.snapshot())
    for step in steps:
        for change in step:
            change(crowd, gone)
        snapshot = crowd.snapshot()
        table, anew = make(snapshot, table), prioritised(snapshot)
        assert places(table) == places(anew)
        assert totals(table) == totals(anew)
        assert all(one is other for (one, _), (other, _) in zip(table.order, anew.order, strict=True))


class TestColumns:
    def test_columns_grow_with_the_queue(self):
        crowd = Crowd(10, cluster_of())
        table = in_columns(crowd.snapshot())
        columns = table.columns
        for _ in range(1500):
            crowd.submit()
        table = in_columns(crowd.snapshot(), table)
        assert table.columns is columns
        assert places(table) == places(prioritised(replace(crowd.snapshot(), touched=None)))

    def test_columns_are_rebuilt_when_most_rows_are_removed(self):
        crowd = Crowd(1500, cluster_of())
        table = in_columns(crowd.snapshot())
        for job in list(crowd.queue)[10:]:
            crowd.start(job)
        fresh = in_columns(crowd.snapshot(), table)
        assert fresh.columns is not table.columns
        assert len(fresh.order) == len(places(prioritised(crowd.snapshot())))

    def test_columns_are_rebuilt_for_an_older_snapshot(self):
        """Two looks from one table: the later has already moved its rows on."""
        crowd = Crowd(30, cluster_of())
        table = in_columns(crowd.snapshot())
        older = crowd.snapshot(seen=False)
        crowd.start(JobId(7))
        newer = crowd.snapshot(seen=False)
        after, before = in_columns(newer, table), in_columns(older, table)
        assert (7 in {job.id for job, _ in after.order}, 7 in {job.id for job, _ in before.order}) == (False, True)

    def test_columns_do_not_change_the_orders_already_returned(self):
        crowd = Crowd(30, cluster_of())
        table = in_columns(crowd.snapshot())
        order = list(table.order)
        crowd.put(replace(crowd.queue[JobId(3)], held_by="ann"))
        crowd.start(JobId(4))
        in_columns(crowd.snapshot(), table)
        assert list(table.order) == order

    def test_columns_are_not_needed_for_a_short_queue(self):
        assert prioritised(Crowd(300, cluster_of()).snapshot()).columns is None
        assert prioritised(Crowd(700, cluster_of()).snapshot()).columns is not None

    def test_columns_know_an_age_that_has_not_begun(self):
        line = Line(Weights(age=1000))
        line.add(accrues_from=None)
        line.add(accrues_from=Millis(0))
        assert line.order() == [2, 1]
