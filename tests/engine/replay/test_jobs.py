"""Histories small enough to follow by hand. A job is (comes at, processors, runs, asks for), in seconds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.invariants import violations
from cockpit.engine.machine import Machine
from cockpit.engine.replay.jobs import Arrival, Replay
from cockpit.formats.traces import swf
from cockpit.formats.traces.swf import machine, read_swf
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId, Millis
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.sched.policy import ONE_CYCLE_A_MOMENT, Policy, TieOrder
from tests.builders import ANN

EASY = TieOrder()


def arrival(number: int, comes: int, processors: int, runs: int, asks: int) -> Arrival:
    wanted = (NodeSpec(cpus=processors, memory_mib=0),)
    spec = JobSpec(name=f"j{number}", command="", output="", specs=wanted, time_limit_seconds=asks)
    return Arrival(Millis(comes * 1000), JobSubmitted(JobId(number), spec, ANN, "ann"), runs * 1000)


def replay(processors: int, *jobs: tuple[int, int, int, int], ties: TieOrder = EASY) -> Replay:
    arrivals = [arrival(number, *job) for number, job in enumerate(jobs, 1)]
    return Replay([machine(processors)], arrivals, Policy(ties=ties))


def starts(processors: int, *jobs: tuple[int, int, int, int], ties: TieOrder = EASY) -> list[int]:
    history = replay(processors, *jobs, ties=ties)
    for _ in history.moments():
        assert violations(history.machine) == []
    return [history.started_at[JobId(number)] // 1000 for number in range(1, len(jobs) + 1)]


@pytest.mark.req("SC-20")
def test_a_job_passes_the_head_if_it_ends_by_the_heads_start() -> None:
    assert starts(4, (0, 3, 9, 10), (1, 4, 5, 5), (2, 1, 8, 8), (2, 1, 9, 9)) == [0, 10, 2, 15]


@pytest.mark.req("SC-20")
def test_each_passing_job_reduces_the_spare_resources_at_the_heads_start() -> None:
    busy, head = (0, 3, 10, 10), (1, 2, 5, 5)
    assert starts(4, busy, head, (2, 1, 50, 50), (2, 1, 50, 50)) == [0, 10, 2, 10]


@pytest.mark.req("SC-20")
def test_all_resources_that_are_freed_at_the_heads_start_count_as_spare() -> None:
    assert starts(4, (0, 1, 10, 10), (0, 2, 10, 10), (1, 2, 5, 5), (2, 1, 50, 50)) == [0, 0, 10, 2]


@pytest.mark.req("SC-20")
def test_a_submission_precedes_an_end_of_the_same_time() -> None:
    """Job 1 ends early, at 3, as job 3 arrives: job 3 passes job 2, whose reservation is still at 5."""
    history = ((1, 3, 2, 4), (1, 4, 3, 5), (3, 1, 1, 1))
    assert starts(4, *history) == [1, 4, 3]
    assert starts(4, *history, ties=TieOrder(submissions_first=False)) == [1, 3, 6]


@pytest.mark.req("SC-20")
def test_ends_of_one_time_are_in_order_of_start_with_a_cycle_after_each() -> None:
    """At 2 both job 3, running since 0, and job 2, running since 1, end; job 3 being first, job 5 passes job 4."""
    history = ((0, 3, 1, 1), (0, 2, 1, 3), (0, 1, 2, 3), (0, 3, 3, 3), (1, 2, 1, 1))
    assert starts(4, *history) == [0, 1, 0, 3, 2]
    assert starts(4, *history, ties=TieOrder(ends_in_order_of_start=False)) == [0, 1, 0, 2, 5]


@pytest.mark.req("SC-20")
def test_a_job_at_its_limit_has_freed_its_processors_before_a_submission_of_that_time() -> None:
    """At 3 job 2 is at its limit, job 1 ends early, and job 4 comes: on job 2's processors it passes job 3."""
    history = ((0, 1, 3, 7), (0, 2, 3, 3), (1, 3, 2, 3), (3, 1, 2, 4))
    assert starts(3, *history) == [0, 0, 5, 3]
    assert starts(3, *history, ties=TieOrder(limits_free_at_once=False)) == [0, 0, 3, 5]


@pytest.mark.req("SC-20")
def test_a_submission_that_does_not_fit_triggers_no_cycle() -> None:
    """At 5 job 3 is at its limit, but job 6, which comes then, needs both; the cycle waits for job 1's end."""
    history = ((2, 1, 3, 7), (2, 2, 3, 7), (2, 1, 3, 3), (2, 1, 2, 3), (3, 1, 1, 2), (5, 2, 2, 2))
    assert starts(2, *history) == [2, 5, 2, 8, 8, 10]
    assert starts(2, *history, ties=TieOrder(only_what_fits_sets_off_a_cycle=False)) == [2, 7, 2, 5, 5, 10]


@pytest.mark.req("SC-22")
def test_with_one_cycle_per_timestamp_all_events_of_the_timestamp_precede_it() -> None:
    history = ((0, 2, 3, 7), (1, 3, 2, 6), (3, 1, 3, 4))
    assert starts(3, *history) == [0, 6, 3]
    assert starts(3, *history, ties=ONE_CYCLE_A_MOMENT) == [0, 3, 5]


@pytest.mark.req("SC-21")
def test_a_job_that_runs_for_no_time_ends_when_it_starts() -> None:
    assert starts(1, (3, 1, 0, 5), (3, 1, 2, 2), (3, 1, 0, 0)) == [3, 3, 5]


@pytest.mark.req("SC-20")
def test_every_replayed_job_passes_all_states_of_the_state_machine(monkeypatch) -> None:
    told = []

    def follow(machine, record):
        told.append((record.at // 1000, type(record.body).__name__, getattr(record.body, "job", None)))
        return usual(machine, record)

    usual = Machine.follow
    monkeypatch.setattr(Machine, "follow", follow)
    history = replay(4, (0, 3, 9, 10), (1, 4, 5, 5))
    assert list(history.moments()) == [0, 0, 1, 2]
    assert told == [
        (0, "NodesChanged", None),
        (0, "JobSubmitted", 1),
        (0, "JobPlaced", 1),
        (0, "ReplicaStarted", 1),
        (1, "JobSubmitted", 2),
        (9, "ReplicaEnded", 1),
        (9, "JobEnded", 1),
        (9, "JobArchived", 1),
        (9, "JobPlaced", 2),
        (9, "ReplicaStarted", 2),
        (14, "ReplicaEnded", 2),
        (14, "JobEnded", 2),
        (14, "JobArchived", 2),
    ]
    assert history.machine.state.jobs == {}


@pytest.mark.req("SC-20")
def test_times_k_times_as_long_make_waits_k_times_as_long() -> None:
    history = ((2, 1, 3, 7), (2, 2, 3, 7), (2, 1, 3, 3), (2, 1, 2, 3), (3, 1, 1, 2), (5, 2, 2, 2))
    slower = [(7 * comes, processors, 7 * runs, 7 * asks) for comes, processors, runs, asks in history]
    assert starts(2, *slower) == [7 * start for start in starts(2, *history)]


def test_arrivals_may_ask_for_nodes_in_a_gang() -> None:
    two = [replace(machine(4), name=name) for name in ("n1", "n2")]
    first, second = arrival(1, 0, 3, 5, 5), arrival(2, 1, 2, 5, 5)
    gang = replace(second, submitted=replace(second.submitted, spec=replace(second.submitted.spec, nodes=2)))
    history = Replay(two, [first, gang], Policy())
    for _ in history.moments():
        assert violations(history.machine) == []
    assert history.started_at == {1: 0, 2: 5_000}


@pytest.mark.req("SC-01", "SC-02")
def test_by_priority_the_user_with_less_usage_is_first() -> None:
    """User 1 has the machine for a day; of the two jobs that wait then, user 2's starts first, though it came later."""
    history = b"""1 0 0 86400 4 -1 -1 4 90000 -1 1 1 -1 -1 -1 -1 -1 -1
2 10 0 600 4 -1 -1 4 600 -1 1 1 -1 -1 -1 -1 -1 -1
3 20 0 600 4 -1 -1 4 600 -1 1 2 -1 -1 -1 -1 -1 -1
"""
    past = swf.history(read_swf("log", history), 4)
    rules = swf.multifactor(past)
    for told, order in (((), [1, 2, 3]), (rules, [1, 3, 2])):
        replayed = Replay([machine(4)], past.arrivals, Policy(), told)
        for _ in replayed.moments():
            assert violations(replayed.machine) == []
        assert list(replayed.started_at) == order


@pytest.mark.req("SC-02")
def test_usage_decays_only_up_to_full_periods() -> None:
    past = swf.history(read_swf("log", b"1 0 0 950 4 -1 -1 4 950 -1 1 1 -1 -1 -1 -1 -1 -1\n" * 2), 4)
    replayed = Replay([machine(4)], past.arrivals, Policy(), swf.multifactor(past))
    for _ in replayed.moments():
        assert replayed.machine.state.usage_at % 300_000 == 0
    assert replayed.machine.state.usage_at == 900_000
