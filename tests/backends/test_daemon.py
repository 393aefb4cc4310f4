from __future__ import annotations

import asyncio
import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.local import daemon
from cockpit.config.places import paths
from cockpit.errors import CockpitError
from cockpit.runtime.server import listen
from cockpit.store.statefolder import FolderInUse, StateFolder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.backends.conftest import OwnEngine


async def test_the_second_of_two_engines_started_together_does_not_wait_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "LOCK_SECONDS", 1e9)
    (tmp_path / "run").mkdir(mode=0o700)
    places = paths(
        os.geteuid(), {"XDG_RUNTIME_DIR": str(tmp_path / "run"), "XDG_STATE_HOME": str(tmp_path), "HOME": "/"}
    )
    folder = StateFolder.acquire(places.state_folder)
    with closing(listen(places.socket, system=False)), pytest.raises(FolderInUse):
        await asyncio.wait_for(daemon._acquire(places), 60)
    folder.release()


@pytest.mark.real
@pytest.mark.req("TR-01", "TR-03")
def test_an_engine_does_not_start_beside_a_container_of_a_job_that_its_journal_has_lost(engine: OwnEngine) -> None:
    engine.control.stop(jobs=False)
    unknown = engine.places.state_folder / "containers" / "7.1.0"
    unknown.mkdir()
    with pytest.raises(CockpitError, match=r"has lost its last events: the newest job that it knows is 0"):
        engine.control.start()
    assert unknown.exists()
    unknown.rmdir()
    engine.control.start()
