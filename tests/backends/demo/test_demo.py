"""A person in the demo: everything that works on a real cluster works here, and nothing leaves its folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from cockpit.backends.base import Phase
from cockpit.backends.demo.backend import open_demo
from cockpit.errors import RequestRefused
from cockpit.model.asking import LogRequest, LogStream, ShellRequest
from cockpit.model.attempt import EndCause
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.spec import JobSpec
from tests.backends.demo.conftest import LAB, Open, pass_hours, until
from tests.programs import needs_bubblewrap


def a_job(name: str, command: str, **fields: object) -> JobSpec:
    return JobSpec(name=name, command=command, output="/home/ann/out", **fields)


@pytest.mark.req("UI-50")
async def test_a_submitted_job_runs_and_succeeds(opened: Open) -> None:
    demo = await opened()
    (job,) = await demo.backend.submit([a_job("mine", "sleep 600")])
    found = await until(demo, job, lambda each: each.ended)
    assert found.state is JobState.SUCCEEDED
    assert found.attempt is not None
    (replica,) = found.attempt.replicas
    assert (replica.ended_at or 0) - (replica.started_at or 0) == 600_000
    assert found.submitter.name == "ann"


@pytest.mark.req("UI-50")
async def test_a_failed_job_is_held_and_its_hold_extended_and_ended(opened: Open) -> None:
    demo = await opened()
    (job,) = await demo.backend.submit([a_job("mine", "bash -c 'exit 3'", terminal=True)])
    found = await until(demo, job, lambda each: each.ended)
    assert (found.state, found.kept) == (JobState.ERROR, True)
    assert "error: manifest.txt" in (await demo.backend.job(job)).log_tail
    (hold,) = [each for each in await demo.backend.holds() if each.job == job]
    assert await demo.backend.extend_hold(job, seconds=3600) == hold.held_until + 3_600_000
    await demo.backend.end_hold(job)
    assert job not in {each.job for each in await demo.backend.holds()}


async def test_holding_releasing_and_cancelling_work(opened: Open) -> None:
    demo = await opened()
    (job,) = await demo.backend.submit([a_job("mine", "sleep 86000", hold=True)])
    await pass_hours(demo, 1)
    assert (await demo.backend.job(job)).job.state is JobState.QUEUED
    await demo.backend.release(job)
    await until(demo, job, lambda each: each.state is JobState.RUNNING)
    await demo.backend.cancel(job)
    found = await until(demo, job, lambda each: each.ended)
    assert (found.state, found.end_cause) == (JobState.STOPPED, EndCause.STOP)
    with pytest.raises(RequestRefused, match="has already ended"):
        await demo.backend.cancel(job)


async def test_a_job_past_its_limit_expires(opened: Open) -> None:
    demo = await opened()
    (job,) = await demo.backend.submit([a_job("mine", "sleep 7200", time_limit_seconds=600)])
    assert (await until(demo, job, lambda each: each.ended)).state is JobState.EXPIRED


async def test_a_followed_log_grows_with_the_demos_time(opened: Open) -> None:
    demo = await opened()
    (job,) = await demo.backend.submit([a_job("mine", "sleep 3600")])
    await until(demo, job, lambda each: each.state is JobState.RUNNING)
    await pass_hours(demo, 0.1)
    first = await demo.backend.logs(LogRequest(job=job))
    assert first.data.startswith(b"torch 2.6.0")
    async with asyncio.TaskGroup() as group:
        more = group.create_task(demo.backend.logs(LogRequest(job=job, offset=len(first.data), wait=True)))
        await asyncio.sleep(0)
        assert not more.done()
        await pass_hours(demo, 0.1)
    assert more.result().data.startswith(b"step")
    await until(demo, job, lambda each: each.ended)
    everything = await demo.backend.logs(LogRequest(job=job))
    assert everything.data.startswith(first.data + more.result().data)
    assert everything.ended
    assert everything.data.endswith(b"done\n")


async def test_changes_are_sent_to_watchers(opened: Open) -> None:
    demo = await opened()
    deltas = demo.backend.watch_jobs()
    first = await anext(deltas)
    assert {row.id for row in first.changed} == set(demo.host.machine.state.jobs)
    (job,) = await demo.backend.submit([a_job("mine", "sleep 60", hold=True)])
    assert [row.id for row in (await anext(deltas)).changed] == [job]
    await deltas.aclose()


async def test_the_overview_is_sent_when_it_changes_and_the_connection_stays_open(opened: Open) -> None:
    demo = await opened()
    overviews, connections = demo.backend.overviews(), demo.backend.connections()
    before = (await anext(overviews)).jobs_by_state.get("queued", 0)
    await demo.backend.submit([a_job("mine", "true", hold=True)])
    assert (await anext(overviews)).jobs_by_state["queued"] == before + 1
    assert (await anext(connections)).phase is demo.backend.connection.phase is Phase.CONNECTED
    await overviews.aclose()
    await connections.aclose()


async def test_the_status_identifies_the_demo(opened: Open) -> None:
    demo = await opened()
    status = await demo.backend.status()
    assert status.containers.startswith("demo")
    assert status.socket == ""
    assert status.user == demo.person == "ann"
    assert (await demo.backend.overview()).cluster.endswith("DEMO")


@pytest.mark.req("UI-50")
async def test_two_demos_are_independent(opened: Open) -> None:
    one, two = await opened(seed=1), await opened(seed=1)
    (job,) = await one.backend.submit([a_job("mine", "true", hold=True)])
    with pytest.raises(RequestRefused, match=f"no job {job}"):
        await two.backend.job(JobId(job))


@pytest.mark.req("UI-50")
async def test_a_demo_writes_only_its_folder_and_removes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    demo = await open_demo(LAB)
    for row in await demo.backend.jobs(ended=True):
        await demo.backend.logs(LogRequest(job=row.id, stream=LogStream.STDERR))
    assert names_in(tmp_path) == [demo.folder.name]
    assert list(demo.folder.rglob("*.stdout"))
    await demo.close()
    assert names_in(tmp_path) == []


async def test_a_demo_runs_by_itself_until_it_is_closed(tmp_path: Path) -> None:
    demo = await open_demo(LAB, folder=tmp_path / "mine", speed=10_000)
    opening = demo.now()
    async with asyncio.timeout(60):
        async for _ in demo.backend.watch_jobs():
            if demo.now() > opening + 600_000:
                break
    await demo.close()
    closed = demo.now()
    for _ in range(10):
        await asyncio.sleep(0)
    assert demo.now() == closed


async def kept_job(demo: object) -> JobId:
    backend = demo.backend
    (job,) = await backend.submit([a_job("größe-1", "false", terminal=True)])
    await until(demo, job, lambda each: each.ended)
    return job


@pytest.mark.real
@pytest.mark.req("UI-50")
@needs_bubblewrap
async def test_a_shell_sees_the_jobs_files_and_no_files_of_this_machine(opened: Open) -> None:
    demo = await opened()
    job = await kept_job(demo)
    script = "cat config.json; ls /home; ls -A ~; ls /sys/class/net /root /work 2>/dev/null; id -un; exit 7"
    session = await demo.backend.open_shell(ShellRequest(job=job, command=("sh", "-c", script)))
    assert "its processes are gone" in session.notice
    out, code = await asyncio.to_thread(finished, session)
    lines = out.decode().splitlines()
    assert lines[0].startswith('{"steps"')
    assert lines[1:] == ["ann", "ann"]
    assert code == 7


@pytest.mark.real
@needs_bubblewrap
async def test_files_written_in_a_shell_persist_until_the_hold_ends(opened: Open) -> None:
    demo = await opened()
    job = await kept_job(demo)
    await asyncio.to_thread(finished, await demo.backend.open_shell(ShellRequest(job=job, command=("touch", "seen"))))
    session = await demo.backend.open_shell(ShellRequest(job=job, command=("ls",)))
    assert b"seen" in (await asyncio.to_thread(finished, session))[0]
    await demo.backend.end_hold(job)
    with pytest.raises(RequestRefused, match="no container to enter"):
        await demo.backend.open_shell(ShellRequest(job=job))


@pytest.mark.real
@needs_bubblewrap
async def test_an_interactive_shell_has_a_terminal_of_the_size_asked_for(opened: Open) -> None:
    demo = await opened()
    job = await kept_job(demo)
    session = await demo.backend.open_shell(ShellRequest(job=job, terminal=True, rows=31, columns=97))
    assert session.terminal_fd is not None
    os.write(session.terminal_fd, b"stty size; exit 4\n")
    said = await asyncio.to_thread(read_to_end, session.terminal_fd)
    assert b"31 97" in said
    assert "größe-1-0:/workspace/algorithm$".encode() in said
    assert await asyncio.to_thread(session.exit_code) == 4
    close(session.terminal_fd, session.control_fd)


@pytest.mark.real
@needs_bubblewrap
async def test_closing_the_shell_control_or_the_demo_ends_the_shell(opened: Open) -> None:
    demo = await opened()
    job = await kept_job(demo)
    left = await demo.backend.open_shell(ShellRequest(job=job, command=("sleep", "1000")))
    kept = await demo.backend.open_shell(ShellRequest(job=job, command=("sleep", "1000")))
    os.close(left.control_fd)
    assert await asyncio.to_thread(read_to_end, left.pipe_fds[1]) == b""
    await demo.close()
    assert await asyncio.to_thread(kept.exit_code) == 137
    close(*left.pipe_fds, *kept.pipe_fds, kept.control_fd)


async def test_a_missing_bubblewrap_is_reported_in_one_sentence(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = await opened()
    job = await kept_job(demo)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RequestRefused, match="install the package bubblewrap"):
        await demo.backend.open_shell(ShellRequest(job=job))


def finished(session: object) -> tuple[bytes, int]:
    """Its output and exit code."""
    stdin, stdout, stderr = session.pipe_fds
    out = read_to_end(stdout)
    code = session.exit_code()
    close(stdin, stdout, stderr, session.control_fd)
    return out, code


def read_to_end(fd: int) -> bytes:
    """A terminal whose other side is gone answers with an error."""
    said = b""
    try:
        while piece := os.read(fd, 65536):
            said += piece
    except OSError:
        pass
    return said


def close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def names_in(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]
