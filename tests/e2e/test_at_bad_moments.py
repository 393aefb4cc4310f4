"""A person who is too quick, or who tidies up too much."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.local.start import STOPPED
from tests.e2e.cockpit_user import COMMAND_SECONDS, eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]


@pytest.mark.req("JT-40")
def test_a_shell_right_after_submitting_waits_for_its_container(user: CockpitUser) -> None:
    user.ok("engine", "start")
    for name in ("a", "b", "c"):
        job = user.submit("exec sleep 300", name=name, specs=[{"cpus": 1, "memory": "64M", "cards": 0}])
        assert user.ok("shell", job, "--", "echo", "inside") == "inside\n"
        user.ok("cancel", job, "--now")


def test_an_engine_whose_folder_was_removed_is_still_stopped_and_restarted(user: CockpitUser) -> None:
    user.ok("engine", "start")
    pid = user.engine_pid()
    (user.folder / "state/cockpit-cluster").rename(user.folder / "tidied-away")
    user.ok("engine", "restart")
    assert user.engine_pid() != pid
    assert user.rows("jobs") == []
    user.ok("engine", "stop")
    assert user.run("engine", "status").returncode == 69


@pytest.mark.req("JT-36")
def test_stopping_the_engine_with_its_jobs_starts_no_waiting_job(user: CockpitUser) -> None:
    holder = user.submit("exec sleep 300", name="holder", exclusive=True)
    user.until(holder, "running")
    waiting = user.submit("touch /workspace/outputs/ran", name="waiting")
    user.ok("engine", "stop", "--jobs", "--yes")
    assert {row["state"] for row in user.rows("jobs", "--all")} == {"stopped"}
    assert not (user.work / "waiting/out/ran").exists()
    assert user.row("job", waiting)["started_at"] is None
    eventually(lambda: not list((user.folder / "state/cockpit-cluster/containers").iterdir()))


@pytest.mark.req("UI-40")
def test_a_watch_continues_after_a_killed_engine_and_ends_with_a_stopped_one(user: CockpitUser) -> None:
    first = user.submit("exec sleep 300", name="first")
    seen = user.folder / "seen.jsonl"
    with seen.open("w") as told:
        watching = user.start("jobs", "--watch", stdout=told, stderr=subprocess.PIPE)
    eventually(lambda: f'"id":{first},' in seen.read_text())
    user.kill_engine()
    second = user.submit("exec sleep 300", name="second")
    eventually(lambda: f'"id":{second},' in seen.read_text())
    user.ok("engine", "restart")
    third = user.submit("exec sleep 300", name="third")
    eventually(lambda: f'"id":{third},' in seen.read_text())
    user.ok("engine", "stop")
    _, said = watching.communicate(timeout=COMMAND_SECONDS)
    assert (watching.returncode, said.decode()) == (69, f"{STOPPED}\n")
    assert user.run("engine", "status").returncode == 69, "nobody has started it again"


@pytest.mark.req("JT-36")
def test_stopping_the_engine_says_which_held_containers_stay_and_ends_them_if_asked(user: CockpitUser) -> None:
    job = user.submit("exit 3", name="broken", terminal=True)
    assert user.wait(job) == 3
    containers = user.folder / "state/cockpit-cluster/containers"
    done = user.run("engine", "stop", "--jobs", "--yes")
    assert done.returncode == 0
    assert f"1 held container stays until its window ends: {job} (broken) until " in done.stderr.decode()
    assert f"`cockpit holds end {job}`" in done.stderr.decode()
    assert list(containers.iterdir())
    assert [row["id"] for row in user.rows("holds")] == [int(job)]
    done = user.run("engine", "stop", "--holds", "--yes")
    assert (done.returncode, done.stderr) == (0, b"")
    assert not list(containers.iterdir())


@pytest.mark.req("JT-36")
def test_stopping_a_stopped_engine_ends_the_jobs_and_holds_that_it_left(user: CockpitUser) -> None:
    spec = [{"cpus": 1, "memory": "64M", "cards": 0}]
    user.until(user.submit("exit 3", name="broken", terminal=True, specs=spec), "error")
    user.until(user.submit("exec sleep 300", name="runs", specs=spec), "running")
    user.ok("engine", "stop")
    containers = user.folder / "state/cockpit-cluster/containers"
    assert len(list(containers.iterdir())) == 2
    done = user.run("engine", "stop", "--jobs", "--yes")
    assert (done.returncode, b"1 held container stays" in done.stderr) == (0, True)
    assert len(list(containers.iterdir())) == 1
    user.ok("engine", "stop", "--holds", "--yes")
    assert not list(containers.iterdir())
    assert user.run("engine", "status").returncode == 69


@pytest.mark.req("TR-05")
def test_a_folder_named_as_the_package_does_not_become_the_engine(user: CockpitUser) -> None:
    user.write("cockpit/__init__.py", "raise SystemExit('the folder where the user stands was imported')\n")
    process = user.start_program(sys.executable, "-P", "-m", "cockpit.cli", "engine", "start", stderr=subprocess.PIPE)
    _, errors = process.communicate(timeout=COMMAND_SECONDS)
    assert (process.returncode, errors) == (0, b"")
