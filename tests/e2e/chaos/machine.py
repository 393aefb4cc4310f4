"""The machine of a chaos run: a network namespace whose way outward can be cut, and a clock that can be set."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.aftermath import lives
from tests.e2e.cockpit_user import ROOT, CockpitUser, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTWARD = "out0"
HUB_FD = 101
SETS_THE_CLOCK = """
# Python programs of this run read the time here. The wall clock alone is set; the clock since the boot goes on.
import os, time

def _offset():
    try:
        with open(os.environ["CHAOS_CLOCK"]) as stream:
            return int(stream.read())
    except (OSError, KeyError, ValueError):
        return 0

_nanos = time.time_ns
time.time_ns = lambda: _nanos() + 1_000_000_000 * _offset()
time.time = lambda: time.time_ns() / 1e9
"""
CLUSTER = """
overcommit = true
max_resumes = 1000

[preemption]
type = "preempt/qos"
mode = ["REQUEUE"]

[[qos]]
name = "low"
grace_time = "3s"

[[qos]]
name = "high"
priority = 9
preempt = ["low"]
"""
NODES = tuple(f"n{number}" for number in range(1, 7))
SPOT = ("n5", "n6")
PRICE = "0.3"


class Machine:
    """The parts that disturbances change. `network`: whether the engine has a network namespace of its own."""

    def __init__(self, folder: Path, inside: list[str], *, network: bool) -> None:
        self.network = network
        self.inside = inside
        self.user = CockpitUser(folder, inside=inside)
        self.prices, self.notices, self._clock = folder / "prices", folder / "notices", folder / "offset"
        (folder / "python").mkdir()
        (folder / "python/sitecustomize.py").write_text(SETS_THE_CLOCK)
        self.user.env |= {"PYTHONPATH": f"{folder / 'python'}:{ROOT}", "CHAOS_CLOCK": str(self._clock)}
        self.set_clock(0)
        self.set_price(PRICE)
        self.notices.write_text("")
        nodes = "".join(
            f'[[nodes]]\nname = "{name}"\ncpus = 4\nmemory = "2G"\npool = "training"\n'
            + ('taints = ["spot"]\n' if name in SPOT else "")
            for name in NODES
        )
        self.user.configure("cluster.toml", CLUSTER + nodes)
        self.user.configure(
            "config.toml",
            f'invariants = true\npatrol_period = "1s"\nspot_file = "{self.notices}"\nspot_period = "1s"\n'
            f'price_source = "{self.prices}"\nprice_period = "1s"\n',
        )

    def set_clock(self, seconds: int) -> None:
        """Let the wall clock differ from the real one by that; only backward, since files have the real time."""
        self._replace(self._clock, str(seconds))

    def set_price(self, price: str) -> None:
        self._replace(self.prices, f"* {price}\n")

    def give_notice(self, node: str, seconds: int) -> None:
        """Have the provider announce that it takes the node back."""
        self._replace(self.notices, f"{node} {seconds}\n")

    def _replace(self, path: Path, text: str) -> None:
        draft = path.with_suffix(".new")
        draft.write_text(text)
        draft.replace(path)

    def set_interface(self, state: str) -> None:
        """Cut the machine's way outward (`down`), or connect it again (`up`)."""
        subprocess.run([*self.inside, "ip", "link", "set", OUTWARD, state], check=True, capture_output=True)
        if state == "up":
            words = ["ip", "route", "replace", "default", "via", "192.0.2.1", "dev", OUTWARD]
            subprocess.run([*self.inside, *words], check=True, capture_output=True)

    def set_link(self, holder: int, rank: int, state: str) -> bool:
        """Cut a replica's link to its job's network, or connect it again; return whether there is one."""
        network = Path(f"/proc/{holder}/fd/{HUB_FD}")
        if not network.exists():
            return False
        words = ["nsenter", f"--net={network}", "ip", "link", "set", f"rank{rank}", state]
        return subprocess.run(words, check=False, capture_output=True).returncode == 0

    def interfaces(self) -> list[str]:
        listed = subprocess.run([*self.inside, "ip", "-o", "link"], check=True, capture_output=True, text=True)
        return sorted(line.split(": ")[1] for line in listed.stdout.splitlines())

    def trainers(self) -> dict[tuple[int, int, int], int]:
        """The processes of the jobs' scripts by job, attempt and replica."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if b"trainer.py" not in (entry / "cmdline").read_bytes():
                    continue
                pairs = (each.partition(b"=") for each in (entry / "environ").read_bytes().split(b"\0"))
            except OSError:
                continue
            env = {name.decode(): value.decode() for name, _, value in pairs}
            if env.get("CHAOS_RUN") == str(self.user.folder) and lives(int(entry.name)):
                found[int(env["COCKPIT_JOB_ID"]), int(env["COCKPIT_ATTEMPT"]), int(env["COCKPIT_REPLICA"])] = int(
                    entry.name
                )
        return dict(sorted(found.items()))


@contextmanager
def a_machine(folder: Path) -> Iterator[Machine]:
    """As root with a network of its own, else the machine's, whose links stay as they are."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter"))):
        with _left_in_order(Machine(folder, [], network=False)) as machine:
            yield machine
        return
    here = Path("/proc/self/ns/mnt").readlink(), Path("/proc/self/ns/net").readlink()
    holder = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "infinity"])
    try:
        eventually(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != here[1])
        eventually(lambda: Path(f"/proc/{holder.pid}/ns/mnt").readlink() != here[0])
        inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net", f"--mount=/proc/{holder.pid}/ns/mnt"]
        (folder / "sys").mkdir()
        # /sys shows the network namespace in which it was mounted, and the engine reads there which links work.
        lay_out = f"""
            ip link set lo up; ip link add {OUTWARD} type veth peer name world0
            ip link set world0 up; ip addr add 192.0.2.2/24 dev {OUTWARD}
            mount -t sysfs sysfs {folder}/sys
            for each in class/net devices/virtual/net; do mount --bind {folder}/sys/$each /sys/$each; done
        """
        subprocess.run([*inside, "sh", "-ec", lay_out], check=True)
        machine = Machine(folder, inside, network=True)
        machine.set_interface("up")
        with _left_in_order(machine):
            yield machine
    finally:
        holder.kill()
        holder.wait()


@contextmanager
def _left_in_order(machine: Machine) -> Iterator[Machine]:
    try:
        yield machine
    finally:
        machine.user.leave()
