from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.ids import Millis
from cockpit.runtime.clock import SLEW_DIVISOR, Deadline, SystemClock, VirtualClock

MILLI = 1_000_000
HOUR = 3_600_000
NOON = 1_800_000_000_000


class Machine:
    """Its wall clock can be set; its boot clock cannot."""

    def __init__(self) -> None:
        self.wall = NOON * MILLI
        self.boot = 5 * MILLI

    def passes(self, milliseconds: int) -> None:
        self.wall += milliseconds * MILLI
        self.boot += milliseconds * MILLI

    def clock(self, not_before: int = 0) -> SystemClock:
        return SystemClock(Millis(not_before), wall=lambda: self.wall, progress=lambda: self.boot)


def test_follows_an_undisturbed_wall_clock() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.passes(1234)
    assert clock.now() == NOON + 1234
    assert clock.offset_millis() == 0


@pytest.mark.req("TR-03")
@pytest.mark.parametrize("jump", [-10 * HOUR, -HOUR, HOUR, 24 * HOUR])
def test_a_clock_jump_shortens_no_hold_and_never_moves_time_back(jump: int) -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.now()
    machine.wall += jump * MILLI
    after = clock.now()
    assert after == before
    for _ in range(240):
        machine.passes(60_000)
        assert clock.now() > after
        after = clock.now()
    assert abs(after - (before + 4 * HOUR)) <= 4 * HOUR // SLEW_DIVISOR


@pytest.mark.req("TR-03")
def test_a_clock_jump_is_reported_and_corrected_slowly() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += 2000 * MILLI
    assert clock.offset_millis() == 2000
    machine.passes(1_000_000)
    clock.now()
    assert clock.offset_millis() == 1000
    machine.passes(1_000_000)
    clock.now()
    assert clock.offset_millis() == 0


def test_a_machine_resumed_from_suspend_has_the_right_time() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.passes(8 * HOUR)  # the boot clock counts it
    assert clock.now() == NOON + 8 * HOUR


def test_begins_no_earlier_than_the_journal_ended() -> None:
    assert Machine().clock(not_before=NOON + HOUR).now() == NOON + HOUR
    assert Machine().clock(not_before=NOON - HOUR).now() == NOON


@given(st.lists(st.tuples(st.integers(0, HOUR), st.integers(-1000 * HOUR, 1000 * HOUR)), max_size=30))
def test_never_decreases_for_any_wall_clock(steps: list[tuple[int, int]]) -> None:
    machine = Machine()
    clock = machine.clock()
    last = clock.now()
    for passed, jump in steps:
        machine.passes(passed)
        machine.wall += jump * MILLI
        now = clock.now()
        assert last <= now <= last + passed + passed // SLEW_DIVISOR + 1
        last = now


def test_the_real_clock_agrees_with_a_file_just_written(tmp_path) -> None:
    clock = SystemClock()
    (tmp_path / "now").touch()
    assert abs(clock.now() - (tmp_path / "now").stat().st_mtime_ns // MILLI) < 60_000


async def test_waiting_for_the_past_returns_at_once() -> None:
    clock = SystemClock()
    async with asyncio.timeout(60):
        await clock.wait_until(Millis(clock.now() - 1))
        await clock.wait_until(Millis(clock.now() + 2))


async def test_a_virtual_clock_wakes_sleepers_in_order_of_time_then_of_arrival() -> None:
    clock = VirtualClock(Millis(100))
    woken: list[str] = []

    async def waits(name: str, at: int) -> None:
        await clock.wait_until(Millis(at))
        woken.append(name)

    async with asyncio.TaskGroup() as tasks:
        for name, at in (("late", 300), ("first", 200), ("second", 200), ("past", 50)):
            tasks.create_task(waits(name, at))
        await asyncio.sleep(0)
        assert woken == ["past"]
        clock.advance(99)
        await asyncio.sleep(0)
        assert woken == ["past"]
        clock.advance(500)
    assert woken == ["past", "first", "second", "late"]
    assert clock.now() == 699


async def test_a_virtual_clock_drops_cancelled_sleepers() -> None:
    clock = VirtualClock()
    async with asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(clock.wait_until(Millis(10)))
        tasks.create_task(clock.wait_until(Millis(20)))
        await asyncio.sleep(0)
        assert clock.next_wait() == 10
        gone.cancel()
        await asyncio.sleep(0)
        assert clock.next_wait() == 20
        clock.advance(20)
    assert clock.next_wait() is None


def test_virtual_time_never_decreases() -> None:
    with pytest.raises(ValueError, match="back"):
        VirtualClock().advance(-1)


def test_a_deadline_runs_out() -> None:
    assert Deadline(0).over
    assert 0 < Deadline(60).seconds_left <= 60
