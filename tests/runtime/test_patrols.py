"""What is seen of nodes and logs while jobs run, and how people are told."""

from __future__ import annotations

import asyncio
import json
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from cockpit.model.events import PerformanceFell
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import Slow
from cockpit.model.node import Allocation, Node
from cockpit.runtime.alerts import Alerts
from cockpit.runtime.faultpatrol import Rounds
from cockpit.runtime.iterations import Iterations
from tests.doubles.samples import job
from tests.runtime.containers.test_prechecking import CARDS, NODE, PART

LINE = "this iteration hardware time is {} and e2e time is {} ms.\n"
FELL = PerformanceFell(JobId(4711), 1, Slow(rank=0, hardware_ms=95.0, e2e_ms=100.0), 0.9, "ann@example.org")


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


def interface(root: Path, name: str, state: str, *, hardware: bool = True) -> None:
    folder = root / "sys/class/net" / name
    (folder / "device").mkdir(parents=True, exist_ok=True) if hardware else folder.mkdir(parents=True, exist_ok=True)
    (folder / "operstate").write_text(f"{state}\n")


@pytest.mark.req("EL-11")
def test_an_interface_that_worked_and_does_not_any_more_is_a_fault(tmp_path: Path) -> None:
    for name, state, hardware in (("eth0", "up", True), ("eth1", "down", True), ("veth7", "up", False)):
        interface(tmp_path, name, state, hardware=hardware)
    interface(tmp_path, "bond0", "up", hardware=False)
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/route").write_text("Iface\tDestination\nbond0\t00000000\nveth7\t0000A8C0\n")
    rounds = Rounds(lambda: NODE, tmp_path)
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
def test_a_card_that_does_not_answer_is_its_nodes_fault_alone(tmp_path: Path) -> None:
    whole = Node(name=NodeName("n2"), cpus=8, memory_mib=8192)
    parts = [(NODE, PART), (whole, Allocation(1, whole.name, 1, 1))]
    machine = Node(name=NODE.name, cpus=8, memory_mib=8192, cards=CARDS[:1])
    assert Rounds(lambda: machine, tmp_path).look(parts) == {"n1": "card 2 (A100) does not answer any more"}


@pytest.mark.req("EL-13")
def test_its_owner_is_written_to_and_a_command_is_told(tmp_path: Path) -> None:
    mail, line = tmp_path / "mail", tmp_path / "line"
    alerts = Alerts("lab\nBcc: all@example.org", f"tee {mail}", f"tee {line}")
    asyncio.run(alerts.tell(job(), FELL))
    message = message_from_bytes(mail.read_bytes(), policy=default)
    assert (message["To"], message["Bcc"]) == ("ann@example.org", None)
    assert "above 0.9 (95 of 100 ms in replica 0)" in message.get_content()
    said = json.loads(line.read_text())
    assert (said["alert"], said["job"], said["hardware_ms"], said["threshold"]) == ("performance", job().id, 95.0, 0.9)


@pytest.mark.req("EL-13")
@pytest.mark.parametrize(
    ("command", "why"),
    [("/no/such/program", "cannot be run: No such file or directory"), ("false", "ended with 1")],
)
def test_what_fails_stands_in_the_log(capfd: pytest.CaptureFixture[str], command: str, why: str) -> None:
    asyncio.run(Alerts("lab", "", command).tell(job(), FELL))
    assert capfd.readouterr().err.strip() == f"cockpit engine: the alert about job {job().id}: {command} {why}"
