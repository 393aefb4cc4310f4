"""What follows from the record of an attempt: exit codes, who is there, and what was held for how long."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import Attempt, ExitStatus, Replica, Slow
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.node import Allocation, CardSlice


def on(rank: int, node: str) -> Allocation:
    return Allocation(rank, NodeName(node), 1, 1024)


def replica(rank: int, **fields: Any) -> Replica:
    return Replica(rank=rank, **fields)


def attempt(*replicas: Replica, **fields: Any) -> Attempt:
    placement = tuple(on(each.rank, f"n{each.rank}") for each in replicas if each.left_at is None)
    defaults = {"number": 2, "spec_index": 0, "placement": placement, "placed_at": Millis(100), "replicas": replicas}
    return Attempt(**{**defaults, **fields})


@pytest.mark.req("JT-31")
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (ExitStatus(code=0), 0),
        (ExitStatus(code=3), 3),
        (ExitStatus(signal=9), 137),
        (ExitStatus(lost="its container disappeared"), 255),
    ],
)
def test_an_exit_is_reported_as_a_shell_does_and_only_code_0_is_success(status: ExitStatus, code: int) -> None:
    assert status.shell_code == code
    assert status.ok is (code == 0)


@pytest.mark.req("EL-13")
def test_the_share_of_the_hardware_is_its_part_of_the_whole_iteration() -> None:
    assert Slow(rank=0, hardware_ms=30, e2e_ms=40).part == 0.75


@pytest.mark.req("EL-01")
@pytest.mark.parametrize(
    ("resumed", "resized", "since"),
    [(None, None, 100), (300, None, 300), (300, 200, 300), (300, 400, 400), (None, 400, 400)],
)
def test_an_uninterrupted_run_counts_from_the_last_resume_or_change_of_size(
    resumed: Millis | None, resized: Millis | None, since: int
) -> None:
    assert attempt(replica(0), resumed_at=resumed, resized_at=resized).counts_from == since


@pytest.mark.req("JT-31")
def test_an_attempt_ran_once_one_of_its_commands_was_started() -> None:
    assert not attempt(replica(0), replica(1)).ran
    assert attempt(replica(0), replica(1, started_at=Millis(1))).ran


@pytest.mark.req("EL-05")
def test_a_worker_that_left_is_no_part_of_the_job_and_its_node_may_be_blocked() -> None:
    left = replica(1, left_at=Millis(500), had=on(1, "n7"), blocked="it did not answer")
    kept = attempt(replica(0), left, replica(2))
    assert [each.rank for each in kept.there] == [0, 2]
    assert kept.blocked == {"n7"}
    assert kept.replica_ids(JobId(5)) == (ReplicaId(JobId(5), 2, 0), ReplicaId(JobId(5), 2, 2))
    assert {rank: part.node for rank, part in kept.places.items()} == {0: "n0", 1: "n7", 2: "n2"}
    assert attempt(replica(0), replace(left, blocked="")).blocked == frozenset()


@pytest.mark.req("EL-06")
def test_the_launcher_comes_before_the_workers_and_is_no_part_of_the_placement() -> None:
    workers = (on(1, "n1"), on(2, "n2"))
    with_launcher = attempt(replica(0), replica(1), replica(2), placement=workers, launcher=on(0, "n9"))
    assert [part.node for part in with_launcher.everybody] == ["n9", "n1", "n2"]
    assert replace(with_launcher, launcher=None).everybody == workers


@pytest.mark.req("SC-02")
def test_resources_of_an_ordinary_job_are_held_for_the_whole_interval() -> None:
    held = attempt(replica(0), replica(1)).held(Millis(1000), Millis(4000))
    assert [(part.rank, for_ms) for part, for_ms in held] == [(0, 3000), (1, 3000)]


@pytest.mark.req("SC-02", "EL-01")
def test_workers_of_an_elastic_job_hold_resources_from_their_start_until_they_leave() -> None:
    workers = (
        replica(0, started_at=Millis(500)),
        replica(1, started_at=Millis(2000)),
        replica(2, started_at=Millis(1), left_at=Millis(1500), had=on(2, "n2")),
        replica(3, started_at=Millis(1), left_at=Millis(900), had=on(3, "n3")),
        replica(4),
    )
    resized = attempt(*workers, resized_at=Millis(2000))
    held = {part.rank: for_ms for part, for_ms in resized.held(Millis(1000), Millis(4000))}
    assert held == {0: 3000, 1: 2000, 2: 500, 3: 0, 4: 0}


@pytest.mark.req("EL-06")
def test_the_launcher_of_an_elastic_job_holds_nothing() -> None:
    started = tuple(replica(rank, started_at=Millis(1)) for rank in range(2))
    resized = attempt(*started, placement=(on(1, "n1"),), launcher=on(0, "n9"), resized_at=Millis(0))
    assert [part.rank for part, _ in resized.held(Millis(0), Millis(1))] == [1]


@pytest.mark.req("SC-05")
def test_the_cards_of_an_allocation_are_the_sum_of_its_shares() -> None:
    shared = Allocation(0, NodeName("n1"), 1, 1, (CardSlice(0, None), CardSlice(1, 2, 250)))
    assert shared.card_milli == 1250
