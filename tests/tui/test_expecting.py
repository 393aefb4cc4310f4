from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from cockpit.errors import Unreachable
from cockpit.model.forecast import Expected
from cockpit.model.ids import JobId, Millis
from cockpit.tui import expecting
from cockpit.tui.expecting import APART_SECONDS, FRESH_SECONDS, Expecting

ONE, TWO = JobId(1), JobId(2)


class Face:
    """Its questions are answered when the test says so, in a time of the test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = 100.0
        self.asks: list = []
        self.told = {ONE: Millis(10), TWO: Millis(20)}
        self.away = False
        self.backend = SimpleNamespace(starts=self.starts)
        loop = SimpleNamespace(time=lambda: self.time)
        monkeypatch.setattr(expecting, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))

    def run_worker(self, ask, **_: object) -> None:
        self.asks.append(ask)

    async def starts(self, jobs: list[JobId]) -> list[Expected]:
        if self.away:
            raise Unreachable("gone")
        return [Expected(job, self.told[job]) for job in jobs]


@pytest.mark.req("UI-01", "SC-12")
def test_starts_are_asked_for_when_jobs_come_in_sight_and_again_once_they_are_old(monkeypatch) -> None:
    face, changed = Face(monkeypatch), []
    expected = Expecting(face, lambda jobs: changed.append(sorted(jobs)))  # type: ignore[arg-type] # as much of one as it uses

    def answer() -> None:
        asyncio.new_event_loop().run_until_complete(face.asks.pop())

    expected.look_over([])
    assert face.asks == []
    expected.look_over([ONE])
    expected.look_over([ONE])  # under way
    answer()
    assert (expected.starts, changed) == ({ONE: 10}, [[ONE]])
    expected.look_over([ONE, TWO])  # too soon
    assert face.asks == []
    face.time += APART_SECONDS
    expected.look_over([ONE])  # known
    assert face.asks == []
    expected.look_over([ONE, TWO])
    answer()
    assert changed == [[ONE], [TWO]]
    face.time += FRESH_SECONDS
    face.told[TWO] = Millis(30)
    expected.look_over([TWO])
    answer()
    assert (expected.starts, changed[-1]) == ({TWO: 30}, [ONE, TWO])


@pytest.mark.req("UI-29")
def test_while_the_cluster_is_away_what_was_expected_stands(monkeypatch) -> None:
    face = Face(monkeypatch)
    expected = Expecting(face, lambda _: None)  # type: ignore[arg-type] # likewise
    for face.away in (False, True):
        expected.look_over([ONE])
        asyncio.new_event_loop().run_until_complete(face.asks.pop())
        face.time += FRESH_SECONDS
    assert expected.starts == {ONE: 10}
    expected.look_over([ONE])
    assert len(face.asks) == 1
    face.asks.pop().close()
