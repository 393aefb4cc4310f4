from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.samples import StillClock, open_journal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cockpit.store.journal import SqliteJournal


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def journal(tmp_path: Path, clock: StillClock) -> AsyncIterator[SqliteJournal]:
    opened = await open_journal(tmp_path, clock)
    yield opened
    await opened.close()
