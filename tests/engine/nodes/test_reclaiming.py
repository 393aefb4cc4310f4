"""Reclaimed nodes, and best-effort jobs under memory pressure: a notice, a grace, and no failure (EL-02, EL-08)."""

from __future__ import annotations

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.effects import SignalKind, SignalReplica, WriteWorkersFile
from cockpit.engine.nodes import reclaiming, service
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.attempt import EndCause, Grounds
from cockpit.model.ids import NodeName
from cockpit.model.job import JobState
from cockpit.model.labels import Taint
from cockpit.model.reasons import BeginsLater, NeverFits
from cockpit.model.refusal import Refusal
from cockpit.model.spec import DebugHold, HoldCards, Mode
from cockpit.sched.explain import reason_of
from tests.builders import ANN, SECOND, a_node, a_spec
from tests.engine.driver import EngineDriver
from tests.engine.test_workers import begun, elastic, ends, engine, grow, ranks, told

FIVE_MINUTES = 300


def reclaim_node(driver: EngineDriver, node: str, within: int = FIVE_MINUTES) -> None:
    driver.effects.clear()
    decided = service.take_back(driver.machine, node, "spot", "root", driver.now, within)
    assert driver.act(decided) is None


def effortless(name: str, least: int, wanted: int, most: int, **fields: object):
    return elastic(name, least, wanted, most, best_effort=True, qos=None, **fields)


def pressed(driver: EngineDriver, node: str) -> None:
    driver.effects.clear()
    driver.act(reclaiming.relieve_memory(driver.machine, NodeName(node), driver.now))


@pytest.mark.req("EL-02")
def test_a_worker_on_a_reclaimed_node_is_notified_and_its_job_continues_without_it() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 1, 3, 3, worker_restart_policy="OnFailure"))
    reclaim_node(driver, "n2")
    kill_at = driver.now + FIVE_MINUTES * SECOND
    assert told(driver, events.WorkersRecalled) == [events.WorkersRecalled(job, (1,), kill_at, None, Grounds.RECLAIM)]
    assert {each.replica.rank for each in driver.effects if isinstance(each, WriteWorkersFile)} == {0, 1, 2}
    assert [each for each in driver.effects if isinstance(each, SignalReplica)] == []
    ends(driver, job, 1, code=255)
    assert (ranks(driver, job), driver.job(job).retries) == ([0, 2], 0)
    assert driver.job(job).attempt.blocked == frozenset(), "when it is back, workers may run on it again"
    grow(driver)
    assert [part.node for part in driver.job(job).attempt.placement] == ["n1", "n3", "n4"]


@pytest.mark.req("EL-02", "EL-04")
def test_a_reclaim_takes_nothing_from_a_job_whose_worker_there_is_done() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 2, 2, 3))
    ends(driver, job, 1, code=0)
    reclaim_node(driver, "n2")
    assert (driver.job(job).ending, driver.job(job).leaving) == (None, ())
    ends(driver, job, 0, code=0)
    assert driver.job(job).state is JobState.SUCCEEDED


@pytest.mark.req("EL-02", "EL-04")
def test_a_job_reclaimed_below_its_minimum_is_suspended_and_resumes_elsewhere() -> None:
    driver = engine()
    (job,) = begun(driver, elastic("train", 3, 3, 3, grace_seconds=60))
    reclaim_node(driver, "n2")
    (ending,) = told(driver, events.EndingBegan)
    assert (ending.cause, ending.kill_at, ending.requeue) == (EndCause.RECLAIMED, driver.now + 60 * SECOND, True)
    for rank in (0, 1, 2):
        ends(driver, job, rank, code=255)
    found = driver.job(job)
    assert (found.shown_state, found.retries, found.kept) == (JobState.SUSPENDED, 0, False)
    driver.schedule()
    assert (driver.job(job).state, [part.node for part in driver.job(job).attempt.placement]) == (
        JobState.RESUMING,
        ["n1", "n3", "n4"],
    )


@pytest.mark.req("EL-02", "JT-26")
def test_reclaiming_the_launchers_node_ends_its_whole_job_and_requeues_other_jobs() -> None:
    driver = engine(nodes=3)
    (job, other) = begun(driver, elastic("train", 1, 2, 2, mode=Mode.HOROVOD), a_spec("other", cpus=4))
    reclaim_node(driver, "n1", within=60)
    reclaim_node(driver, "n3", within=60)
    assert [(each.job, each.cause) for each in told(driver, events.EndingBegan)] == [
        (job, EndCause.RECLAIMED),
        (other, EndCause.RECLAIMED),
    ]
    assert {each.force for each in driver.effects if isinstance(each, SignalReplica)} == {SignalKind.TERM}
    ends(driver, other, 0, code=1)
    found = driver.job(other)
    assert (found.state, found.shown_state, found.retries) == (JobState.QUEUED, JobState.QUEUED, 0)


@pytest.mark.req("EL-02")
def test_a_drained_node_is_reclaimed_later_but_not_with_a_negative_notice() -> None:
    driver = engine()
    (job,) = begun(driver, a_spec("other", cpus=4))
    driver.act(service.drain(driver.machine, "n1", "fan", "root"))
    assert driver.job(job).ending is None
    refused = service.take_back(driver.machine, "n1", "spot", "root", driver.now, -1)
    assert isinstance(refused, Refusal)
    reclaim_node(driver, "n1")
    assert driver.job(job).ending is not None


@pytest.mark.req("EL-08", "EL-01")
def test_spot_nodes_run_only_jobs_that_tolerate_them() -> None:
    driver = EngineDriver(a_node("n1", cpus=4, taints=(Taint("spot"),)))
    refused = submit(driver.machine, [elastic("train", 1, 1, 1, qos=None)], Actor(ANN, admin=False), now=driver.now)
    assert isinstance(refused, Refusal)
    ((_, reason),) = refused.reasons
    assert isinstance(reason, NeverFits) or reason.taints == ("spot",)
    (job,) = driver.run(elastic("train", 1, 1, 1, spot=True, qos=None))
    assert driver.job(job).state is JobState.RUNNING


@pytest.mark.req("EL-01")
def test_an_elastic_job_grows_only_into_nodes_within_its_maximum_price() -> None:
    prices = {"n1": "0.3", "n2": "0.5", "n3": "much"}
    nodes = [a_node(name, cpus=4, labels={"price": price}) for name, price in prices.items()]
    driver = EngineDriver(*nodes, a_node("n4", cpus=4))
    (job,) = driver.run(elastic("train", 1, 1, 4, spot=True, max_price_milli=400, qos=None))
    grow(driver)
    assert [part.node for part in driver.job(job).attempt.placement] == ["n1", "n4"]
    driver.tell(
        events.NodesChanged((*driver.machine.state.nodes.values(), a_node("n5", cpus=4, labels={"price": "0.4"})))
    )
    grow(driver)
    assert [part.node for part in driver.job(job).attempt.placement] == ["n1", "n4", "n5"]


@pytest.mark.req("EL-08")
def test_a_best_effort_job_requests_nothing_and_fits_on_a_full_node() -> None:
    driver = engine(nodes=2)
    (other, job) = begun(driver, a_spec("other", cpus=2, nodes=2), effortless("train", 1, 2, 2))
    assert [(part.node, part.cpus, part.memory_mib) for part in driver.job(job).attempt.placement] == [
        ("n1", 0, 0),
        ("n2", 0, 0),
    ]
    (last,) = driver.run(a_spec("last", cpus=2, nodes=2))
    assert driver.job(last).state is JobState.RUNNING, "all CPUs are still there to be asked for"
    assert driver.job(other).state is JobState.RUNNING


@pytest.mark.req("EL-08", "SC-05")
def test_a_node_with_an_exclusive_job_accepts_no_best_effort_job() -> None:
    driver = engine(nodes=2)
    (_, job) = begun(driver, a_spec("alone", cpus=1, exclusive=True), effortless("train", 1, 2, 2))
    assert [part.node for part in driver.job(job).attempt.placement] == ["n2"]


@pytest.mark.req("EL-08", "EL-02")
def test_under_memory_pressure_the_newest_best_effort_worker_goes_first_and_jobs_with_memory_requests_stay() -> None:
    driver = engine(nodes=2)
    (other, first) = begun(driver, a_spec("other", cpus=4, nodes=2), effortless("first", 1, 2, 2, supervised=True))
    driver.pass_time(SECOND)
    (last,) = begun(driver, effortless("last", 1, 2, 2, supervised=True))
    pressed(driver, "n1")
    kill_at = driver.now + FIVE_MINUTES * SECOND
    assert told(driver, events.WorkersRecalled) == [events.WorkersRecalled(last, (0,), kill_at, None, Grounds.PRESSURE)]
    assert [each for each in driver.effects if isinstance(each, SignalReplica)] == []
    pressed(driver, "n1")
    assert len(told(driver, events.WorkersRecalled)) == 1, "one at a time"
    ends(driver, last, 0, code=255)
    driver.schedule()
    assert ranks(driver, last) == [1], "it does not come back to that node"
    assert driver.job(last).attempt.blocked == {"n1"}
    pressed(driver, "n1")
    assert [each.job for each in told(driver, events.WorkersRecalled)] == [last, first]
    assert driver.job(other).ending is None


@pytest.mark.req("EL-08", "EL-02")
def test_under_memory_pressure_a_worker_that_is_done_relieves_nothing_and_an_older_one_goes() -> None:
    driver = engine(nodes=2)
    (first,) = begun(driver, effortless("first", 1, 2, 2))
    (last,) = begun(driver, effortless("last", 1, 2, 2))
    ends(driver, last, 0, code=0)
    pressed(driver, "n1")
    assert [(each.job, each.ranks) for each in told(driver, events.WorkersRecalled)] == [(first, (0,))]


@pytest.mark.req("EL-08", "EL-02")
def test_under_memory_pressure_the_last_started_worker_is_evicted_first_even_if_submitted_earlier() -> None:
    driver = engine(nodes=2)
    (held,) = driver.submit(effortless("held", 1, 2, 2))
    driver.tell(events.JobHeld(held, "ann"))
    (other,) = begun(driver, effortless("other", 1, 2, 2))
    driver.tell(events.JobReleased(held))
    driver.schedule()
    assert held < other
    assert ranks(driver, held) == ranks(driver, other) == [0, 1]
    pressed(driver, "n1")
    assert [each.job for each in told(driver, events.WorkersRecalled)] == [held]


@pytest.mark.req("EL-08")
def test_without_the_annotation_there_is_no_notice_and_the_whole_job_avoids_the_node_for_a_while() -> None:
    driver = engine(nodes=2)
    (job,) = begun(driver, effortless("train", 2, 2, 2))
    pressed(driver, "n2")
    assert {each.force for each in driver.effects if isinstance(each, SignalReplica)} == {SignalKind.KILL}
    for rank in (0, 1):
        ends(driver, job, rank, signal=9)
    assert driver.job(job).shown_state is JobState.SUSPENDED
    driver.schedule()
    assert isinstance(reason_of(driver.plan, driver.job(job)), BeginsLater)
    driver.pass_time(60 * SECOND)
    driver.schedule()
    assert driver.job(job).state is JobState.RESUMING


@pytest.mark.req("EL-08", "SC-08")
def test_best_effort_jobs_are_preempted_first_and_preempt_no_job() -> None:
    driver = engine(nodes=2)
    low = elastic("low", 1, 1, 1, card_milli=1000)
    last = elastic("last", 1, 1, 1, card_milli=1000, best_effort=True)
    (effortless_job,) = begun(driver, last)
    driver.pass_time(SECOND)
    begun(driver, low)
    driver.submit(a_spec("urgent", cpus=1, card_milli=1000, qos="high"))
    driver.schedule()
    assert [each.job for each in told(driver, events.EndingBegan)] == [effortless_job]
    driver = engine(nodes=1)
    begun(driver, a_spec("low", cpus=1, card_milli=1000, qos="low"))
    greedy = elastic("greedy", 1, 1, 1, card_milli=1000, best_effort=True, qos="high")
    driver.submit(greedy)
    driver.schedule()
    assert told(driver, events.EndingBegan) == []


@pytest.mark.req("EL-02", "JT-30")
def test_a_failed_job_whose_cards_are_held_on_a_reclaimed_node_ends_no_second_time() -> None:
    driver = EngineDriver(a_node(cards=2))
    (job,) = driver.run(a_spec(terminal=True, card_milli=1000, debug_hold=DebugHold(cards=HoldCards.KEEP)))
    driver.ended(job, code=1)
    assert driver.job(job).kept
    assert job in driver.machine.occupied
    reclaim_node(driver, "n1")
    assert [each for each in driver.journal if isinstance(each.body, events.EndingBegan)] == []
