"""What real containers use is measured while they run, over the death of an engine, and in all when they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.engine.effects import StartReplica
from cockpit.model.node import Card
from cockpit.runtime.cards.metering import CardReading
from cockpit.runtime.containers import measuring
from cockpit.runtime.containers.sampling import read_record
from tests.runtime.containers.house import until

pytestmark = pytest.mark.real

BURNS = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done"
FILLS = "head -c 40M /dev/zero | tail -c 40M > /dev/null"
"""tail keeps what it may have to print."""
WAITS = "; touch /workspace/outputs/ready; while [ ! -e /workspace/outputs/go ]; do sleep 0.02; done"


async def burnt(house, job: StartReplica) -> None:
    """Until its work is done and it waits, and the executor has heard of its start."""
    await house.started(job.replica)
    await until(lambda: Path(job.spec.output, "ready").exists())


def let_go(job: StartReplica) -> None:
    Path(job.spec.output, "go").touch()


@pytest.mark.req("JT-48")
@pytest.mark.parametrize("counted", [True, False], ids=["cgroup", "processes"])
async def test_figures_are_plausible_live_and_in_the_end(house, monkeypatch, counted):
    if not counted:
        monkeypatch.setattr(measuring, "of_group", lambda *_: None)
    job = house.job(f"{FILLS}; {BURNS.format(60_000)}{WAITS}")
    await house.executor.start(job)
    await burnt(house, job)
    live = await house.executor.used(job.replica)
    assert live is not None
    assert 50 < live.cpu_ms < 20_000
    assert live.memory_mib is not None
    assert any(sample.busy_milli > 0 for sample in live.course)
    let_go(job)
    assert (await house.ended(job.replica)).ok
    used = house.seen.used[job.replica]
    assert used.cpu_ms >= live.cpu_ms
    assert 40 <= used.peak_memory_mib < 256
    assert (used.card_percent, used.peak_card_memory_mib) == (None, None)
    assert (await house.executor.used(job.replica)).cpu_ms == used.cpu_ms, "what is recorded of it still says so"


@pytest.mark.req("JT-48")
async def test_a_killed_engine_loses_no_figure_that_the_kernel_counts(house):
    job = house.job(f"{BURNS.format(20_000)}{WAITS}")
    await house.executor.start(job)
    await burnt(house, job)
    house.executor._sampler.look()
    seen = read_record(house.executor._attempt(job.replica))
    assert seen is not None
    house.executor.close()
    let_go(job)
    house.move_in()
    await house.executor.adopt([job], [])
    assert (await house.ended(job.replica)).ok
    assert house.seen.used[job.replica].cpu_ms >= seen.last[0] > 0
    after = read_record(house.executor._attempt(job.replica))
    assert after.samples == seen.samples, "its course goes on from what was recorded"


@pytest.mark.req("JT-48")
async def test_detected_cards_are_measured_and_declared_ones_are_not(house, monkeypatch):
    class Driver:
        asked = 0

        def read(self):
            self.asked += 1
            return {"GPU-real": CardReading(75, 30_000), "GPU-other": CardReading(1, 1)}

    driver = Driver()
    monkeypatch.setattr(house.executor._sampler, "_make_meter", lambda: driver)
    asked = []
    real, declared = Card(index=0, model="A100", uuid="GPU-real"), Card(index=0, model="X", declared=True)
    for card, percent in ((real, 75), (declared, None)):
        house.cards = (card,)
        job = house.job(f"true{WAITS}", output=str(house.folder / card.model))
        await house.executor.start(job)
        await burnt(house, job)
        use = await house.executor.used(job.replica)
        assert (use.card_percent, use.card_memory_mib) == (percent, percent and 30_000)
        let_go(job)
        await house.ended(job.replica)
        assert house.seen.used[job.replica].peak_card_percent == percent
        asked.append(driver.asked)
    assert asked[0] >= 1
    assert asked[1] == asked[0], "the driver knows nothing of a declared card"
