from __future__ import annotations

import asyncio

import pytest

from cockpit.backends.demo.pace import SPEEDS, DemoPace
from cockpit.model.ids import Millis
from cockpit.runtime.clock import VirtualClock

SECOND_NANOS = 1_000_000_000


class Watch:
    """Real time, as a test wants it."""

    def __init__(self) -> None:
        self.nanos = 0

    def __call__(self) -> int:
        return self.nanos


@pytest.fixture
def watch() -> Watch:
    return Watch()


def pace_of(clock: VirtualClock, watch: Watch, speed: float = 10) -> DemoPace:
    return DemoPace(clock, lambda: True, speed=speed, real=watch)


async def tick(pace: DemoPace, watch: Watch, seconds: float) -> None:
    watch.nanos += int(seconds * SECOND_NANOS)
    await pace.tick()


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.req("UI-50")
async def test_virtual_time_is_real_time_times_speed(watch: Watch, speed: float) -> None:
    clock = VirtualClock()
    pace = pace_of(clock, watch, speed)
    for _ in range(20):
        await tick(pace, watch, 0.05)
    assert clock.now() == 1000 * speed


async def test_no_fraction_of_a_millisecond_is_lost(watch: Watch) -> None:
    clock = VirtualClock()
    pace = pace_of(clock, watch, 1)
    for _ in range(1000):
        await tick(pace, watch, 0.0001)
    assert clock.now() == 100


@pytest.mark.req("UI-50")
async def test_time_stops_during_a_pause_and_is_not_made_up(watch: Watch) -> None:
    clock = VirtualClock()
    pace = pace_of(clock, watch)
    pace.pause()
    await tick(pace, watch, 0.2)
    assert clock.now() == 0
    pace.resume()
    await tick(pace, watch, 0.1)
    assert clock.now() == 1000


async def test_a_long_gap_between_ticks_does_not_count_in_full(watch: Watch) -> None:
    clock = VirtualClock()
    await tick(pace_of(clock, watch), watch, 3600)
    assert clock.now() == 2500


async def test_every_sleeper_wakes_at_its_own_time(watch: Watch) -> None:
    clock = VirtualClock()
    seen: list[tuple[str, int]] = []

    async def twice() -> None:
        for at in (100, 250):
            await clock.wait_until(Millis(at))
            seen.append(("twice", clock.now()))

    async def once() -> None:
        await clock.wait_until(Millis(200))
        seen.append(("once", clock.now()))

    async with asyncio.TaskGroup() as group:
        group.create_task(twice())
        group.create_task(once())
        await asyncio.sleep(0)
        await pace_of(clock, watch).reach(Millis(1000))
    assert seen == [("twice", 100), ("once", 200), ("twice", 250)]
    assert clock.now() == 1000


async def test_a_step_advances_to_the_next_event_also_while_paused(watch: Watch) -> None:
    clock = VirtualClock()
    pace = pace_of(clock, watch)
    pace.pause()
    await pace.step()
    assert clock.now() == 0
    async with asyncio.TaskGroup() as group:
        group.create_task(clock.wait_until(Millis(700)))
        await asyncio.sleep(0)
        await pace.step()
    assert clock.now() == 700


def test_the_speed_changes_within_its_bounds(watch: Watch) -> None:
    pace = pace_of(VirtualClock(), watch)
    seen = []
    for change in (pace.faster, pace.faster, pace.faster, pace.slower, pace.slower, pace.slower, pace.slower):
        change()
        seen.append(pace.speed)
    assert seen == [60, 600, 600, 60, 10, 1, 1]


@pytest.mark.parametrize("speed", [0, -1, float("nan"), 1e9])
def test_an_invalid_speed_is_refused(watch: Watch, speed: float) -> None:
    with pytest.raises(ValueError, match="not between"):
        pace_of(VirtualClock(), watch, speed)
