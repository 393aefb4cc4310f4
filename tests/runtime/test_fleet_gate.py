"""The gate before a member's containers: a part of a fleet's job starts once the fleet says so, all else at once."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.engine.effects import (
    CheckNodes,
    FreezeReplica,
    KeepContainer,
    RemoveContainer,
    SignalKind,
    SignalReplica,
    StageReplica,
    StartReplica,
    ThawReplica,
    WriteWorkersFile,
)
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.node import Allocation
from cockpit.model.spec import HoldCards
from cockpit.runtime.fleet.gate import NEVER_BEGAN, Gate
from tests.builders import ANN, a_spec

pytestmark = pytest.mark.req("FL-04")
PART, OWN = JobId(7), JobId(8)


def start(job: JobId, rank: int = 0) -> StartReplica:
    return StartReplica(ReplicaId(job, 1, rank), a_spec(), ANN, Allocation(rank, NodeName("n1"), 1, 1))


class Inner:
    """A member's own runtime, which notes what it does and answers with the name of what it was asked."""

    def __init__(self) -> None:
        self.did: list[tuple[Any, ...]] = []

    def staging(self, replica: ReplicaId) -> str:
        self.did.append(("staging", replica))
        return "staging"

    def __getattr__(self, name: str) -> Any:
        async def call(*words: Any, **options: Any) -> str:
            self.did.append((name, *words, *options.items()))
            return name

        return call


class Reports:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def placed(self, job: JobId) -> None:
        self.told.append(job)

    def replica_ended(self, replica: ReplicaId, status: Any) -> None:
        self.told.append((replica, status))


class Member:
    def __init__(self) -> None:
        self.inner, self.reports = Inner(), Reports()
        inner: Any = self.inner
        reports: Any = self.reports
        self.gate = Gate(inner, reports, lambda job: job == PART)

    def started(self) -> list[ReplicaId]:
        return [effect.replica for name, effect in self.inner.did if name == "start"]


@pytest.fixture
def member() -> Member:
    return Member()


async def test_a_part_of_a_fleets_job_starts_when_the_fleet_opens_it(member: Member) -> None:
    first, second, own = start(PART), start(PART, 1), start(OWN)
    for effect in (first, second, own):
        await member.gate.start(effect)
    assert member.started() == [own.replica]
    assert member.reports.told == [PART, PART]
    await member.gate.open(OWN)
    assert member.started() == [own.replica]
    await member.gate.open(PART)
    assert member.started() == [own.replica, first.replica, second.replica]
    await member.gate.open(PART)
    assert len(member.started()) == 3
    late = start(PART, 2)
    await member.gate.start(late)
    assert member.started()[-1] == late.replica
    assert member.reports.told == [PART, PART], "an opened job is not reported again"


async def test_files_are_staged_before_the_fleet_opens_a_job(member: Member) -> None:
    await member.gate.stage(StageReplica(start(PART)))
    await member.gate.stage(StageReplica(start(OWN)))
    assert [name for name, _ in member.inner.did] == ["stage", "stage"]
    assert member.reports.told == [PART]
    await member.gate.open(PART)
    await member.gate.stage(StageReplica(start(PART, 1)))
    assert member.reports.told == [PART]


async def test_a_job_that_its_fleet_takes_back_never_begins(member: Member) -> None:
    for rank in (0, 1):
        await member.gate.start(start(PART, rank))
    replica = ReplicaId(PART, 1, 0)
    signal = SignalReplica(replica, SignalKind.TERM)
    await member.gate.signal(signal)
    assert member.reports.told[2:] == [(replica, NEVER_BEGAN)]
    await member.gate.signal(signal)
    assert member.inner.did == [("signal", signal)], "one that is not waiting is signalled"
    remove = RemoveContainer(ReplicaId(PART, 1, 1))
    await member.gate.remove(remove)
    await member.gate.open(PART)
    assert member.inner.did[1:] == [("remove", remove)]


REPLICA = ReplicaId(OWN, 1, 0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("check", (CheckNodes(REPLICA, ()),)),
        ("freeze", (FreezeReplica(REPLICA),)),
        ("thaw", (ThawReplica(REPLICA),)),
        ("write_workers_file", (WriteWorkersFile(REPLICA),)),
        ("keep", (KeepContainer(REPLICA, HoldCards.KEEP),)),
        ("adopt", ([start(OWN)], [])),
    ],
)
async def test_what_needs_no_delay_is_passed_on(member: Member, name: str, words: tuple[Any, ...]) -> None:
    await getattr(member.gate, name)(*words)
    assert member.inner.did == [(name, *words)]


@pytest.mark.parametrize(("name", "words"), [("copies", ()), ("remove_copy", ("key",)), ("used", (REPLICA,))])
async def test_questions_are_answered_by_the_member(member: Member, name: str, words: tuple[Any, ...]) -> None:
    assert await getattr(member.gate, name)(*words) == name
    assert member.inner.did == [(name, *words)]


async def test_shells_and_progress_are_the_members(member: Member) -> None:
    assert member.gate.staging(REPLICA) == "staging"
    assert await member.gate.enter(REPLICA, ("top",), terminal=None, label="x-0") == "enter"
    assert member.inner.did[1] == ("enter", REPLICA, ("top",), ("terminal", None), ("label", "x-0"))
