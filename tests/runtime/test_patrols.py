"""Checks of nodes and logs while jobs run, and the notices that users get."""

from __future__ import annotations

import asyncio
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import SendAlert, SignalReplica
from cockpit.model.attempt import Slow
from cockpit.model.events import NodesChanged
from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Allocation, CardSlice, Node
from cockpit.model.resilience import Performance, Resume
from cockpit.model.spec import JobSpec
from cockpit.runtime import iterations as iterations_module
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.faultpatrol import FaultChecks, check_periodically
from cockpit.runtime.iterations import Iterations, Watch
from tests.builders import NOON, a_node, a_spec
from tests.runtime.containers.test_prechecking import CARDS, NODE, PART
from tests.runtime.host_world import BY_ANN, World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LINE = "this iteration hardware time is {} and e2e time is {} ms.\n"


@pytest.mark.req("EL-13")
def test_the_line_of_the_source_is_found_however_it_is_printed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    iterations = Iterations(log)
    assert list(iterations.read_on()) == []
    text = "starts\n[default0]:" + LINE.format(2201.521, 3317.794921875) + LINE.format(1, 0)
    log.write_text(text + "this iteration hardware ti")
    assert list(iterations.read_on()) == [(2201.521, 3317.794921875)]
    log.write_text(text + LINE.format(3, 4) + "\udc1b".encode(errors="surrogatepass").decode(errors="replace"))
    assert list(iterations.read_on()) == [(3.0, 4.0)]
    assert list(iterations.read_on()) == []


@pytest.mark.req("EL-13")
def test_of_an_endless_line_the_end_is_kept_and_a_log_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text("." * 10_000)
    iterations = Iterations(log)
    assert list(iterations.read_on()) == []
    assert len(iterations._unread) == 4096
    with log.open("a") as file:
        file.write(LINE.format(9, 10) + LINE.format(8, 10))
    monkeypatch.setattr(iterations_module, "PIECE", len(LINE.format(9, 10)))
    assert list(iterations.read_on()) == [(9.0, 10.0)]
    assert list(iterations.read_on()) == [(8.0, 10.0)]


def interface(root: Path, name: str, state: str, *, hardware: bool = True) -> None:
    folder = root / "sys/class/net" / name
    (folder / "device").mkdir(parents=True, exist_ok=True) if hardware else folder.mkdir(parents=True, exist_ok=True)
    (folder / "operstate").write_text(f"{state}\n")


@pytest.mark.req("EL-11")
def test_a_network_interface_that_stopped_working_is_a_fault(tmp_path: Path) -> None:
    for name, state, hardware in (("eth0", "up", True), ("eth1", "down", True), ("veth7", "up", False)):
        interface(tmp_path, name, state, hardware=hardware)
    interface(tmp_path, "bond0", "up", hardware=False)
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/route").write_text("Iface\tDestination\nbond0\t00000000\nveth7\t0000A8C0\n")
    rounds = FaultChecks(lambda: NODE, tmp_path)
    parts = [(NODE, PART)]
    assert rounds.look(parts) == {}
    interface(tmp_path, "veth7", "down", hardware=False)
    assert rounds.look(parts) == {}
    interface(tmp_path, "eth0", "down")
    assert rounds.look(parts) == {"n1": "the network interface eth0 is down"}
    interface(tmp_path, "bond0", "lowerlayerdown", hardware=False)
    assert rounds.look(parts)["n1"] == (
        "the network interface bond0 is lowerlayerdown; the network interface eth0 is down"
    )
    rounds.rest()
    assert rounds.look(parts) == {}


@pytest.mark.req("EL-11")
def test_an_unresponsive_card_is_a_fault_of_its_node_only(tmp_path: Path) -> None:
    whole = Node(name=NodeName("n2"), cpus=8, memory_mib=8192)
    parts = [(NODE, PART), (whole, Allocation(1, whole.name, 1, 1))]
    machine = Node(name=NODE.name, cpus=8, memory_mib=8192, cards=CARDS[:1])
    assert FaultChecks(lambda: machine, tmp_path).look(parts) == {"n1": "card 2 (A100) does not answer any more"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path, VirtualClock(NOON))
    await world.begin()
    yield world
    await world.stop()


def resuming(**fields: Any) -> JobSpec:
    return a_spec(pool="a", resume=Resume(max_resumes=1, grace_seconds=60, **fields))


async def in_pool(world: World) -> JobId:
    """A running job on one of two nodes."""
    nodes = (a_node("n1", pool="a"), a_node("n2", pool="a"))
    await world.host.act(lambda *_: [NodesChanged(nodes)], BY_ANN)
    return await world.run(resuming(performance=Performance(threshold=0.5)))


@pytest.mark.req("EL-11")
async def test_every_node_is_checked_periodically_and_an_unresponsive_one_has_a_fault(world: World) -> None:
    job = await in_pool(world)
    answers = threading.Event()

    def probe() -> Node:
        answers.wait(5)
        return NODE

    async with asyncio.TaskGroup() as group:
        patrol = group.create_task(check_periodically(world.host, FaultChecks(probe, world.folder), 1))
        while not world.executor.of(SignalReplica):
            world.clock.advance(1000)
            await asyncio.sleep(0.01)
        patrol.cancel()
        answers.set()
    node = world.host.machine.state.jobs[job].attempt.placement[0].node
    assert world.host.machine.state.nodes[node].state_reason == "it has not answered for 1 s"


@pytest.mark.req("EL-13")
async def test_a_slow_iteration_is_in_the_journal_before_a_notification_is_sent(world: World) -> None:
    job = await in_pool(world)
    logs = world.folder / "logs"
    (logs / str(job)).mkdir(parents=True)
    told: list[SendAlert] = []

    def alert(effect: SendAlert) -> None:
        assert world.host.machine.state.jobs[job].attempt.slow == effect.alert.slow
        told.append(effect)

    world.host.send_alert = alert
    watch = Watch(world.host, logs)
    await watch.look()
    with (logs / str(job) / "1.0.stderr").open("a") as log:
        log.write(LINE.format(5, 10) + LINE.format(6, 10) + LINE.format(7, 10))
    await watch.look()
    await watch.look()
    assert [each.alert.slow for each in told] == [Slow(rank=0, hardware_ms=6.0, e2e_ms=10.0)]


@pytest.mark.req("EL-11")
def test_an_interface_of_unknown_state_works_and_one_that_is_gone_does_not(tmp_path: Path) -> None:
    interface(tmp_path, "eth0", "unknown")
    interface(tmp_path, "eth1", "dormant")
    rounds = FaultChecks(lambda: NODE, tmp_path)
    assert rounds.look([(NODE, PART)]) == {}
    shutil.rmtree(tmp_path / "sys/class/net/eth0")
    for _ in range(2):
        assert rounds.look([(NODE, PART)]) == {"n1": "the network interface eth0 is gone"}
    rounds.rest()
    assert rounds.look([(NODE, PART)]) == {}, "while nothing is watched, interfaces may go"


@pytest.mark.req("EL-11")
def test_a_card_that_is_lost_is_a_fault_of_the_node_that_has_it(tmp_path: Path) -> None:
    other = replace(NODE, name=NodeName("n2"))
    rounds = FaultChecks(lambda: replace(NODE, cards=CARDS[:1]), tmp_path)
    first = replace(PART, slices=(CardSlice(0, None),))
    found = rounds.look([(NODE, first), (other, replace(PART, node=other.name))])
    assert found == {"n2": "card 2 (A100) does not answer any more"}
