"""Engine, shim and holder die at bad moments; what is found again is the truth."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys

import msgspec
import pytest

from cockpit.engine.effects import KeepContainer, RemoveContainer, SignalKind, SignalReplica
from cockpit.errors import RequestRefused
from cockpit.model.cluster import Cluster, Staging
from cockpit.model.ids import Millis
from cockpit.model.spec import Algorithm, HoldCards
from cockpit.runtime.containers import networks
from cockpit.runtime.containers.plan import log_file
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.spawning import Shims, spawn
from tests.programs import needs_pgrep
from tests.runtime.containers.house import until

pytestmark = pytest.mark.real


def holder_pid(house, job) -> int:
    return json.loads((house.folder_of(job.replica) / "shim.json").read_text())["pid"]


def restart(house) -> None:
    """The engine is killed, and another one starts."""
    house.executor.close()
    house.move_in()


async def runs(house, script: str):
    """A job whose command runs until `finish` is touched."""
    job = house.job(
        f"touch /workspace/outputs/up; until test -e /workspace/outputs/finish; do sleep 0.01; done; {script}"
    )
    await house.executor.start(job)
    await house.started(job.replica)
    return job


def let_finish(job) -> None:
    with open(f"{job.spec.output}/finish", "w"):
        pass


@pytest.mark.req("TR-01")
async def test_a_running_job_is_found_again_and_its_end_reported(house):
    job = await runs(house, "exit 3")
    restart(house)
    await house.executor.adopt([job], [])
    assert await house.started(job.replica)
    assert house.seen.ended == []
    let_finish(job)
    assert (await house.ended(job.replica)).code == 3


@pytest.mark.req("TR-01")
async def test_an_end_while_no_engine_ran_is_reported_with_its_exit_code(house):
    job = await runs(house, "exit 3")
    house.executor.close()
    let_finish(job)
    await until((house.folder_of(job.replica) / "exit.json").exists)
    house.move_in()
    await house.executor.adopt([job], [])
    assert [(replica, status.code) for replica, status in house.seen.ended] == [(job.replica, 3)]


@pytest.mark.req("TR-01")
async def test_jobs_not_yet_started_are_started_and_started_ones_are_not(house):
    ran = house.job("echo ran >>/workspace/outputs/times; exit 3")
    await house.run(ran)
    fresh = house.job("exit 4")
    for _ in range(2):
        restart(house)
        await house.executor.adopt([ran, fresh], [])
        assert (await house.ended(ran.replica)).code == 3
        assert (await house.ended(fresh.replica)).code == 4
    with open(f"{ran.spec.output}/times") as stream:
        assert stream.read() == "ran\n"


@pytest.mark.req("TR-01")
async def test_a_replayed_start_starts_nothing_twice(house):
    job = house.job("echo ran >>/workspace/outputs/times; exit 3")
    plan, attempt = house.plan_for(job), Attempt(str(house.folder_of(job.replica)))
    house.folder_of(job.replica).mkdir()
    attempt.write_bytes("plan.json", msgspec.json.encode(plan))
    shims = (asyncio.to_thread(spawn, attempt, plan, Shims(sys.executable)) for _ in range(4))
    await asyncio.gather(*shims, house.executor.start(job), house.executor.start(job))
    assert (await house.ended(job.replica)).code == 3
    with open(f"{job.spec.output}/times") as stream:
        assert stream.read() == "ran\n"


@pytest.mark.req("TR-01")
@needs_pgrep
async def test_a_killed_shim_ends_its_job_which_is_reported_as_lost(house):
    job = await runs(house, "exit 0")
    os.kill(holder_pid(house, job), signal.SIGKILL)
    status = await house.ended(job.replica)
    assert "killed from outside" in status.lost
    assert not subprocess.run(
        ["pgrep", "-f", str(house.folder_of(job.replica))], check=False, capture_output=True
    ).stdout


async def test_engine_and_shim_killed_together_leave_a_lost_job(house):
    job = await runs(house, "exit 0")
    house.executor.close()
    os.kill(holder_pid(house, job), signal.SIGKILL)
    house.move_in()
    await house.executor.adopt([job], [])
    assert "killed from outside" in (await house.ended(job.replica)).lost


async def test_a_shim_killed_before_its_claim_has_started_no_command(house):
    """Only the plan was written down: the new engine starts the job."""
    job = house.job("exit 3")
    folder = house.folder_of(job.replica)
    folder.mkdir()
    (folder / "lock").touch()
    restart(house)
    await house.executor.adopt([job], [])
    assert (await house.ended(job.replica)).code == 3


async def test_after_a_reboot_a_running_job_is_lost_and_its_holder_not_taken_for_another(house):
    job = await runs(house, "exit 0")
    shim = house.folder_of(job.replica) / "shim.json"
    identity = json.loads(shim.read_text())
    shim.write_text(json.dumps({**identity, "boot_id": "an-earlier-one"}))
    restart(house)
    await house.executor.adopt([job], [])
    assert "restarted" in (await house.ended(job.replica)).lost
    shim.write_text(json.dumps(identity))
    restart(house)


@pytest.mark.req("JT-40", "TR-01")
async def test_a_held_container_without_holder_is_mounted_again(house):
    job = house.job("echo file >/etc/cockpit-t; echo tmp >/tmp/t; exit 3")
    await house.kept(job)
    os.kill(holder_pid(house, job), signal.SIGKILL)
    await until(lambda: not house.executor._watched[job.replica].alive)
    first, second = await asyncio.gather(
        *(house.enter(job.replica, "cat", "/etc/cockpit-t", "/tmp/t") for _ in range(2))
    )
    for entered in (first, second):
        assert (entered.facts.kept, entered.facts.remounted) == (True, True)
        with open(entered.pipe_fds[1], "rb") as stream:
            assert stream.read() == b"file\n"
        for fd in (entered.pipe_fds[0], entered.pipe_fds[2], entered.control_fd):
            os.close(fd)
    assert len(house.seen.ended) == 1


async def test_a_held_container_is_held_by_the_next_engine(house):
    job = house.job("echo file >/etc/cockpit-t; exit 3")
    await house.kept(job)
    restart(house)
    await house.executor.adopt([], [KeepContainer(job.replica, HoldCards.FREE)])
    assert await house.shell(job.replica, "cat /etc/cockpit-t") == (0, "file\n")
    assert house.seen.ended == []


async def test_a_held_container_that_cannot_be_remounted_reports_the_reason(house):
    algo = house.folder / "algo"
    algo.mkdir()
    job = house.job("exit 3", algorithm=Algorithm(path=str(algo)))
    await house.kept(job)
    os.kill(holder_pid(house, job), signal.SIGKILL)
    await until(lambda: not house.executor._watched[job.replica].alive)
    algo.rmdir()
    with pytest.raises(RequestRefused, match=r"algorithm: .*no such file"):
        await house.enter(job.replica, "true")


async def test_containers_of_no_job_are_removed(house):
    running, kept = await runs(house, "exit 0"), house.job("exit 3")
    await house.kept(kept)
    restart(house)
    await house.executor.adopt([], [])
    assert list((house.state / "containers").iterdir()) == []
    assert house.seen.ended == []
    assert log_file(house.state, running.replica, "stdout").exists()


async def test_a_hostile_folder_tree_is_removed(house):
    outside = house.folder / "precious"
    outside.mkdir()
    (outside / "file").touch()
    deep = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    script = (
        f"cd /etc && mkdir t && cd t && ln -s {outside} link && mkdir -m 000 closed && touch -- -rf $'new\\nline'"
        f" && mkdir deep && cd deep && /usr/bin/python3 -c {shlex.quote(deep)} && exit 3"
    )
    job = house.job(script)
    assert (await house.run(job)).code == 3
    (house.folder_of(job.replica) / "upper" / "etc" / "t" / "planted").symlink_to(outside)
    await house.executor.remove(RemoveContainer(job.replica))
    assert not house.folder_of(job.replica).exists()
    assert list((house.state / "trash").iterdir()) == []
    assert (outside / "file").exists()


async def test_removing_twice_or_a_missing_container_is_no_error(house):
    job = house.job("exit 0")
    await house.run(job)
    for _ in range(2):
        await house.executor.remove(RemoveContainer(job.replica))
        await house.executor.signal(SignalReplica(job.replica, SignalKind.KILL))
        await house.executor.keep(KeepContainer(job.replica, HoldCards.FREE))
    assert not house.folder_of(job.replica).exists()


async def test_an_unresponsive_holder_is_ended(house, monkeypatch):
    monkeypatch.setattr("cockpit.runtime.containers.driver._LEAVE_SECONDS", 0.05)
    job = house.job("exit 0")
    await house.run(job)
    os.kill(holder_pid(house, job), signal.SIGSTOP)
    await house.executor.remove(RemoveContainer(job.replica))
    assert not house.folder_of(job.replica).exists()


def dies_first(house, what: str) -> str:
    """A Python in whose place the first shim only does this."""
    wrapper = house.folder / "python"
    mark = house.folder / "died"
    mark_word, python = shlex.quote(str(mark)), shlex.quote(sys.executable)
    wrapper.write_text(f'#!/bin/sh\nif mkdir {mark_word} 2>/dev/null; then {what}; fi\nexec {python} "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)


@pytest.mark.req("TR-01")
@pytest.mark.parametrize("what", ["kill -9 $$", "kill -TERM $$", "exit 1"])
async def test_a_shim_that_ends_before_the_command_is_a_failed_start(house, what):
    house.executor._shims = Shims(dies_first(house, what))
    job = house.job("echo ran >>/workspace/outputs/times")
    await house.executor.start(job)
    status = await house.ended(job.replica)
    assert status.unstarted
    assert "died before the command began" in status.lost
    assert not os.path.exists(f"{job.spec.output}/times")


@pytest.mark.req("TR-01", "TR-02")
async def test_a_command_whose_shim_is_killed_after_it_was_let_go_runs_to_its_end(house):
    """Its resources must not be given to others while it runs."""
    wrapper = house.folder / "python"
    wrapper.write_text(f'#!/bin/sh\n{shlex.quote(sys.executable)} "$@"\nkill -9 $$\n')
    wrapper.chmod(0o755)
    house.executor._shims = Shims(str(wrapper))
    job = house.job("until test -e /workspace/outputs/finish; do sleep 0.02; done; exit 3")
    await house.executor.start(job)
    assert house.seen.ended == []
    let_finish(job)
    assert (await house.ended(job.replica)).code == 3


@pytest.mark.req("TR-01")
async def test_a_holder_killed_before_it_reported_the_start_is_a_lost_job(house):
    job = await runs(house, "exit 0")
    folder = house.folder_of(job.replica)
    house.executor.close()
    os.kill(holder_pid(house, job), signal.SIGKILL)
    await asyncio.to_thread(Attempt(str(folder)).wait_unlocked)
    (folder / "started.json").unlink()
    house.move_in()
    house.seen.started.clear()
    await house.executor.adopt([job], [])
    assert not (await house.ended(job.replica)).unstarted
    assert [replica for replica, _ in house.seen.started] == [job.replica]


@pytest.mark.req("TR-01")
async def test_a_holder_killed_before_the_command_ran_counts_as_not_started(house):
    job = await runs(house, "exit 0")
    folder = house.folder_of(job.replica)
    assert (folder / "beginning.json").exists()
    house.executor.close()
    os.kill(holder_pid(house, job), signal.SIGKILL)
    await asyncio.to_thread(Attempt(str(folder)).wait_unlocked)
    for name in ("beginning.json", "started.json"):
        (folder / name).unlink()
    house.move_in()
    await house.executor.adopt([job], [])
    status = await house.ended(job.replica)
    assert (status.unstarted, "before the command began" in status.lost) == (True, True)


async def test_a_holder_killed_after_the_command_started_is_a_lost_job(house):
    job = await runs(house, "exit 0")
    (house.folder_of(job.replica) / "started.json").unlink()
    os.kill(holder_pid(house, job), signal.SIGKILL)
    assert not (await house.ended(job.replica)).unstarted


@pytest.mark.req("TR-01")
async def test_a_held_container_ends_with_its_window_also_where_no_engine_runs(house):
    """A hold whose window is not over continues, and so does one whose engine runs."""
    over, going_on = await runs(house, "exit 3"), await runs(house, "exit 3")
    let_finish(over)
    let_finish(going_on)
    await house.ended(over.replica)
    await house.ended(going_on.replica)
    await house.executor.keep(KeepContainer(over.replica, HoldCards.FREE, Millis(1)))
    await house.executor.keep(KeepContainer(going_on.replica, HoldCards.FREE, Millis(2**50)))
    attempts = [Attempt(str(house.folder_of(each.replica))) for each in (over, going_on)]
    assert [(bool(each.holder_pid()), each.is_served()) for each in attempts] == [(True, True)] * 2
    house.executor.close()
    await until(lambda: not attempts[0].holder_pid())
    assert attempts[1].holder_pid()
    house.move_in()
    kept = [KeepContainer(each.replica, HoldCards.FREE) for each in (over, going_on)]
    await house.executor.adopt([], kept)


@pytest.mark.req("JT-50", "TR-01")
async def test_a_new_engine_removes_what_was_left_and_watches_the_disk_for_copies(house):
    trash, network, fast = house.state / "trash" / "3.1.0", house.state / "networks" / "3.1", house.folder / "fast"
    for folder in (trash, fast):
        folder.mkdir(parents=True)
    (trash / "file").touch()
    networks.lay_out(network)
    house.executor.close()
    house.rules = Cluster(staging=Staging(folder=str(fast), full_percent=0))
    house.move_in()
    await house.executor.adopt([], [])
    assert not trash.exists()
    assert not network.exists()
    await until(lambda: house.seen.full)
    assert f"{fast} is filled to" in house.seen.full[0]
