"""A suspended container runs nothing, keeps its resources, can be ended, and continues where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.engine.effects import FreezeReplica, SignalKind, SignalReplica, ThawReplica
from cockpit.runtime.containers import freezing
from cockpit.runtime.containers.shim import job_processes
from tests.runtime.containers.house import until

pytestmark = pytest.mark.real

COUNTS = "trap 'echo asked; exit 5' TERM; n=0; while :; do n=$((n+1)); echo $n > /workspace/outputs/n; done"


def reached(output: str) -> int:
    """The last number that it wrote whole."""
    text = Path(output, "n").read_text() if Path(output, "n").exists() else ""
    return int(text) if text.endswith("\n") else 0


def ticks(house, job) -> int:
    """CPU time of everything in the container, in clock ticks."""
    inside = job_processes.of(house.executor._attempt(job.replica))
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in inside]
    return sum(int(words[11]) + int(words[12]) for words in stats)


async def counting(house, **spec):
    job = house.job(COUNTS, **spec)
    await house.executor.start(job)
    await until(lambda: reached(job.spec.output) > 0)
    return job


async def stands_still(house, job) -> None:
    await house.run(house.job("true", output=str(house.folder / "meanwhile")))  # until it has stopped
    before, number = ticks(house, job), reached(job.spec.output)
    other = house.job("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done", output=str(house.folder / "other"))
    await house.run(other)  # as long as another computes
    assert (ticks(house, job), reached(job.spec.output)) == (before, number)


@pytest.mark.req("SC-08")
@pytest.mark.parametrize("kernel", [True, False], ids=["freezer", "signals"])
async def test_a_container_is_frozen_and_thawed(house, monkeypatch, kernel):
    if not kernel:
        monkeypatch.setattr(freezing, "_by_group_v1", lambda *_: "")
        monkeypatch.setattr(freezing, "_by_group_v2", lambda *_: "")
    job = await counting(house)
    await house.executor.freeze(FreezeReplica(job.replica))
    await house.executor.freeze(FreezeReplica(job.replica))
    await stands_still(house, job)
    number = reached(job.spec.output)
    await house.executor.thaw(ThawReplica(job.replica))
    await until(lambda: reached(job.spec.output) > number)
    await house.executor.signal(SignalReplica(job.replica, SignalKind.KILL))
    assert (await house.ended(job.replica)).signal == 9


@pytest.mark.req("SC-08")
async def test_a_frozen_container_handles_a_request_to_end(house):
    job = await counting(house)
    await house.executor.freeze(FreezeReplica(job.replica))
    await house.executor.signal(SignalReplica(job.replica, SignalKind.TERM))
    assert (await house.ended(job.replica)).code == 5
    assert "asked" in house.out(job)


@pytest.mark.req("SC-08")
async def test_a_restarted_engine_thaws_a_frozen_container(house):
    job = await counting(house)
    await house.executor.freeze(FreezeReplica(job.replica))
    house.executor.close()
    house.move_in()
    await house.executor.adopt([job], [])
    await stands_still(house, job)
    await house.executor.thaw(ThawReplica(job.replica))
    number = reached(job.spec.output)
    await until(lambda: reached(job.spec.output) > number)
    await house.executor.signal(SignalReplica(job.replica, SignalKind.KILL))
    await house.ended(job.replica)
