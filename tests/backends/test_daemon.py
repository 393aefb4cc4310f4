from __future__ import annotations

import asyncio
import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.local import daemon
from cockpit.config.places import paths
from cockpit.runtime.server import listen
from cockpit.store.statefolder import FolderInUse, StateFolder

if TYPE_CHECKING:
    from pathlib import Path


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
