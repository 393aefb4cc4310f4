"""No latest start is promised to a job that a limit may stop at its reserved start, because jobs ahead use it up."""

from __future__ import annotations

import pytest

from cockpit.model.accounts import Accounts
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce, Partition
from cockpit.model.forecast import NoBound, SharesLimit
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ArrayTask
from cockpit.sched.forecast.history import History
from cockpit.sched.forecast.predict import StartPredictor
from cockpit.sched.policy import Policy
from tests.sched.forecast.test_moves import Watched
from tests.sched.lab import tree
from tests.sched.world import World, node, wants

pytestmark = pytest.mark.req("SC-12")

HOUR = 3600
CONSERVATIVE = Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE))
LIMITED = Cluster(enforce=(Enforce.LIMITS,))
ANN = {"account": "nlp", "qos": "normal"}


def full_cluster(accounts: Accounts | None = None, cluster: Cluster = LIMITED, cards: int = 2) -> World:
    """A node whose cards are all in use for an hour by a job of another account."""
    world = World(node("n1", cards), policy=CONSERVATIVE, cluster=cluster, accounts=accounts or tree())
    world.submit(wants(1000 * cards), limit=HOUR, grace_seconds=0, record={"account": "other", "qos": "normal"})
    world.run()
    return world


def waits(world: World, cards: int = 1, *, limit: int = HOUR, **record) -> JobId:
    return world.submit(wants(1000 * cards), limit=limit, grace_seconds=0, record={**ANN, **record})


def promises(world: World, *jobs: JobId) -> list[Millis | NoBound | None]:
    """The latest start of each job, or why there is none."""
    predictor = StartPredictor(world.snapshot(), None, world.policy, History())
    found = [predictor.start(job) for job in jobs]
    assert not predictor.faults
    return [each.latest_at if each.latest_at is not None else each.no_bound for each in found]


END = Millis(1000 * HOUR)


def test_a_task_of_a_throttled_array_has_no_promise_behind_another_task() -> None:
    world = full_cluster()
    tasks = [waits(world, array=ArrayTask(JobId(2), index, 1)) for index in range(2)]
    assert promises(world, *tasks) == [END, NoBound.SHARED_LIMIT]


def test_an_array_whose_tasks_may_all_run_keeps_its_promises() -> None:
    world = full_cluster()
    assert promises(world, *[waits(world, array=ArrayTask(JobId(2), index, 2)) for index in range(2)]) == [END, END]


@pytest.mark.parametrize(
    ("limits", "promised"),
    [
        ({"max_jobs": 1}, [END, NoBound.SHARED_LIMIT]),
        ({"max_jobs": 2}, [END, END]),
        ({"grp_tres": {"gres/gpu": 1}}, [END, NoBound.SHARED_LIMIT]),
        ({"grp_tres": {"gres/gpu:a100": 1}}, [END, NoBound.SHARED_LIMIT]),
        ({"grp_tres": {"gres/gpu": 2}}, [END, END]),
    ],
)
def test_a_limit_with_no_room_for_two_takes_the_promise_of_the_second(limits, promised) -> None:
    world = full_cluster(tree(user=limits))
    assert promises(world, waits(world), waits(world)) == promised


def test_what_runs_counts_to_the_limit() -> None:
    world = full_cluster(tree(user={"max_jobs": 2}))
    # it runs for longer than the job that waits has to
    world.submit(wants(), limit=10 * HOUR, record=ANN)
    world.run()
    assert promises(world, waits(world), waits(world)) == [END, NoBound.SHARED_LIMIT]


def test_a_job_ahead_that_a_limit_may_delay_takes_the_promise_of_the_jobs_behind() -> None:
    world = full_cluster(tree(user={"max_jobs": 1}))
    jobs = [waits(world), waits(world), waits(world, account="other")]
    assert promises(world, *jobs) == [END, NoBound.SHARED_LIMIT, NoBound.CONDITION_AHEAD]


def test_jobs_of_others_keep_their_promise_on_other_nodes() -> None:
    partitions = tuple(Partition(name=name, nodes=(name,)) for name in ("n1", "n2"))
    cluster = Cluster(enforce=(Enforce.LIMITS,), partitions=partitions)
    nodes = [node(name, 1) for name in ("n1", "n2")]
    world = World(*nodes, policy=CONSERVATIVE, cluster=cluster, accounts=tree(user={"max_jobs": 1}))
    for each in ("n1", "n2"):
        waits(world, account="other", partitions=(each,))
    world.run()
    jobs = [waits(world, partitions=("n1",)) for _ in range(2)]
    other = waits(world, account="other", partitions=("n2",))
    assert promises(world, *jobs, other) == [END, NoBound.SHARED_LIMIT, END]


@pytest.mark.parametrize(("others", "promised"), [(0, END), (1, NoBound.SHARED_LIMIT)])
def test_a_budget_on_which_others_draw_takes_the_promise(others: int, promised: Millis | NoBound) -> None:
    world = full_cluster(tree(nlp={"grp_tres_minutes": {"cpu": 600}}))
    for _ in range(others):
        world.submit(wants(), limit=2 * HOUR, record=ANN)
        world.run()
    assert promises(world, waits(world)) == [promised]


def test_an_exclusive_job_may_use_up_any_limit() -> None:
    world = full_cluster(tree(user={"grp_tres": {"cpu": 17}}))
    world.submit(wants(), limit=60, exclusive=True, record=ANN)
    assert promises(world, waits(world)) == [NoBound.SHARED_LIMIT]


def test_part_of_a_sliced_card_counts_as_the_whole_card() -> None:
    world = full_cluster(tree(user={"grp_tres": {"gres/gpu": 1.5}}))
    world.submit(wants(300), limit=60, record=ANN)
    assert promises(world, waits(world)) == [NoBound.SHARED_LIMIT]


def test_a_job_of_two_partitions_counts_once() -> None:
    partitions = tuple(Partition(name=name, nodes=("n1",)) for name in ("one", "two"))
    world = full_cluster(tree(user={"max_jobs": 2}), Cluster(enforce=(Enforce.LIMITS,), partitions=partitions))
    both = waits(world, partitions=("one", "two"))
    assert promises(world, both, waits(world, partitions=("one",))) == [END, END]


def test_a_promise_that_a_job_behind_takes_away_names_that_job() -> None:
    watched = Watched(node("n1", 2), cluster=LIMITED, accounts=tree(user={"max_jobs": 1}))
    watched.submit(wants(2000), limit=HOUR, record={"account": "other", "qos": "normal"})
    watched.ask()
    first = watched.submit(wants(1000), limit=HOUR, record=ANN)
    assert watched.ask() == {first: END}
    filler = watched.submit(wants(), limit=60, record=ANN)
    watched.ask()
    assert watched.ask() == {}
    assert (watched.moved(first).after, watched.moved(first).causes) == (None, (SharesLimit(filler),))
