"""How well starts are foretold on published logs, and how long it takes."""

from __future__ import annotations

import asyncio
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.formats.traces.swf import history, read_swf
from cockpit.headless.verbs.replay import drawn, predicted, replayed
from cockpit.sched.forecast.history import history_of
from cockpit.sched.forecast.predict import StartPredictor
from tests.oracles.traces import trace
from tests.sched.busy import busy_world

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.model.forecast import Forecast
    from cockpit.model.ids import JobId, Millis
    from tests.bench.figures import Figures

JOBS, SEED, ROUNDS = 600, 42, 9
MINUTES_APART, LOOKS, LOOKS_LATER = 5, 36, 84
"""Of the demo's time: forecasts are asked for during three hours, and starts awaited for seven more."""


@pytest.mark.parametrize(("log", "processors"), [("KTH-SP2", 100), ("SDSC-SP2", 128)])
def test_predictions(figure: Figures, log: str, processors: int) -> None:
    past = history(read_swf(log, trace(f"{log}.easy-oracle.swf.gz").read_bytes()), processors)
    chosen = drawn(past, replayed(past, processors, "easy", lambda _: None), JOBS, SEED)
    found = predicted(past, processors, "easy", chosen, lambda _: None)
    figure("SC-12", f"likely start, {log}, median error", found.median_error)
    figure("SC-12", f"likely start, {log}, mean error", found.mean_error)
    figure("SC-12", f"likely start, {log}, within a minute", 100 * found.within_a_minute)
    figure("SC-12", f"likely start, {log}, within ten minutes", 100 * found.within_ten_minutes)
    figure("SC-12", f"no later than, {log}, holds", 100 * found.coverage)
    figure("SC-12", f"no later than, {log}, holds at most", 100 * found.coverage)
    ratio = found.tightness / found.tightness_by_limits
    figure("SC-12", f"no later than, {log}, bound ÷ wait beside limits", ratio)


@pytest.mark.parametrize("policy", ["easy", "conservative", "multifactor"])
def test_ranges_and_bounds(figure: Figures, policy: str) -> None:
    """What is shown: under each policy the range of likely starts, and the bound where the policy promises one."""
    log, processors = "KTH-SP2", 100
    past = history(read_swf(log, trace(f"{log}.easy-oracle.swf.gz").read_bytes()), processors)
    chosen = drawn(past, replayed(past, processors, policy, lambda _: None), JOBS, SEED)
    found = predicted(past, processors, policy, chosen, lambda _: None)
    figure("SC-12", f"likely range, {log} {policy}, holds", 100 * found.range_coverage)
    figure("SC-12", f"likely range, {log} {policy}, width ÷ wait", found.range_width)
    if found.bound_coverage is not None:
        figure("SC-12", f"promised latest start, {log} {policy}, holds", 100 * found.bound_coverage)


def test_ranges_in_the_demo(figure: Figures, tmp_path: Path) -> None:
    """Of a cluster with fair share, limits and jobs that come ahead: every forecast shown within three hours."""
    within, of = asyncio.run(shown_ranges(tmp_path / "demo"))
    figure("SC-12", "likely range, demo, holds", 100 * within / of)


async def shown_ranges(folder: Path) -> tuple[int, int]:
    """How many of the ranges shown held, and how many were shown of jobs that then started."""
    demo = await open_demo(folder=folder, going=False)
    said: list[tuple[JobId, Forecast]] = []
    started: dict[JobId, Millis] = {}
    for look in range(LOOKS + LOOKS_LATER):
        await demo.elapse(MINUTES_APART * 6)
        rows = await demo.backend.jobs()
        started |= {row.id: row.started_at for row in rows if row.started_at is not None and row.id not in started}
        if look < LOOKS:
            found = await demo.backend.starts([row.id for row in rows if row.queued])
            said += [(each.job, each.forecast) for each in found if not each.forecast.now]
    await demo.close()
    held = [
        forecast.likely_from <= started[job] <= forecast.likely_to
        for job, forecast in said
        if job in started and forecast.likely_from is not None and forecast.likely_to is not None
    ]
    return sum(held), len(held)


def test_one_prediction(figure: Figures) -> None:
    """Of the last of a thousand queued jobs, likely and latest; then of another one at the same moment."""
    world = busy_world(1_000)
    snapshot, plan = world.snapshot(), world.cycle()
    past = history_of(world.jobs.values())
    first, more = [], []
    for _ in range(ROUNDS):
        before = perf_counter()
        foresight = StartPredictor(snapshot, plan, world.policy, past)
        foresight.forecast(snapshot.queue[-1].id)
        first.append((perf_counter() - before) * 1000)
        before = perf_counter()
        foresight.forecast(snapshot.queue[500].id)
        more.append((perf_counter() - before) * 1000)
    figure("PF-05", "one prediction, 1 000 queued", median(first))
    figure("PF-05", "of it, one queued job more, same moment", median(more))
