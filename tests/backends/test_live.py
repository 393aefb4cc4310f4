"""A face's connection to a real engine that is killed, stopped, restarted while it is watched."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.base import JobsDelta, Phase
from cockpit.backends.local.reconnector import SILENT
from cockpit.errors import RequestRefused, Unreachable
from cockpit.model.asking import LogRequest, ShellRequest
from cockpit.model.ids import JobId
from cockpit.model.jobrow import JobRow
from tests.builders import a_spec

if TYPE_CHECKING:
    from cockpit.backends.local.live import LiveBackend
    from tests.backends.conftest import OwnEngine

pytestmark = pytest.mark.real
SOON = 60.0
"""Seconds in which what is awaited must have come."""


class Watcher:
    """Keeps rows as a face does."""

    def __init__(self, deltas: AsyncIterator[JobsDelta]) -> None:
        self._deltas = deltas
        self.rows: dict[JobId, JobRow] = {}
        self.loads = 0

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(SOON):
            while not holds():
                delta = await anext(self._deltas)
                self.rows |= {row.id: row for row in delta.changed}
                for job in delta.removed:
                    del self.rows[job]
                self.loads += delta.loaded and not delta.version


async def phase_of(live: LiveBackend, phase: Phase) -> str:
    """Wait until the connection is in this phase; why."""
    async with asyncio.timeout(SOON), aclosing(live.connections()) as connections:
        async for connection in connections:
            if connection.phase is phase:
                return connection.reason
    raise AssertionError("connections never end")


def held(name: str) -> object:
    return a_spec(name, hold=True)


@pytest.fixture
async def watcher(live: LiveBackend) -> AsyncIterator[Watcher]:
    async with aclosing(live.watch_jobs()) as deltas:
        watcher = Watcher(deltas)
        await watcher.until(lambda: watcher.loads)
        yield watcher


@pytest.mark.req("UI-29")
async def test_a_killed_engine_is_started_again_and_rows_are_as_in_a_fresh_list(
    engine: OwnEngine, live: LiveBackend, watcher: Watcher
) -> None:
    first, second = await live.submit([held("one"), held("two")])
    await watcher.until(lambda: len(watcher.rows) == 2)
    killed = engine.holder()
    os.kill(killed, signal.SIGKILL)
    await live.cancel(first)
    third = (await live.submit([held("three")]))[0]
    assert engine.pid != killed
    await watcher.until(lambda: watcher.loads == 2 and third in watcher.rows)
    await watcher.until(lambda: watcher.rows[first].state == "stopped")
    fresh = {row.id: row for row in await live.jobs()}
    assert {job: row for job, row in watcher.rows.items() if row.ended_at is None} == fresh
    assert set(fresh) == {second, third}


@pytest.mark.req("UI-29")
async def test_a_silent_engine_makes_data_stale_until_it_answers_again(engine: OwnEngine, live: LiveBackend) -> None:
    await live.status()
    assert await phase_of(live, Phase.CONNECTED) == ""
    engine.signal(signal.SIGSTOP)
    assert await phase_of(live, Phase.STALE) == SILENT
    stale = live.connection.good_at
    with pytest.raises(Unreachable, match="does not answer"):
        await live.nodes()
    assert live.connection.good_at == stale
    engine.signal(signal.SIGCONT)
    assert await phase_of(live, Phase.CONNECTED) == ""
    assert live.connection.good_at is not None
    assert stale is not None
    assert live.connection.good_at > stale
    assert await live.nodes()


async def test_updates_of_rows_continue_after_a_silence(engine: OwnEngine, live: LiveBackend, watcher: Watcher) -> None:
    (job,) = await live.submit([held("one")])
    engine.signal(signal.SIGSTOP)
    releasing = asyncio.ensure_future(live.cancel(job))  # noqa: TID251 - it runs while the engine is silent
    await phase_of(live, Phase.STALE)
    engine.signal(signal.SIGCONT)
    await releasing
    await watcher.until(lambda: job in watcher.rows and watcher.rows[job].state == "stopped")
    assert watcher.loads == 1


@pytest.mark.req("UI-29")
async def test_an_engine_stopped_on_purpose_starts_again_only_for_an_action(
    engine: OwnEngine, live: LiveBackend, watcher: Watcher
) -> None:
    await asyncio.to_thread(engine.control.stop, jobs=False)
    assert "engine" in await phase_of(live, Phase.STALE)
    with pytest.raises(Unreachable, match="`cockpit engine start`"):
        await live.overview()
    assert not engine.control.status().running
    (job,) = await live.submit([held("wakes")])
    assert engine.control.status().running
    await watcher.until(lambda: job in watcher.rows)


@pytest.mark.req("UI-29")
async def test_a_restarted_engine_is_found_without_a_message(
    engine: OwnEngine, live: LiveBackend, watcher: Watcher
) -> None:
    before = engine.holder()
    await asyncio.to_thread(engine.control.restart)
    assert engine.holder() != before
    (job,) = await live.submit([held("after")])
    await watcher.until(lambda: job in watcher.rows)
    assert await phase_of(live, Phase.CONNECTED) == ""


async def test_waiting_requests_do_not_delay_others(live: LiveBackend) -> None:
    (job,) = await live.submit([held("silent")])
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(live.wait(job, timeout_seconds=SOON)) for _ in range(40)]
        following = group.create_task(live.logs(LogRequest(job=job, wait=True)))
        assert (await live.status()).running
        await live.cancel(job)
    assert all(each.result() is not None for each in waiting)
    assert following.result().ended


async def test_a_refusal_is_raised_as_a_refusal(live: LiveBackend) -> None:
    with pytest.raises(RequestRefused, match="no job 99"):
        await live.job(JobId(99))
    with pytest.raises(RequestRefused):
        await live.open_shell(ShellRequest(job=99))


async def test_closing_leaves_no_task(engine: OwnEngine) -> None:
    live = engine.live()
    await live.status()
    async with aclosing(live.watch_jobs()) as deltas:
        await anext(deltas)
        assert len(asyncio.all_tasks()) > 1
    await live.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
