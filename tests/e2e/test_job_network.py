"""The network of a job with several replicas: its own, reached by nobody else, gone with it, and with a way outward."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.shim.usernet import PROGRAMS
from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.e2e.people import ANN

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

FOUR_NODES = "overcommit = true\n" + "".join(
    f'[[nodes]]\nname = "n{number}"\ncpus = 4\nmemory = "4G"\n' for number in range(1, 5)
)
AGENT = "/run/cockpit-launch/agent"
STAYS = "while [ ! -e /workspace/outputs/gate ]; do sleep 0.05; done; hostname; getent hosts left-1 left-0; true"
SAYS = "import socket; s = socket.create_server(('', 2300)); c, _ = s.accept(); c.sendall(b'hello'); c.close()"
HEARS = "import socket, sys; print(socket.create_connection((sys.argv[1], 2300), timeout=60).recv(9).decode())"
WORLD = "192.0.2.1"


def open_gate(user: CockpitUser, name: str) -> None:
    (user.work / name / "out" / "gate").touch()


def reaches_its_own_and_nobody_else(user: CockpitUser) -> None:
    """Two jobs at once, and the engine dies meanwhile."""
    user.configure("cluster.toml", FOUR_NODES)
    left, right = (user.submit(STAYS, name=name, nodes=2, mode="pytorch") for name in ("left", "right"))
    for job in (left, right):
        user.until(job, "running")
    user.kill_engine()
    inside = ("shell", f"{left}/0", "--")
    assert user.ok(*inside, AGENT, "left-1", "hostname; echo $COCKPIT_REPLICA").split() == ["left-1", "1"]
    assert user.run(*inside, AGENT, "left-1", "exit 7").returncode == 7
    refused = user.run(*inside, AGENT, "right-1", "hostname")
    assert (refused.returncode, refused.stdout) == (255, b"")
    assert b"only replicas of the same job" in refused.stderr
    said = user.start("shell", f"{right}/1", "--", "python3", "-c", SAYS)
    hears = ("python3", "-c", HEARS)
    assert user.run(*inside, *hears, "198.18.0.3").returncode == 1
    eventually(lambda: user.run("shell", f"{right}/0", "--", *hears, "right-1").stdout == b"hello\n")
    assert said.wait(60) == 0
    for name, job in (("left", left), ("right", right)):
        open_gate(user, name)
        assert user.wait(job) == 0
    assert user.ok("logs", f"{left}/1").split() == ["left-1", "198.18.0.3", "left-1", "198.18.0.2", "left-0"]
    eventually(lambda: not (user.folder / "state/cockpit-cluster/networks").exists())


@pytest.mark.req("LA-10")
def test_a_job_network_reaches_its_own_replicas_and_no_other_job(user: CockpitUser) -> None:
    interfaces = set(Path("/sys/class/net").iterdir())
    reaches_its_own_and_nobody_else(user)
    # Where root's jobs have NAT, a test beside this one has an interface for a while.
    eventually(lambda: set(Path("/sys/class/net").iterdir()) <= interfaces)


@pytest.mark.req("LA-10")
def test_a_job_network_is_isolated_without_any_privilege(ann: CockpitUser) -> None:
    reaches_its_own_and_nobody_else(ann)


@pytest.mark.req("LA-50")
def test_one_replica_shares_the_machines_network(user: CockpitUser) -> None:
    job = user.submit("readlink /proc/self/ns/net")
    assert user.wait(job) == 0
    assert user.ok("logs", job).strip() == str(Path("/proc/self/ns/net").readlink())


@pytest.fixture
def before_the_world() -> Iterator[list[str]]:
    """Words that lead onto a machine with a network of its own, on which any user may open /dev/net/tun, as on most;
    behind it lies another machine."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("nft", "ip", "nsenter"))):
        pytest.skip("only root can make networks, with nftables and iproute2")
    machine = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "infinity"])
    world = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    here = Path("/proc/self/ns/mnt").readlink(), Path("/proc/self/ns/net").readlink()
    eventually(lambda: Path(f"/proc/{machine.pid}/ns/mnt").readlink() != here[0])
    eventually(lambda: Path(f"/proc/{world.pid}/ns/net").readlink() != here[1])
    inside = ["nsenter", f"--net=/proc/{machine.pid}/ns/net", f"--mount=/proc/{machine.pid}/ns/mnt"]
    lay_out = f"""
        ip link set lo up && ip link add out type veth peer name in netns {world.pid}
        ip addr add 192.0.2.2/30 dev out && ip link set out up
        nsenter --net=/proc/{world.pid}/ns/net sh -c 'ip addr add {WORLD}/30 dev in && ip link set in up'
        mkdir -p /dev/net && mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200
    """
    subprocess.run([*inside, "sh", "-ec", lay_out], check=True)
    server = subprocess.Popen(["nsenter", f"--net=/proc/{world.pid}/ns/net", "python3", "-c", SAYS])
    yield inside
    for each in (server, machine, world):
        each.kill()
        each.wait()


@contextmanager
def hears_the_world(somebody: CockpitUser, way: str) -> Iterator[None]:
    """The world knows no way back to anything but the machine. The engine still runs inside of this."""
    try:
        _hears_the_world(somebody, way)
        yield
    finally:
        somebody.leave()


def _hears_the_world(somebody: CockpitUser, way: str) -> None:
    somebody.configure("cluster.toml", FOUR_NODES)
    script = f'if [ $COCKPIT_REPLICA = 1 ]; then python3 -c "{HEARS}" {WORLD}; fi'
    job = somebody.submit(script, nodes=2, mode="pytorch")
    assert somebody.wait(job) == 0, somebody.ok("job", job)
    assert somebody.ok("logs", f"{job}/1") == "hello\n"
    assert f"outward by {way}" in somebody.ok("job", job)


@pytest.mark.req("LA-10")
def test_outgoing_connections_use_the_machines_address(folder: Path, before_the_world: list[str]) -> None:
    subprocess.run([*before_the_world, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"], check=True)
    somebody = CockpitUser(folder, inside=before_the_world)
    with hears_the_world(somebody, "NAT"):
        somebody.ok("engine", "restart")
        tables = [*before_the_world, "nft", "list", "tables"]
        eventually(lambda: subprocess.run(tables, check=True, capture_output=True).stdout == b"")


@pytest.mark.req("LA-10")
@pytest.mark.parametrize("program", ["slirp4netns", "pasta"])
def test_an_ordinary_users_job_network_connects_outward_through_a_program(
    folder: Path, before_the_world: list[str], everybodys_python: str, people: None, program: str
) -> None:
    hide = [f"mount --bind /dev/null $(command -v {each})" for each in PROGRAMS if each != program]
    lay_out = f"ip route add default via {WORLD}; {'; '.join(hide)}"
    subprocess.run([*before_the_world, "sh", "-ec", lay_out], check=True)
    somebody = CockpitUser(folder, python=everybodys_python, user=ANN, inside=before_the_world)
    with hears_the_world(somebody, program):
        eventually(lambda: not [each for each in Path("/proc").glob("[0-9]*") if _runs(each, program)])


def _runs(process: Path, program: str) -> bool:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")[0].endswith(program.encode())
    except OSError:
        return False
