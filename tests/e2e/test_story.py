"""The story the engine exists for: a job runs, fails, is kept, and a person stands inside its container."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.programs import needs_pgrep

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

FAILS = "echo model > /workspace/outputs/model.bin; echo note > /etc/cockpit-note; echo oops >&2; export X=1; exit 3"


@pytest.mark.req("JT-40", "JT-31", "UI-41")
def test_a_shell_opens_in_the_held_container_of_a_failed_job(user: CockpitUser) -> None:
    job = user.submit(FAILS, name="held-one", terminal=True, time_limit="10m")
    assert user.wait(job) == 3
    row = user.row("jobs", "--filter", f"id:{job}")
    assert (row["state"], row["exit_code"], row["name"]) == ("error", 3, "held-one")
    assert row["held_until"] is not None
    assert "error · held 3:59" in user.ok("jobs")
    assert user.ok("shell", job, "--", "cat", "/etc/cockpit-note").strip() == "note"
    assert not Path("/etc/cockpit-note").exists()
    assert user.run("shell", job, "--", "sh", "-c", "exit 7").returncode == 7
    assert user.ok("shell", job, "--", "pwd").strip() == "/workspace/algorithm"
    user.ok("shell", job, "--", "sh", "-c", "echo seen > /workspace/algorithm/seen")
    assert (user.work / "held-one/algo/seen").read_text() == "seen\n"


@pytest.mark.req("JT-40")
def test_nothing_in_a_container_ignores_what_cockpit_was_told_to_ignore(folder: Path) -> None:
    """The first command starts the engine."""
    user = CockpitUser(folder, inside=("nohup",))
    ignored = "grep SigIgn /proc/self/status"
    try:
        job = user.submit(f"{ignored}; exit 3", terminal=True)
        assert user.wait(job) == 3
        shown = (user.ok("logs", job), user.ok("shell", job, "--", *ignored.split()))
        of_engine = Path(f"/proc/{user.engine_pid()}/status").read_text()
    finally:
        user.leave()
    of_engine = next(line for line in of_engine.splitlines() if line.startswith("SigIgn"))
    # Not a comparison with 0: the C library has a signal of its own ignored in what it starts.
    assert [int(text.split()[1], 16) >> signal.SIGHUP - 1 & 1 for text in (*shown, of_engine)] == [0, 0, 0]


@pytest.mark.req("JT-40")
def test_bytes_pass_through_a_shell_command_unchanged(user: CockpitUser) -> None:
    job = user.submit("exit 1", terminal=True)
    user.wait(job)
    data = bytes(range(256)) * 4096
    done = user.run("shell", job, "--", "cat", stdin=data)
    assert done.stdout == data
    assert done.returncode == 0


@pytest.mark.req("JT-40", "UI-41")
def test_holds_are_listed_extended_and_ended(user: CockpitUser) -> None:
    job = user.submit("exit 1", terminal=True, debug_hold={"window": "1h"})
    user.wait(job)
    before = user.row("holds")["held_until"]
    user.ok("holds", "extend", job, "--by", "2h")
    assert user.row("holds")["held_until"] > before
    user.ok("holds", "end", job)
    assert user.rows("holds") == []
    assert user.run("shell", job, "--", "true").returncode != 0
    folder = user.folder / "state/cockpit-cluster/containers"
    assert user.rows("events", job)[-1]["event"] == "hold_ended"
    eventually(lambda: not list(folder.glob(f"{job}.*")))
    logs = user.folder / "state/cockpit-cluster/logs" / job
    assert logs.exists(), "they outlive the container"
    user.ok("delete", job, "--yes")
    assert not logs.exists()


@pytest.mark.req("JT-30", "JT-07")
def test_a_job_sees_its_folders_and_its_output_is_the_users(user: CockpitUser) -> None:
    data = user.work / "corpus"
    data.mkdir()
    script = "find /workspace | sort; id -u; echo done > /workspace/outputs/o; echo more > /workspace/volume/corpus/v"
    job = user.submit(script, volumes=[{"name": "corpus", "path": "./corpus"}])
    assert user.wait(job) == 0
    listed = user.ok("logs", job).splitlines()
    assert listed[:-1] == [
        "/workspace",
        "/workspace/algorithm",
        "/workspace/algorithm/t.sh",
        "/workspace/outputs",
        "/workspace/volume",
        "/workspace/volume/corpus",
    ]
    assert listed[-1] == str(os.geteuid())
    assert (data / "v").read_text() == "more\n"
    assert (user.work / "job/out/o").read_text() == "done\n"


@pytest.mark.req("JT-30")
def test_a_read_only_algorithm_refuses_a_write(user: CockpitUser) -> None:
    path = user.job("touch /workspace/algorithm/x", name="ro", algorithm={"path": "./ro/algo", "read_only": True})
    job = user.ok("submit", str(path)).split()[-1]
    assert user.wait(job) == 1
    assert "Read-only file system" in user.ok("logs", job, "--stderr")


@pytest.mark.req("JT-36")
def test_a_shell_opens_in_a_running_job_that_is_then_stopped(user: CockpitUser) -> None:
    job = user.submit("trap 'echo asked; exit 0' TERM; touch /tmp/ready; while :; do sleep 0.05; done")
    look = "until test -e /tmp/ready; do sleep 0.05; done; echo inside"
    user.until(job, "running")
    assert user.ok("shell", job, "--", "sh", "-c", look).strip() == "inside"
    user.ok("cancel", job, "--yes")
    user.wait(job)
    assert user.row("job", job)["state"] == "stopped"
    assert "asked" in user.ok("logs", job)
    assert user.rows("holds") == []


@pytest.mark.req("JT-21", "JT-40")
def test_a_job_that_runs_past_its_limit_expires_and_is_held(user: CockpitUser) -> None:
    job = user.submit("sleep 60", time_limit="1s", grace_period="0s", terminal=True)
    user.wait(job)
    row = user.row("job", job)
    assert row["state"] == "expired"
    assert row["held_until"] is not None
    assert user.ok("shell", job, "--", "pwd") == "/workspace/algorithm\n"


@pytest.mark.req("JT-40")
@needs_pgrep
def test_daemons_of_a_failed_job_are_dead_when_it_has_ended(user: CockpitUser) -> None:
    mark = f"86{os.getpid()}"
    job = user.submit(f"setsid nohup sleep {mark} >/dev/null 2>&1 & disown; exit 4", terminal=True)
    assert user.wait(job) == 4
    running = subprocess.run(["pgrep", "-f", f"sleep {mark}"], capture_output=True, check=False).stdout
    assert running == b""


@pytest.mark.req("UI-40", "UI-41")
def test_waiting_times_out_with_124_and_hold_and_release_work(user: CockpitUser) -> None:
    job = user.submit("exit 0", hold=True)
    assert user.run("wait", job, "--timeout", "0.2").returncode == 124
    assert "held by" in user.row("jobs")["why"]
    user.ok("release", job)
    assert user.wait(job) == 0
    assert user.run("release", job).returncode not in {0, 124}


@pytest.mark.req("UI-41")
def test_thousands_of_jobs_are_submitted_together_and_none_if_one_is_invalid(user: CockpitUser) -> None:
    lines = [{"name": f"j{n}", "command": "true", "output": "./out", "hold": True} for n in range(3000)]
    path = user.write("many.jsonl", "\n".join(map(json.dumps, lines)))
    ids = [line.split()[-1] for line in user.ok("submit", str(path)).splitlines()]
    assert ids == [str(number) for number in range(1, 3001)]
    broken = [*lines[:2], {"name": "x/y", "command": "true", "output": "./out"}, {"command": "A=1 python3 t.py"}]
    path = user.write("broken.jsonl", "\n".join(map(json.dumps, broken)))
    refused = user.run("submit", str(path))
    assert refused.returncode != 0
    errors = refused.stderr.decode().splitlines()
    assert any(":3: name: " in error for error in errors)
    assert any(":4: output: " in error for error in errors)
    assert any(":4: command: " in error and "bash -c" in error for error in errors)
    assert len(user.rows("jobs")) == 3000
