from __future__ import annotations

from types import SimpleNamespace

import pytest

from cockpit.tui.foretelling import FRESH_MS, Foretelling


class Face:
    """Asked for outlooks; whoever asks is told when the test says so."""

    def __init__(self) -> None:
        self.time = 0
        self.asks: list = []
        self.backend = SimpleNamespace(explain=self.explain)

    def now(self) -> int:
        return self.time

    def run_worker(self, ask, **_: object) -> None:
        self.asks.append(ask)

    async def explain(self, job: int) -> str:
        return f"outlook of {job}"


def queued(job: int) -> SimpleNamespace:
    return SimpleNamespace(id=job, version=1, queued=True)


@pytest.mark.req("UI-02")
async def test_an_answer_comes_however_long_it_takes_and_is_asked_for_again_once_it_is_old() -> None:
    face, drawn = Face(), []
    telling = Foretelling(face, lambda: drawn.append(telling.outlook))  # type: ignore[arg-type] # as much of one as it uses
    telling.look_at(queued(1))
    face.time += 2 * FRESH_MS
    telling.look_at(queued(1))
    (ask,) = face.asks
    await ask
    assert drawn == ["outlook of 1"]
    telling.look_at(queued(1))
    assert len(face.asks) == 2
    telling.look_at(queued(2))
    for ask in face.asks[1:]:
        await ask
    assert drawn[-1] == "outlook of 2"
