"""A fleet over real hosts: its effects become orders to the members, and their reports come back in order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.effects import FreezeReplica, KeepContainer, RemoveContainer, StartReplica, ThawReplica
from cockpit.engine.fleet.reports import fleet_nodes, fleet_rules
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.submission.submit import submit
from cockpit.errors import RequestRefused
from cockpit.model import events
from cockpit.model.fleet import Member
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import Job, JobState
from cockpit.model.spec import HoldCards
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.fleet.members import Members
from cockpit.runtime.host import Act, Host, Settings
from cockpit.runtime.memory_journal import MemoryJournal
from tests.builders import ANN, NOON, a_node, a_spec
from tests.runtime.host_world import ScriptedExecutor, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.engine.ports import Observer
    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec

pytestmark = pytest.mark.req("FL-04")
RESERVING = {"kubernetes": "1.28", "scheduler": "6.8.0", "enable_reservation": True}
BY_TEST = Act(actor="root", origin="socket")


class Containers(ScriptedExecutor):
    """The simulated containers of one member, which also answers questions with its name."""

    def __init__(self, name: str, observer: Observer) -> None:
        super().__init__()
        self.name, self.observer = name, observer
        self.entered: list[tuple[Any, ...]] = []
        self.removed: list[str] = []

    async def enter(self, replica: ReplicaId, command: Any, *, terminal: Any, label: str) -> Any:
        self.entered.append((replica, command, terminal, label))
        return self.name

    async def used(self, replica: ReplicaId) -> Any:
        return self.name, replica

    def staging(self, replica: ReplicaId) -> Any:
        return self.name, replica

    async def copies(self) -> Any:
        return [f"copy on {self.name}"]

    async def remove_copy(self, key: str) -> bool:
        self.removed.append(key)
        return key == f"of {self.name}"


class Fleet:
    def __init__(self, machine: Machine | None = None) -> None:
        self.containers: dict[str, Containers] = {}
        clock, settings = VirtualClock(NOON), Settings(check_invariants=True)
        self.members = Members()
        for name in ("hub", "lab"):
            self.members.join(name, MemoryJournal(), partial(self._containers, name), clock, settings)
        self.host = Host(machine or Machine(ClusterState()), MemoryJournal(), lambda _: self.members, clock, settings)

    def _containers(self, name: str, observer: Observer) -> Any:
        return self.containers.setdefault(name, Containers(name, observer))

    async def begin(self) -> None:
        for host, count in zip(self.members.hosts, (1, 2), strict=True):
            nodes = [a_node(f"n{number}", cards=8) for number in range(count)]
            await host.act(partial(_have, nodes), BY_TEST)
        machines = self.members.machines
        rules = fleet_rules([Member(name=name, **RESERVING) for name in machines], fleet_nodes(machines))
        await self.host.act(lambda _machine, _now: [events.ClusterConfigured(rules)], BY_TEST)
        await self.host.start()
        await self.members.begin(self.host)
        await eventually(lambda: len(self.host.machine.state.nodes) == 3)

    async def stop(self) -> None:
        await self.host.stop()
        await self.members.stop()

    async def submit(self, spec: JobSpec) -> JobId:
        actor = Actor(ANN, admin=True)
        made = await self.host.act(lambda machine, now: submit(machine, [spec], actor, now=now), BY_TEST, _job)
        assert isinstance(made, bytes)
        return msgspec.json.decode(made, type=JobId)

    async def run(self, spec: JobSpec) -> JobId:
        job = await self.submit(spec)
        await eventually(lambda: self.job(job).state is JobState.RUNNING)
        return job

    def job(self, job: JobId) -> Job:
        return self.host.machine.state.jobs[job]

    def there(self, name: str) -> list[Job]:
        return list(self.members.machines[name].state.jobs.values())


def _have(nodes: list[Node], machine: Machine, _now: int) -> Any:
    return decide.nodes_changed(machine, nodes)


def _job(records: Any) -> bytes:
    return msgspec.json.encode(records[0].body.job)


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    made = Fleet()
    await made.begin()
    yield made
    await made.stop()


def starts_of(job: Job) -> list[StartReplica]:
    assert job.attempt is not None
    return [
        StartReplica(ReplicaId(job.id, 1, each.rank), job.spec, job.submitter, each) for each in job.attempt.placement
    ]


def gang(**fields: Any) -> JobSpec:
    return a_spec(nodes=3, card_milli=8000, divide_over_clusters=True, **fields)


async def test_a_fleet_knows_its_members_nodes_and_what_their_own_jobs_hold(fleet: Fleet) -> None:
    assert [*fleet.members.machines] == ["hub", "lab"]
    assert {*fleet.host.machine.state.nodes} == {"hub/n0", "lab/n0", "lab/n1"}
    hub, lab = fleet.members.hosts
    own = a_spec("own", card_milli=1000)
    await lab.act(lambda machine, now: submit(machine, [own], Actor(ANN, admin=True), now=now), BY_TEST)
    await eventually(lambda: [*fleet.host.machine.state.others] == ["lab"])
    ((held,),) = fleet.host.machine.state.others["lab"]
    assert held.node in {"lab/n0", "lab/n1"}
    await hub.act(partial(_have, []), BY_TEST)
    await eventually(lambda: {*fleet.host.machine.state.nodes} == {"lab/n0", "lab/n1"})


@pytest.mark.req("FL-08")
async def test_a_job_over_clusters_runs_and_ends_in_all_of_them(fleet: Fleet) -> None:
    job = await fleet.run(gang())
    attempt = fleet.job(job).attempt
    assert attempt is not None
    assert attempt.members == ("hub", "lab", "lab")
    assert {name: len(each.of(StartReplica)) for name, each in fleet.containers.items()} == {"hub": 1, "lab": 2}
    for name, ranks in (("hub", 1), ("lab", 2)):
        for rank in range(ranks):
            fleet.containers[name].end(fleet.there(name)[0].id, rank=rank)
    await eventually(lambda: fleet.job(job).state is JobState.SUCCEEDED)
    await eventually(lambda: fleet.members.resting)
    assert [each.state for name in ("hub", "lab") for each in fleet.there(name)] == [JobState.SUCCEEDED] * 2
    assert [len(fleet.containers[name].of(RemoveContainer)) for name in ("hub", "lab")] == [1, 2]


@pytest.mark.req("FL-08")
async def test_what_the_fleet_does_to_a_job_its_members_do_to_their_parts(fleet: Fleet) -> None:
    job = await fleet.run(gang())
    frozen = [FreezeReplica(ReplicaId(job, 1, rank)) for rank in range(3)]
    for freeze in frozen:
        await fleet.members.freeze(freeze)
    assert [each.state for name in ("hub", "lab") for each in fleet.there(name)] == [JobState.SUSPENDED] * 2
    for freeze in frozen:
        await fleet.members.thaw(ThawReplica(freeze.replica))
    assert [each.suspension for name in ("hub", "lab") for each in fleet.there(name)] == [None] * 2
    await fleet.host.act(lambda _machine, now: decide.cancel(fleet.job(job), now, 0), BY_TEST)
    await eventually(lambda: all(each.ending for name in ("hub", "lab") for each in fleet.there(name)))


async def test_a_removed_attempt_is_ended_in_all_of_its_members(fleet: Fleet) -> None:
    job = await fleet.run(gang())
    await fleet.members.remove(RemoveContainer(ReplicaId(job, 2, 0)))
    assert [each.ending for name in ("hub", "lab") for each in fleet.there(name)] == [None] * 2, "of another attempt"
    await fleet.members.remove(RemoveContainer(ReplicaId(job, 1, 0)))
    assert all(each.ending for name in ("hub", "lab") for each in fleet.there(name))


async def test_orders_that_are_given_again_after_a_start_have_no_second_effect(fleet: Fleet) -> None:
    job = await fleet.run(gang())
    await eventually(lambda: fleet.members.resting)
    starts = starts_of(fleet.job(job))
    before = [len(each.did) for each in fleet.containers.values()]
    await fleet.members.adopt(starts, [KeepContainer(ReplicaId(job, 1, 0), HoldCards.FREE)])
    await eventually(lambda: fleet.members.resting)
    assert [len(each.did) for each in fleet.containers.values()] == before
    assert [len(fleet.there(name)) for name in ("hub", "lab")] == [1, 1]
    again = Fleet(Machine(fleet.host.machine.state))
    await again.begin()
    await again.members.adopt(starts, [])
    assert [len(again.there(name)) for name in ("hub", "lab")] == [1, 1], "what the last engine did not come to"
    await again.stop()


@pytest.mark.req("FL-08")
async def test_a_containers_usage_copies_and_shell_are_those_of_its_member(fleet: Fleet) -> None:
    job = await fleet.run(gang())
    replicas = [ReplicaId(job, 1, rank) for rank in range(3)]
    there = [("hub", ReplicaId(JobId(1), 1, 0)), *(("lab", ReplicaId(JobId(1), 1, rank)) for rank in range(2))]
    assert [await fleet.members.used(each) for each in replicas] == there
    assert [fleet.members.staging(each) for each in replicas] == there
    assert [await fleet.members.enter(each, ["ls"], terminal=None, label="me") for each in replicas] == [
        "hub",
        "lab",
        "lab",
    ]
    assert fleet.containers["lab"].entered[1] == (there[2][1], ["ls"], None, "me")
    unknown = ReplicaId(job, 2, 0)
    assert await fleet.members.used(unknown) is None
    assert fleet.members.staging(unknown) is None
    with pytest.raises(RequestRefused, match="has no container to enter"):
        await fleet.members.enter(unknown, [], terminal=None, label="me")


async def test_staged_copies_are_those_of_all_members(fleet: Fleet) -> None:
    assert await fleet.members.copies() == ["copy on hub", "copy on lab"]
    assert [await fleet.members.remove_copy(key) for key in ("of hub", "of lab", "of none")] == [True, True, False]
    assert fleet.containers["lab"].removed == ["of hub", "of lab", "of none"], "each member is asked"


@pytest.mark.req("SC-14")
async def test_members_are_not_idle_while_a_report_is_not_applied(fleet: Fleet) -> None:
    await eventually(lambda: fleet.members.resting)
    async with fleet.host._ledger.turn():  # nothing can be applied
        fleet.members._queue_report(lambda _machine, _now: [])
        await eventually(fleet.members._reports.empty)
        assert not fleet.members.resting
    await eventually(lambda: fleet.members.resting)
