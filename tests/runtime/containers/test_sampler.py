"""Which replicas the sampler measures, what it records of them, and which figures it takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.model.ids import JobId, ReplicaId
from cockpit.runtime.cards.metering import CardReading
from cockpit.runtime.containers import measuring, sampling
from cockpit.runtime.containers.measuring import NOTHING, Reading
from cockpit.runtime.containers.sampling import Sampler
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.req("JT-48")
FIRST, SECOND = (ReplicaId(JobId(7), 1, rank) for rank in (0, 1))
TICKS = os.sysconf("SC_CLK_TCK")


class Meter:
    """Measures two cards."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self) -> dict[str, CardReading]:
        self.reads += 1
        return {"GPU-0": CardReading(40, 100), "GPU-1": CardReading(60, 300)}


class Machine:
    """A machine whose clock and figures a test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.at, self.figures = folder, 100_000, Reading(1000, 50, 60)
        self.meters: list[Meter] = []

    def sampler(self) -> Sampler:
        def meter() -> Meter:
            self.meters.append(Meter())
            return self.meters[-1]

        return Sampler(Tasks(), meter, lambda: self.at)

    def attempt(self, replica: ReplicaId, *cards: str, began: int = 90) -> Attempt:
        """An attempt whose holder began so many seconds after the machine's start."""
        folder = self.folder / replica.folder
        folder.mkdir(exist_ok=True)
        made = Attempt(str(folder))
        made.write("plan.json", {"cgroup": "none", "cards": list(cards)})
        made.write("shim.json", {"start_time": began * TICKS})
        return made


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr(sampling, "reading", lambda _: made.figures)
    monkeypatch.setattr(sampling, "last_reading", lambda _: made.figures)
    return made


async def test_a_replica_is_measured_from_the_start_of_its_holder(machine: Machine) -> None:
    sampler, attempt = machine.sampler(), machine.attempt(FIRST)
    assert await sampler.used(FIRST, attempt) is None
    sampler.follow(FIRST, attempt)
    used = await sampler.used(FIRST, attempt)
    assert used is not None
    assert (used.rank, used.cpu_ms, used.memory_mib, used.peak_memory_mib) == (0, 1000, 50, 60)
    assert [(each.lasted_ms, each.busy_milli) for each in used.course] == [(10_000, 100)]
    machine.at, machine.figures = 110_000, Reading(6000, 40, 60)
    sampler.look()
    recorded = sampling.read_record(attempt)
    assert recorded is not None
    assert [(each.lasted_ms, each.busy_milli) for each in recorded.samples] == [(10_000, 100), (10_000, 500)]
    machine.figures = Reading(7000, None, 90)
    total = sampler.leave(FIRST)
    assert total is not None
    assert (total.cpu_ms, total.peak_memory_mib) == (7000, 90)
    assert sampler.leave(FIRST) is None
    ended = await sampler.used(FIRST, attempt)
    assert ended is not None
    assert (ended.cpu_ms, ended.memory_mib, ended.peak_memory_mib) == (7000, None, 90)
    assert machine.meters == [], "no replica has cards"
    sampler.close()


async def test_a_restarted_engine_continues_the_record(machine: Machine) -> None:
    first, attempt = machine.sampler(), machine.attempt(FIRST)
    first.follow(FIRST, attempt)
    first.look()
    first.close()
    machine.at, machine.figures = 120_000, Reading(3000, 10, 20)
    second = machine.sampler()
    second.follow(FIRST, attempt)
    second.look()
    record = sampling.read_record(attempt)
    assert record is not None
    assert [(each.lasted_ms, each.busy_milli) for each in record.samples] == [(10_000, 100), (20_000, 100)]
    second.close()


async def test_cards_are_measured_once_for_all_replicas(machine: Machine) -> None:
    sampler = machine.sampler()
    for replica, cards in ((FIRST, ("GPU-0", "GPU-1")), (SECOND, ("GPU-1", "GPU-9"))):
        sampler.follow(replica, machine.attempt(replica, *cards))
    sampler.look()
    assert [meter.reads for meter in machine.meters] == [1]
    sampler.look()
    assert [meter.reads for meter in machine.meters] == [2]
    both = await sampler.used(FIRST, machine.attempt(FIRST))
    one = await sampler.used(SECOND, machine.attempt(SECOND))
    assert both is not None
    assert one is not None
    assert (both.card_percent, both.card_memory_mib) == (50, 400)
    assert (one.card_percent, one.card_memory_mib) == (60, 300)
    assert [meter.reads for meter in machine.meters] == [4]
    sampler.close()


async def test_a_damaged_record_is_begun_anew(machine: Machine) -> None:
    sampler, attempt = machine.sampler(), machine.attempt(FIRST)
    Path(attempt.file(sampling.RECORD)).write_text("nothing")
    assert sampling.read_record(attempt) is None
    sampler.follow(FIRST, attempt)
    sampler.look()
    assert sampling.read_record(attempt) is not None
    sampler.close()


async def test_no_task_runs_without_a_replica(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "PERIOD_MS", 1)
    sampler = machine.sampler()
    sampler.close()
    for _ in range(2):
        sampler.follow(FIRST, machine.attempt(FIRST))
        looking = sampler._looking
        assert looking is not None
        sampler.follow(SECOND, machine.attempt(SECOND))
        assert sampler._looking is looking
        sampler.leave(FIRST)
        sampler.leave(SECOND)
        await looking
        assert sampler._looking is None


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Attempt]:
    def made(group: Reading | None, holder: Reading, *, ended: bool = False, plan: bool = True) -> Attempt:
        attempt = Attempt(str(tmp_path))
        if plan:
            attempt.write("plan.json", {"cgroup": "g"})
        if ended:
            attempt.write_exit({"code": 0, "cpu_ms": 77, "peak_memory_mib": 5})
        monkeypatch.setattr(measuring, "of_group", lambda name: {"g": group}[name])
        monkeypatch.setattr(measuring, "of_processes", lambda pid: {4711: holder}[pid])
        monkeypatch.setattr(Attempt, "holder_pid", lambda _: 4711)
        return attempt

    return made


@pytest.mark.parametrize(
    ("group", "holder", "words", "now", "last"),
    [
        (Reading(5, 6, 7), Reading(1, 2), {}, Reading(5, 6, 7), Reading(5, None, 7)),
        (Reading(None, 6, 7), Reading(1, 2), {}, Reading(1, 6, 7), Reading(1, None, 7)),
        (None, Reading(1, 2), {}, Reading(1, 2), Reading(1, None, None)),
        (None, Reading(1, 2), {"ended": True}, NOTHING, Reading(77, None, 5)),
        (Reading(None, 6, 7), Reading(1, 2), {"ended": True}, Reading(None, 6, 7), Reading(77, None, 7)),
        (Reading(5, 6, 7), Reading(1, 2), {"plan": False}, Reading(1, 2), Reading(1, None, None)),
    ],
)
def test_a_cgroup_counts_and_what_it_lacks_comes_from_the_processes(figures, group, holder, words, now, last) -> None:
    attempt = figures(group, holder, **words)
    assert measuring.reading(attempt) == now
    assert measuring.last_reading(attempt) == last


def test_a_working_set_without_a_cgroup_is_the_memory_of_the_processes(figures, monkeypatch) -> None:
    attempt = figures(None, Reading(1, 2))
    monkeypatch.setattr(measuring, "working_of_group", lambda _: None)
    assert measuring.working_mib(attempt) == 2
    monkeypatch.setattr(measuring, "working_of_group", lambda _: 0)
    assert measuring.working_mib(attempt) == 0
    monkeypatch.setattr(measuring, "working_of_group", lambda _: None)
    assert measuring.working_mib(figures(None, NOTHING)) == 0
