"""What a member of a fleet reports to its own engine and to the fleet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.engine.fleet import reports
from cockpit.model.attempt import ExitStatus
from cockpit.model.fleet import FleetPart
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.usage import ReplicaTotals
from cockpit.runtime.fleet.reports import MemberReports

pytestmark = pytest.mark.req("FL-08")
OF_FLEET, OWN = ReplicaId(JobId(7), 1, 1), ReplicaId(JobId(8), 1, 0)
PART = FleetPart(JobId(70), 2, (4, 5))


class Noting:
    """Notes every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *words: self.calls.append((name, *words))


class Member:
    def __init__(self) -> None:
        self.own, self.told = Noting(), []
        jobs = {JobId(7): SimpleNamespace(part=PART), JobId(8): SimpleNamespace(part=None)}
        machine: Any = SimpleNamespace(state=SimpleNamespace(jobs=jobs))
        observer: Any = self.own
        self.reports = MemberReports("lab", machine, observer, self.told.append, 300)


@pytest.fixture
def member() -> Member:
    return Member()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("replica_staged", (OF_FLEET,)),
        ("staging_moved", (OF_FLEET,)),
        ("disk_filled", ("full",)),
        ("precheck_passed", (OF_FLEET, "fine")),
        ("precheck_failed", (OF_FLEET, NodeName("n1"), "no card")),
        ("prolog_failed", (OF_FLEET, "it ended with 1")),
        ("epilog_failed", (NodeName("n1"), "it ended with 1")),
        ("worker_silent", (OF_FLEET, 60_000)),
        ("node_pressed", (NodeName("n1"),)),
    ],
)
def test_what_concerns_the_member_alone_reaches_its_own_engine(
    member: Member, name: str, words: tuple[Any, ...]
) -> None:
    getattr(member.reports, name)(*words)
    assert member.own.calls == [(name, *words)]
    assert member.told == []


def test_starts_and_ends_of_the_fleets_replicas_are_told_to_the_fleet_too(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet: list[tuple[Any, ...]] = []
    monkeypatch.setattr(reports, "part_started", lambda *words: fleet.append(("started", *words)))
    monkeypatch.setattr(reports, "part_ended", lambda *words: fleet.append(("ended", *words)))
    status, used = ExitStatus(code=3), ReplicaTotals(cpu_ms=7)
    for replica in (OF_FLEET, OWN):
        member.reports.replica_started(replica, "cgroup")
        member.reports.replica_ended(replica, status, used)
    assert member.own.calls == [
        ("replica_started", OF_FLEET, "cgroup"),
        ("replica_ended", OF_FLEET, status, used),
        ("replica_started", OWN, "cgroup"),
        ("replica_ended", OWN, status, used),
    ]
    for decide in member.told:
        decide("machine", Millis(9))
    assert fleet == [
        ("started", "machine", PART, 1, "cgroup"),
        ("ended", "machine", PART, 1, status, Millis(9), 300, used),
    ]


def test_a_placement_is_told_to_the_fleet_as_long_as_the_job_exists(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[tuple[Any, ...]] = []
    monkeypatch.setattr(reports, "part_placed", lambda *words: placed.append(words))
    for job in (7, 99):
        member.reports.placed(JobId(job))
    for decide in member.told:
        decide("machine", Millis(9))
    ((machine, name, job),) = placed
    assert (machine, name, job.part) == ("machine", "lab", PART)
    assert member.reports.part(JobId(99)) is None
