"""Journals that engines of earlier days left behind when they were killed, read by the engine of now.

Each holds a story of running, kept, held, cancelled and ended jobs, snapshots of a stop and a start, and a few events
after them. They are never written anew; whatever those engines knew, this one makes of it the same from a snapshot as
from every event.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.engine.apply.events import apply
from cockpit.engine.invariants import violations
from cockpit.engine.machine import Machine
from cockpit.store.journal import SqliteJournal
from tests.store.samples import StillClock

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState

DATA = Path(__file__).parent / "data"
STORIES = {
    "before_accounts": {1: "succeeded", 2: "error", 3: "running", 4: "succeeded", 5: "running", 6: "stopped"},
    "with_accounts": {2: "error", 3: "running", 4: "succeeded", 5: "running", 6: "stopped", 7: "queued", 8: "running"},
}
"""The jobs that each of them saw, and how they stand."""

pytestmark = [pytest.mark.req("TR-12", "TR-01"), pytest.mark.parametrize("story", STORIES)]


@pytest.fixture
def folder(story: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / story, tmp_path / story))


async def loaded(folder: Path) -> ClusterState:
    journal = await SqliteJournal.open(folder / "journal.db", folder / "archive", clock=StillClock(), apply=apply)
    try:
        return (await journal.load())[0]
    finally:
        await journal.close()


async def test_jobs_of_an_older_engines_store_are_unchanged(folder: Path, story: str) -> None:
    state = await loaded(folder)
    assert STORIES[story].items() <= {job: str(state.jobs[job].state) for job in state.jobs}.items()
    assert state.jobs[2].held_until is not None
    assert violations(Machine(state)) == []


async def test_an_older_engines_snapshot_equals_its_events(folder: Path) -> None:
    """Fails where a snapshot lacks what the engine of now derives from events: then `STATE_VERSION` is to be raised."""
    from_snapshot = await loaded(folder)
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as stored:
        assert stored.execute("DELETE FROM snapshots").rowcount == 2
    assert msgspec.to_builtins(from_snapshot) == msgspec.to_builtins(await loaded(folder))
