"""Background tasks: their defects, their end, and work that a cancelled caller does not interrupt."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.runtime.tasks import Tasks

pytestmark = pytest.mark.req("TR-03")


async def fails() -> None:
    raise ValueError("odd")


async def test_a_defect_of_a_task_is_logged_and_ends_it_alone(capfd: pytest.CaptureFixture[str]) -> None:
    tasks, goes_on = Tasks(), asyncio.Event()
    other = tasks.start(goes_on.wait(), "other")
    failing = tasks.start(fails(), "sampling")
    await asyncio.wait([failing])
    await asyncio.sleep(0)
    assert len(tasks) == 1
    logged = capfd.readouterr().err
    assert logged.startswith("cockpit: sampling failed\n")
    assert "ValueError: odd" in logged
    goes_on.set()
    assert await other is True
    await asyncio.sleep(0)
    assert (len(tasks), capfd.readouterr().err) == (0, "")


async def test_a_cancelled_task_is_no_defect(capfd: pytest.CaptureFixture[str]) -> None:
    tasks = Tasks()
    running = tasks.start(asyncio.Event().wait(), "waiting")
    await tasks.cancel_all()
    assert running.cancelled()
    assert (len(tasks), capfd.readouterr().err) == (0, "")


async def test_work_is_completed_although_its_caller_is_cancelled() -> None:
    tasks, begun, goes_on, done = Tasks(), asyncio.Event(), asyncio.Event(), list[str]()

    async def work() -> str:
        begun.set()
        await goes_on.wait()
        done.append("done")
        return "answer"

    calling = tasks.start(tasks.complete(work(), "work"), "caller")
    await begun.wait()
    assert len(tasks) == 2
    calling.cancel()
    await asyncio.wait([calling])
    assert calling.cancelled()
    goes_on.set()
    assert await tasks.complete(work(), "again") == "answer"
    assert done == ["done", "done"]
    with pytest.raises(ValueError, match="odd"):
        await tasks.complete(fails(), "fails")


async def test_the_error_of_completed_work_is_its_callers_alone(capfd: pytest.CaptureFixture[str]) -> None:
    tasks = Tasks()
    with pytest.raises(ValueError, match="odd"):
        await tasks.complete(fails(), "fails")
    await asyncio.sleep(0)
    assert (len(tasks), capfd.readouterr().err) == (0, "")


async def test_a_task_may_end_all_the_others() -> None:
    tasks = Tasks()
    other = tasks.start(asyncio.Event().wait(), "other")

    async def ends_all() -> str:
        await tasks.cancel_all()
        return "ended"

    assert await asyncio.wait_for(tasks.start(ends_all(), "stop"), 60) == "ended"
    assert other.cancelled()
