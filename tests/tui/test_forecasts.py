"""One frame of predicted starts, for list and panel."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from cockpit.errors import Unreachable
from cockpit.model.forecast import ExpectedStart, Forecast, Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.tui.app_state import PredictedStarts
from cockpit.tui.forecasts import APART_SECONDS, FRESH_SECONDS, Forecasts

ONE, TWO = JobId(1), JobId(2)


class Face:
    """Its questions are answered when the test says so, in a time of the test's."""

    def __init__(self) -> None:
        self.woken = 0
        self.time, self.cluster_time = 100.0, 0
        self.asks: list = []
        self.starts_shown = {ONE: Millis(10), TWO: Millis(20)}
        self.explained = Forecast(likely_at=Millis(11))
        self.scheduler = ""
        self.away = self.unexplained = False
        self.backend = SimpleNamespace(starts=self.starts, explain=self.explain)

    def now(self) -> int:
        return self.cluster_time

    def wake(self) -> None:
        self.woken += 1

    def run(self, ask) -> None:
        self.asks.append(ask)

    async def starts(self, jobs: list[JobId]) -> list[ExpectedStart]:
        if self.away:
            raise Unreachable("gone")
        return [
            ExpectedStart(job, self.starts_shown[job], Forecast(likely_at=self.starts_shown[job]))
            for job in jobs
            if job in self.starts_shown
        ]

    async def explain(self, job: JobId) -> Outlook:
        if self.unexplained:
            raise Unreachable("gone")
        forecast = self.explained
        return Outlook(job=job, name="job", position=1, explanation=None, forecast=forecast, scheduler=self.scheduler)

    def answer(self) -> None:
        asyncio.new_event_loop().run_until_complete(self.asks.pop())


def queued(job: int, version: int = 1) -> SimpleNamespace:
    return SimpleNamespace(id=JobId(job), version=version, queued=True)


class Screen:
    """Looks, and notes what changed."""

    def __init__(self) -> None:
        self.app = Face()
        self.changed: list = []
        self.known = PredictedStarts()
        self.forecasts = Forecasts(
            self.known,
            self.app.backend,  # type: ignore[arg-type] # as much of one as it uses
            self.app.now,  # type: ignore[arg-type] # likewise
            wake=self.app.wake,
            run=self.app.run,
            changed=lambda jobs: self.changed.append(sorted(jobs)),
        )
        self.forecasts.seconds = lambda: self.app.time

    def look(self, sight: list[JobId], row: SimpleNamespace | None = None) -> None:
        self.forecasts.update(sight, row)  # type: ignore[arg-type] # likewise

    def starts(self) -> dict[JobId, Millis | None]:
        return {job: each.likely_at for job, each in self.known.known.items()}


@pytest.mark.req("UI-01", "SC-12")
def test_starts_are_requested_when_jobs_become_visible_and_again_when_outdated(monkeypatch) -> None:
    screen = Screen()
    app = screen.app
    screen.look([])
    assert app.asks == []
    screen.look([ONE])
    screen.look([ONE])  # under way
    app.answer()
    assert (screen.starts(), screen.changed) == ({ONE: 10}, [[ONE]])
    screen.look([ONE, TWO])  # too soon
    assert app.asks == []
    app.time += APART_SECONDS
    screen.look([ONE])  # known
    assert app.asks == []
    screen.look([ONE, TWO])
    app.answer()
    assert screen.changed == [[ONE], [TWO]]
    app.time += FRESH_SECONDS
    app.starts_shown[TWO] = Millis(30)
    screen.look([TWO])
    app.answer()
    assert (screen.starts(), screen.changed[-1]) == ({TWO: 30}, [ONE, TWO])


@pytest.mark.req("UI-32", "SC-12")
def test_list_and_panel_change_in_one_frame_and_show_one_figure(monkeypatch) -> None:
    screen = Screen()
    screen.look([ONE, TWO], queued(2))
    assert (screen.starts(), screen.known.outlook) == ({}, None)
    screen.app.answer()
    assert screen.starts() == {ONE: 10, TWO: 11}
    assert screen.known.outlook is not None
    assert screen.known.outlook.forecast == screen.known.known[TWO]
    screen.app.explained = Forecast()
    screen.look([ONE, TWO], queued(2, version=2))
    screen.app.answer()
    assert screen.starts() == {ONE: 10}


@pytest.mark.req("UI-32")
def test_the_start_of_the_job_under_the_cursor_is_requested_though_its_row_is_not_visible(monkeypatch) -> None:
    screen = Screen()
    screen.look([ONE], queued(2))
    screen.app.answer()
    assert screen.starts() == {ONE: 10, TWO: 11}


@pytest.mark.req("UI-32")
def test_another_schedulers_estimate_is_shown_in_list_and_panel(monkeypatch) -> None:
    screen = Screen()
    screen.app.scheduler = "Slurm"
    screen.look([ONE], queued(1))
    screen.app.answer()
    assert screen.starts() == {ONE: 10}
    del screen.app.starts_shown[ONE]
    screen.look([ONE], queued(1, version=2))
    screen.app.answer()
    assert screen.starts() == {ONE: 11}


@pytest.mark.req("UI-02", "UI-32")
def test_in_a_faster_demo_the_list_is_as_current_as_the_panel(monkeypatch) -> None:
    screen = Screen()
    screen.look([ONE, TWO], queued(1))
    screen.app.answer()
    screen.app.cluster_time += int(1000 * FRESH_SECONDS)
    screen.look([ONE, TWO], queued(1))
    assert screen.app.asks == []  # too soon for a screen
    screen.app.time += APART_SECONDS
    screen.app.starts_shown, screen.app.explained = {ONE: Millis(40), TWO: Millis(50)}, Forecast(likely_at=Millis(41))
    screen.look([ONE, TWO], queued(1))
    screen.app.answer()
    assert screen.starts() == {ONE: 41, TWO: 50}


@pytest.mark.req("UI-02")
async def test_a_slow_answer_is_shown_though_the_cursor_moves(monkeypatch) -> None:
    screen = Screen()
    screen.look([ONE], queued(1))
    screen.app.time += 2 * FRESH_SECONDS
    screen.look([ONE], queued(1))
    screen.look([ONE], queued(2))  # the list is under way, and is not asked for anew with each move
    (first,) = screen.app.asks
    await first
    assert screen.changed[0] == [ONE], "at once"
    assert screen.app.woken == 1
    screen.app.asks.clear()
    screen.look([ONE], queued(2))
    (second,) = screen.app.asks
    await second
    assert screen.known.outlook is not None
    assert screen.known.outlook.job == TWO
    screen.look([ONE], None)
    assert screen.known.outlook is None


@pytest.mark.req("UI-29")
def test_the_last_starts_are_shown_while_the_cluster_is_unreachable(monkeypatch) -> None:
    screen = Screen()
    app = screen.app
    for app.away in (False, True):
        screen.look([ONE])
        app.answer()
        app.time += FRESH_SECONDS
    assert screen.starts() == {ONE: 10}
    screen.look([ONE])
    assert len(app.asks) == 1
    app.asks.pop().close()


@pytest.mark.req("UI-29")
def test_a_started_job_does_not_clear_the_starts_of_the_list(monkeypatch) -> None:
    screen = Screen()
    screen.app.unexplained = True
    screen.look([ONE], queued(2))
    screen.app.answer()
    assert screen.starts() == {ONE: 10, TWO: 20}
    assert screen.known.outlook is None
