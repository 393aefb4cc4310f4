"""Predictions: their threads continue when the clients are gone, and never work on one simulation at the same time."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.spec import Array
from cockpit.present.columns import Context
from cockpit.present.folding import id_text
from cockpit.present.job_values import why
from cockpit.present.outlook import outlook_lines
from cockpit.present.spans import plain
from cockpit.present.tables.outlook import EXPLAIN
from cockpit.runtime import predicting
from cockpit.sched.forecast.predict import StartPredictor
from tests.tui.lab import ALICE, BOB, FIXTURE, job

if TYPE_CHECKING:
    from cockpit.model.forecast import Outlook

WIDE = JobId(5)


class Slow:
    """The real answer, once it is let."""

    def __init__(self) -> None:
        self._answer = predicting.outlook
        self.begun, self.let = threading.Semaphore(0), threading.Event()

    def __call__(self, *args: Any) -> Outlook:
        self.begun.release()
        assert self.let.wait(30)
        return self._answer(*args)


@pytest.mark.req("SC-12", "TR-03")
async def test_a_request_after_a_cancelled_one_waits_for_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(predicting, "outlook", slow)
    demo = await open_demo(FIXTURE, going=False)
    await demo.backend.submit(ALICE)
    await demo.elapse(6)
    async with asyncio.TaskGroup() as askers:
        impatient = askers.create_task(demo.backend.explain(WIDE))
        assert await asyncio.to_thread(slow.begun.acquire, timeout=30)
        impatient.cancel()
        await asyncio.wait([impatient])
        patient = askers.create_task(demo.backend.explain(WIDE))
        assert not await asyncio.to_thread(slow.begun.acquire, timeout=0.1)
        slow.let.set()
    assert impatient.cancelled()
    assert patient.result().job == WIDE
    await demo.close()


@pytest.mark.req("SC-12", "JT-60")
async def test_starts_are_given_for_visible_queued_jobs_and_equal_the_forecasts() -> None:
    demo = await open_demo(FIXTURE, going=False)
    await demo.backend.submit(ALICE)
    await demo.elapse(6)
    queued = [row.id for row in await demo.backend.jobs() if row.queued]
    running = [row.id for row in await demo.backend.jobs() if row.started_at]
    assert queued
    assert running
    told = {each.job: each.at for each in await demo.backend.starts([*queued, *running, JobId(9999)])}
    assert told == {job: (await demo.backend.explain(job)).forecast.likely_at for job in queued}
    with pytest.raises(RequestRefused, match="at most 1000 jobs"):
        await demo.backend.starts(range(1, 1002))  # type: ignore[arg-type] # as good as a list
    await demo.close()


@pytest.mark.req("SC-12", "SC-13")
async def test_a_defect_in_one_forecast_is_logged_and_shown_and_does_not_affect_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = await open_demo(FIXTURE, going=False)
    await demo.backend.submit(ALICE)
    await demo.elapse(6)
    await demo.backend.submit(BOB)
    await demo.elapse(1)
    queued = [row.id for row in await demo.backend.jobs() if row.queued]
    broken, *others = queued
    assert others
    before = {each.job: each.at for each in await demo.backend.starts(others)}
    about = StartPredictor._estimate

    def failing(self: StartPredictor, job: JobId) -> Any:
        if job == broken:
            raise IndexError("tuple index out of range")
        return about(self, job)

    monkeypatch.setattr(StartPredictor, "_estimate", failing)
    told = {each.job: each for each in await demo.backend.starts(queued)}
    assert {job: told[job].at for job in others} == before
    assert (told[broken].at, told[broken].failure) == (None, "IndexError: tuple index out of range")
    answer = await demo.backend.explain(broken)
    assert answer.failure == "IndexError: tuple index out of range"
    assert answer.explanation is not None
    context = Context(now=Millis(0))
    assert any("its start is not known because of a defect" in plain(each) for each in outlook_lines(answer, context))
    assert not (await demo.backend.explain(others[0])).failure
    rows = {row.id: row for row in await demo.backend.jobs()}
    assert rows[broken].failure == answer.failure
    assert "IndexError: tuple index out of range" in (why(rows[broken], context) or "")
    assert not any(rows[job].failure for job in others)
    (trouble,) = (await demo.backend.overview()).trouble
    assert f"keeps job {broken} from being scheduled or predicted (IndexError: tuple index out of range)" in trouble
    assert capsys.readouterr().err.count(f"cockpit: judging job {broken} failed") == 1
    await demo.close()


@pytest.mark.req("SC-13")
async def test_tasks_of_an_array_have_the_ids_of_the_job_list_in_every_sentence() -> None:
    demo = await open_demo(FIXTURE, going=False)
    await demo.backend.submit([job("sweep", cards=4, array=Array((3, 5, 8)))])
    await demo.elapse(6)
    rows = {id_text(row): row for row in await demo.backend.jobs()}
    assert [(each, rows[each].state) for each in rows] == [
        ("1_3", JobState.RUNNING),
        ("1_5", JobState.RUNNING),
        ("1_8", JobState.QUEUED),
    ]
    answer = await demo.backend.explain(JobId(1), task=8)
    context = Context(now=demo.now())
    head, *rest = map(plain, outlook_lines(answer, context))
    assert head.startswith("1_8 sweep  first in the queue")
    assert [each for each in rest if "after 1_3 (alice, 4 cards) ends about" in each]
    cells = {each.id: each.words(answer, context) for each in EXPLAIN.columns if each.id in {"id", "after"}}
    assert cells == {"id": "1_8", "after": "1_3"}
    await demo.close()
