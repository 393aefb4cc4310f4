"""Usage of replicas on a job's page: of live ones as measured, of ended ones as recorded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.jobdetail import ReplicaUse, in_the_end
from cockpit.model.usage import ReplicaTotals
from cockpit.runtime import reading
from tests.doubles.samples import NOW, job


@pytest.mark.req("JT-48")
async def test_usage_of_a_worker_that_left_is_shown_unchanged() -> None:
    """And it is not asked for: its container is gone."""
    asked = []

    async def used(replica) -> ReplicaUse:
        asked.append(replica.rank)
        return ReplicaUse(replica.rank, cpu_ms=9)

    before = job()
    (first,) = before.attempt.replicas
    gone = replace(
        first, rank=0, left_at=NOW, had=before.attempt.placement[0], used=ReplicaTotals(cpu_ms=5, peak_memory_mib=7)
    )
    stays = replace(first, rank=1, ended_at=None, exit=None)
    held = replace(before.attempt.placement[0], rank=1)
    attempt = replace(before.attempt, replicas=(gone, stays), placement=(held,), resized_at=Millis(NOW))
    running = replace(before, state=JobState.RUNNING, attempt=attempt, ended_at=None, held_until=None)
    engine = SimpleNamespace(host=SimpleNamespace(executor=SimpleNamespace(used=used)))
    told = [use async for use in reading._use(engine, running)]
    assert told == [in_the_end(0, gone.used), ReplicaUse(1, cpu_ms=9)]
    assert asked == [1]
