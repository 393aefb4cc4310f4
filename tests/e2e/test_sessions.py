"""Sessions in real containers: entered, left, kept; made from a job, and made a job of again."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

SMALL = ("--cpus", "1", "--memory", "256M", "--time-limit", "1h")


def state_of(user: CockpitUser, job: str) -> str:
    return str(user.row("job", job)["state"])


@pytest.mark.req("JT-03", "JT-39")
def test_leaving_a_session_ends_it_unless_keep_is_given(user: CockpitUser) -> None:
    left = user.run("session", *SMALL, stdin=b"echo mine > /workspace/outputs/made; exit 5\n")
    assert left.returncode == 5
    job = left.stdout.decode().split()[-1]
    assert (user.work / "made").read_text() == "mine\n"
    assert user.run("wait", job, "--timeout", "20").returncode != 0
    assert state_of(user, job) == "stopped"
    kept = user.ok("session", *SMALL, "--keep", "--", "sh", "-c", "echo here > /tmp/note").split()
    assert kept[:3] == ["submitted", "session", "as"]
    assert user.ok("shell", kept[3], "--", "cat", "/tmp/note") == "here\n"
    assert (state_of(user, kept[3]), user.row("job", kept[3])["kind"]) == ("running", "interactive")
    user.ok("cancel", kept[3])


@pytest.mark.req("JT-39", "JT-33")
def test_a_session_starts_from_a_failed_job_and_a_training_from_the_session(user: CockpitUser) -> None:
    failed = user.submit("exit 3", name="train", env={"LR": "0.1"}, time_limit="1h")
    assert user.wait(failed) == 3
    session = user.ok("session", "--from", failed, "--detach").split()[-1]
    user.until(session, "running")
    seen = user.ok("shell", session, "--", "sh", "-c", "echo $LR; ls /workspace/algorithm; pwd; echo 'echo ok' > t.sh")
    assert seen.split() == ["0.1", "t.sh", "/workspace/algorithm"]
    assert user.row("jobs", "--filter", "kind:interactive")["name"] == "train-dev"
    again = user.ok("train", session, "--name", "better", "--", "sh", "/workspace/algorithm/t.sh").split()[-1]
    assert user.wait(again) == 0
    assert user.ok("logs", again) == "ok\n"
    row = user.row("job", again)
    assert (row["kind"], row["name"], row["output"]) == ("regular", "better", str(user.work / "train/out"))
    user.ok("cancel", session)


@pytest.mark.req("JT-03")
def test_a_notebook_prints_its_address(user: CockpitUser) -> None:
    user.write("front.html", "hello")
    notebook = {
        "name": "book",
        "output": ".",
        "command": "python3 -u -m http.server 0 --bind 127.0.0.1 -d /workspace/outputs",
    }
    file = user.write("book.json", json.dumps({**notebook, "specs": [{"cpus": 1, "memory": "256M"}]}))
    said = user.ok("session", str(file), "--time-limit", "1h")
    address = user.row("job", "1")["address"]
    assert f"It says that it is at {address}" in said
    with urllib.request.urlopen(address + "front.html", timeout=60) as answer:
        assert answer.read() == b"hello"
    assert f"address       {address}" in user.ok("job", "1")
    user.ok("cancel", "1")
    assert user.wait("1") != 0
    assert user.row("job", "1")["address"] == ""
