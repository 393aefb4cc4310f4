"""`cockpit serve --forced` as sshd runs it in place of a shell."""

from __future__ import annotations

import json
import subprocess

import pytest

from cockpit.headless.exitcodes import ExitCode
from tests.serve.served import SECONDS, ServedCockpit

pytestmark = [pytest.mark.real, pytest.mark.req("TR-08")]


def forced(served: ServedCockpit, command: str, level: str) -> subprocess.CompletedProcess[bytes]:
    process = served.user.start_program(
        *("env", f"SSH_ORIGINAL_COMMAND={command}", "EDITOR=sh", str(served.user._python), "-m", "cockpit.cli"),
        *("serve", "--forced", "--access", level),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(timeout=SECONDS)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def test_the_command_of_the_client_runs(served: ServedCockpit) -> None:
    done = forced(served, "jobs -o json --filter 'name:waiting'", "own")
    assert (done.returncode, [row["name"] for row in json.loads(done.stdout)["rows"]]) == (0, ["waiting"])


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("sh -c id", "admin"),
        ("jobs; id", "admin"),
        ("engine stop", "admin"),
        ("cancel 1", "read"),
        ("snapshot -", "own"),
    ],
)
def test_what_is_no_command_of_the_level_is_refused(served: ServedCockpit, command: str, level: str) -> None:
    done = forced(served, command, level)
    assert (done.returncode, done.stdout) == (ExitCode.REFUSED, b"")
    assert done.stderr
