"""slurmrestd of a real cluster, and the cockpit's way through it."""

from __future__ import annotations

import pwd
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.slurm.wire.rest import RestCommands, token_in
from cockpit.runtime.clock import SystemClock
from tests.ports import free_ports
from tests.real.slurm.conftest import HASTE
from tests.real.slurm.real_cluster import RealCluster

NOBODY = 65_534
START_SECONDS = 20


class RestDaemon:
    """One slurmrestd: on a unix socket for the user that runs it, or over HTTP for every user with a token."""

    def __init__(self, cluster: RealCluster, user: str = "") -> None:
        """`user`: whose socket it is; empty: HTTP."""
        self._cluster = cluster
        self.folder = Path(tempfile.mkdtemp(prefix="rest-", dir=cluster.folder))
        self.folder.chmod(0o777)
        self.socket = self.folder / "rest.sock"
        (self.port,) = free_ports(1)
        if user:
            known = pwd.getpwnam(user)
            # Without the variable slurmrestd refuses to run as root.
            env = {"SLURMRESTD_SECURITY": "disable_user_check"} if user == "root" else {}
            self._start(known.pw_uid, known.pw_gid, "rest_auth/local", f"unix:{self.socket}", env)
        else:
            self._start(NOBODY, NOBODY, "rest_auth/jwt", f"127.0.0.1:{self.port}", {"SLURM_JWT": "daemon"})
        deadline = time.monotonic() + START_SECONDS
        while not (self.socket.exists() if user else self._listens()):
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def token(self, user: str, seconds: int = 600) -> Path:
        """Return a file with a token of the user."""
        printed = self._cluster.ask("scontrol", "token", f"username={user}", f"lifespan={seconds}")
        assert printed is not None
        file = self.folder / f"token-{user}-{seconds}"
        file.write_text(printed)
        return file

    def over_socket(self, user: str) -> SlurmBackend:
        """Return a backend that reads jobs' files on this machine."""
        address = f"slurmrestd+unix://{self.socket}"
        return _over(RestCommands(address, str, SystemClock().now, LocalCommands(self._cluster.env)), user)

    def over_http(self, user: str) -> SlurmBackend:
        """Return a backend that can read no files."""
        token = token_in(str(self.token(user)), {})
        return _over(RestCommands(self.address(user), token, SystemClock().now), user)

    def address(self, user: str) -> str:
        return f"slurmrestd+http://{user}@127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def _listens(self) -> bool:
        return f":{self.port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()

    def _start(self, uid: int, gid: int, auth: str, where: str, more: Mapping[str, str]) -> None:
        who = ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
        env = {**self._cluster.env, **more}
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen((*who, "slurmrestd", "-a", auth, where), env=env, stdout=log, stderr=log)


def _over(commands: RestCommands, user: str) -> SlurmBackend:
    clock = SystemClock()
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now, HASTE)
    return SlurmBackend("cockpit", commands, reading, clock, user)
