"""`cockpit serve` of root: whose rights a session has, for keys, users, access levels and commands."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.headless.exitcodes import ExitCode
from tests.e2e.people import ANN, BOB
from tests.e2e.system_engine import SystemEngine, system_engine
from tests.environments import environment_for_everybody
from tests.serve.served import SECONDS, ServedCockpit
from tests.serve.test_ssh import environment_of, programs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.req("TR-08", "TR-14"), pytest.mark.usefixtures("host_mounts")]
CLUSTER = 'overcommit = true\n[[nodes]]\nname = "n1"\ncpus = 4\nmemory = "2G"\n'
OK, NO, MISSING = ExitCode.OK, ExitCode.REFUSED, ExitCode.NOT_FOUND


class Served:
    """A server of root on an engine of the machine; ann's held job is `job`."""

    def __init__(self, engine: SystemEngine) -> None:
        self.engine = engine
        self.ssh = ServedCockpit(engine.root)
        for name, options in {
            "ann-read": f'user="{ANN}",access="read"',
            "ann-own": f'user="{ANN}"',
            "bob-admin": f'user="{BOB}",access="admin"',
            "root-own": 'user="root",access="own"',
            "root-admin": 'user="root",access="admin"',
            "shared": f'user="{ANN},{BOB}"',
            "unnamed": "",
            "ghost": 'user="no-such-user"',
        }.items():
            self.ssh.key(name, options)
        self.ssh.start()
        self.job = engine.ann.submit("true", hold=True)

    def __call__(self, key: str, login: str, *command: str, stdin: bytes = b"") -> tuple[int, str]:
        done = self.ssh.ssh(self.ssh.folder / key, *command, login=login, stdin=stdin)
        return done.returncode, (done.stdout + done.stderr).decode()


@pytest.fixture(scope="module")
def served(people: None) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="cockpit-env-", dir="/var/tmp") as path:
        Path(path).chmod(0o755)
        yield from served_by(str(environment_for_everybody(Path(path) / "venv", also=("asyncssh",))))


def served_by(python: str) -> Iterator[Served]:
    with system_engine(python, CLUSTER) as engine:
        served = Served(engine)
        try:
            yield served
        finally:
            served.ssh.close()


ADMITTED = {
    ("ann-read", ANN),
    ("ann-own", ANN),
    ("bob-admin", BOB),
    ("root-own", "root"),
    ("root-admin", "root"),
    ("shared", ANN),
    ("shared", BOB),
}
KEYS = ("ann-read", "ann-own", "bob-admin", "root-own", "root-admin", "shared", "unnamed", "ghost")


@pytest.mark.parametrize("login", [ANN, BOB, "root", "no-such-user"], ids=["ann", "bob", "root", "nobody"])
@pytest.mark.parametrize("key", KEYS)
def test_a_key_logs_in_as_its_users_alone(served: Served, key: str, login: str) -> None:
    code, text = served(key, login, "overview")
    if (key, login) in ADMITTED:
        assert code == OK, text
    elif key == login.replace("no-such-user", "ghost"):
        assert (code, "There is no user no-such-user" in text) == (NO, True)
    else:
        assert (code, "Permission denied" in text) == (255, True)


MATRIX = {
    # By command, the exit codes of the sessions below.
    "jobs -o json": (OK, OK, OK, OK, OK),
    "job JOB": (OK, OK, MISSING, MISSING, OK),
    "set-priority JOB urgent": (NO, OK, MISSING, MISSING, OK),
    "hold JOB": (NO, ExitCode.CONFLICT, MISSING, MISSING, ExitCode.CONFLICT),
    "nodes drain n1 --reason x": (NO, NO, NO, NO, OK),
    "nodes resume n1": (NO, NO, NO, NO, OK),
    "snapshot -": (NO, NO, NO, NO, OK),
    "engine stop --yes": (NO, NO, NO, NO, NO),
    "serve": (NO, NO, NO, NO, NO),
    "sh": (NO, NO, NO, NO, NO),
}
SESSIONS = (("ann-read", ANN), ("ann-own", ANN), ("bob-admin", BOB), ("root-own", "root"), ("root-admin", "root"))


@pytest.mark.parametrize("command", MATRIX)
def test_a_session_has_the_rights_of_its_user_and_its_level(served: Served, command: str) -> None:
    given = {}
    for key, login in SESSIONS:
        code, text = served(key, login, *command.replace("JOB", served.job).split())
        given[key] = code, text[-200:]
    assert {key: code for key, (code, _) in given.items()} == dict(
        zip((key for key, _ in SESSIONS), MATRIX[command], strict=True)
    ), given


def test_a_job_belongs_to_the_user_of_the_session(served: Served) -> None:
    spec = {"name": "over-ssh", "hold": True, "command": "true", "output": "out"}
    code, text = served("shared", BOB, "submit", "-", stdin=json.dumps(spec).encode())
    assert code == OK, text
    row = served.engine.root.row("job", text.split()[-1])
    assert row["user"] == BOB


async def test_a_session_runs_with_the_users_credentials_and_nothing_of_roots(served: Served) -> None:
    entry = pwd.getpwnam(ANN)
    async with served.ssh.connect(served.ssh.folder / "ann-own", username=ANN) as connection:
        process = await connection.create_process("jobs --watch", encoding=None, term_type="xterm")
        assert await asyncio.wait_for(process.stdout.readline(), SECONDS)
        (pid,) = programs_of_user(served, entry.pw_uid)
        status, folder = status_of(pid)
        env = environment_of(pid)
        assert set(status["Uid"].split()) == {str(entry.pw_uid)}
        assert set(status["Gid"].split()) == {str(entry.pw_gid)}
        assert {int(each) for each in status["Groups"].split()} == set(os.getgrouplist(ANN, entry.pw_gid))
        assert int(status["CapEff"], 16) == 0
        assert (env["HOME"], env["USER"], env["COCKPIT_ACCESS"]) == (entry.pw_dir, ANN, "own")
        assert not {name for name in env if name.startswith("XDG_CONFIG")}
        assert folder == entry.pw_dir


def status_of(pid: int) -> tuple[dict[str, str], str]:
    """What the kernel says of a process, and its working folder."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line), str(Path(f"/proc/{pid}/cwd").readlink())


def programs_of_user(served: Served, uid: int) -> list[int]:
    return [pid for pid in programs_of(served.ssh) if Path(f"/proc/{pid}").stat().st_uid == uid]
