"""A machine-wide engine that only its tests see, and who uses it: its folders are over-mounted in a mount namespace of
their own."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.cockpit_user import CockpitUser
from tests.e2e.people import ANN, BOB, CAROL

MOUNTS = """
set -e
mount -t tmpfs -o mode=755 cockpit-test /run
mount -t tmpfs -o mode=755 cockpit-test /var/lib
mount -t overlay -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/work" cockpit-test /etc
mkdir -m 700 /var/lib/cockpit-cluster
mount --bind "$1/state" /var/lib/cockpit-cluster
mkdir -p /etc/cockpit-cluster
echo ready
exec sleep infinity
"""
"""The fixed places of a machine-wide engine: /run, /var/lib and /etc/cockpit-cluster. State is on a real disk."""


class MachineOfItsOwn:
    """A mount namespace that lives as long as this object is open. `inside` are the words that enter it."""

    def __init__(self, folder: Path) -> None:
        for name in ("etc", "work", "state"):
            (folder / name).mkdir(parents=True)
        (folder / "state").chmod(0o700)
        self._keeper = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", MOUNTS, "sh", folder], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"ready\n"
        self.inside = ("nsenter", f"--mount=/proc/{self._keeper.pid}/ns/mnt", "--")
        self.root = Path(f"/proc/{self._keeper.pid}/root")
        """The machine as seen inside."""

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.communicate()


class SystemEngine:
    """The engine of a cluster.toml, and the four who use it."""

    def __init__(self, folder: Path, python: str, cluster: str) -> None:
        self.machine = MachineOfItsOwn(folder / "machine")
        (self.machine.root / "etc/cockpit-cluster/cluster.toml").write_text(cluster)
        self.root = self._person(folder / "root", python, None)
        self.ann = self._person(folder / "ann", python, ANN)
        self.bob = self._person(folder / "bob", python, BOB)
        self.carol = self._person(folder / "carol", python, CAROL)
        self.root.ok("engine", "start", "--system")

    def _person(self, folder: Path, python: str, user: str | None) -> CockpitUser:
        person = CockpitUser(folder, python=python, user=user, inside=self.machine.inside)
        person.env["COCKPIT_CLUSTER"] = "system"
        return person

    def close(self) -> None:
        self.root.leave()
        self.machine.close()


@contextmanager
def system_engine(python: str, cluster: str) -> Iterator[SystemEngine]:
    """Give a machine-wide engine of this `cluster.toml`, in a folder that every user of the machine may enter."""
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        Path(path).chmod(0o755)
        engine = SystemEngine(Path(path), python, cluster)
        try:
            yield engine
        finally:
            engine.close()
