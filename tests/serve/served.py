"""A real `cockpit serve` of one user with an engine of their own, and the ways to reach it."""

from __future__ import annotations

import os
import pwd
import re
import select
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import asyncssh

from tests.e2e.cockpit_user import a_new_user

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.cockpit_user import CockpitUser

START_SECONDS = 60
SECONDS = 100
"""Longest wait for anything; most of it is left."""
ME = pwd.getpwuid(os.geteuid()).pw_name


class ServedCockpit:
    """The server, its keys by name, and its log. `start` begins it."""

    def __init__(self, user: CockpitUser, login: str = ME) -> None:
        self.user, self.login = user, login
        self.folder = user.folder / "serve"
        self.folder.mkdir(mode=0o755)
        self.keys_file = self.folder / "authorized_keys"
        self.lines: list[str] = []
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def key(self, name: str, options: str = "", *, admit: bool = True) -> Path:
        """Make a key, and let it log in with these options."""
        path = self.folder / name
        key = asyncssh.generate_private_key("ssh-ed25519", comment=name)
        key.write_private_key(path)
        path.chmod(0o600)
        if admit:
            self.admit(f"{options} {key.export_public_key().decode().strip()}".strip())
        return path

    def admit(self, line: str) -> None:
        self.lines.append(line)
        self.keys_file.write_text("\n".join(self.lines) + "\n")
        self.keys_file.chmod(0o644)

    def start(self, *options: str) -> None:
        """Start it at a port of the system's choice, and wait until it listens."""
        self._process = self.user.start(
            *("serve", "--listen", "127.0.0.1:0", "--authorized-keys", str(self.keys_file)),
            *("--host-key", str(self.folder / "host/key"), *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.log = ""
        self.port = int(self.logged(r"SSH at \S+:(\d+)").group(1))
        # Sessions before that are started in another way.
        self.forks_from = int(self.logged(r"sessions start from process (\d+)").group(1))

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "start it first"
        return self._process

    def logged(self, pattern: str) -> re.Match[str]:
        """Wait until the log has the pattern. Raises AssertionError."""
        assert self.process.stderr is not None
        ends = time.monotonic() + START_SECONDS
        while (found := re.search(pattern, self.log)) is None:
            left = ends - time.monotonic()
            assert left > 0, f"the log never has {pattern}:\n{self.log}"
            if select.select([self.process.stderr], [], [], left)[0]:
                data = os.read(self.process.stderr.fileno(), 65536)
                assert data, f"the server has ended:\n{self.log}"
                self.log += data.decode()
        return found

    def words(self, key: Path, *options: str, login: str = "") -> list[str]:
        """The command line of a real OpenSSH client."""
        known = self.folder / "known_hosts"
        return [
            *(
                "ssh",
                "-F",
                "none",
                "-p",
                str(self.port),
                "-i",
                str(key),
                "-o",
                "IdentitiesOnly=yes",
                "-o",
                "BatchMode=yes",
            ),
            *("-o", "StrictHostKeyChecking=accept-new", "-o", f"UserKnownHostsFile={known}", "-o", "LogLevel=ERROR"),
            *options,
            f"{login or self.login}@127.0.0.1",
        ]

    def ssh(
        self, key: Path, *command: str, login: str = "", options: tuple[str, ...] = (), stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command through OpenSSH."""
        return subprocess.run(
            [*self.words(key, *options, login=login), *command],
            input=stdin,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )

    def connect(self, key: Path, **options: Any) -> Any:
        """Connect with asyncssh."""
        return asyncssh.connect(
            "127.0.0.1",
            self.port,
            **{
                "username": self.login,
                "client_keys": [str(key)],
                "known_hosts": None,
                "agent_path": None,
                "config": None,
                **options,
            },
        )

    def stop(self) -> int:
        """Ask it to stop; the exit code."""
        self.process.terminate()
        _, rest = self.process.communicate(timeout=SECONDS)
        self.log += rest.decode()
        return self.process.returncode

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def served_cockpit() -> Iterator[ServedCockpit]:
    """A server that is not started yet, of the user who runs the tests."""
    with a_new_user() as user:
        served = ServedCockpit(user)
        try:
            yield served
        finally:
            served.close()
