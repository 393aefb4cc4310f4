"""The loads that the demo shows for cards and containers."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.backends.demo.fixture import nodes_of, read_fixture
from cockpit.backends.demo.loads import LOOK_MS, use_of, with_loads
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.engine.effects import StartReplica
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.jobdetail import ReplicaUse
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.spec import JobSpec
from cockpit.model.view import NodeRow, SliceUse
from tests.backends.demo.conftest import HOUR, LAB, Open

FIXTURE = read_fixture(LAB)
G01, _, M01 = nodes_of(FIXTURE)


def percents(*slices: SliceUse, now: int = HOUR) -> list[int]:
    row = NodeRow(G01, 0, 0, 0, 0, slices, ())
    return [load.percent for load in with_loads(row, Millis(now)).loads]


def slice_use(job: int, card: int, milli: int = 1000, *, held: bool = False) -> SliceUse:
    return SliceUse(card, None, milli, JobId(job), "mine", "ann", held)


def test_a_card_without_a_running_job_is_idle_and_slices_of_hardware_are_not_measured() -> None:
    assert percents(slice_use(7, 1, held=True)) == [0, 0, 0, 0]
    row = NodeRow(M01, 0, 0, 0, 0, (), ())
    assert with_loads(row, Millis(HOUR)).loads == ()


def test_a_job_loads_its_card_between_28_and_99_percent_and_wavers_around_its_level() -> None:
    seen = [percents(slice_use(job, 0), now=HOUR + look * LOOK_MS)[0] for job in range(1500) for look in range(8)]
    assert (min(seen), max(seen)) == (28, 99)
    one = [percents(slice_use(7, 0), now=HOUR + look * LOOK_MS)[0] for look in range(400)]
    assert max(one) - min(one) == 14
    assert percents(slice_use(7, 0), now=HOUR) == percents(slice_use(7, 0), now=HOUR + LOOK_MS - 1)
    assert len({percents(slice_use(7, 0), now=HOUR + look * LOOK_MS)[0] for look in range(5)}) > 1


def test_jobs_load_a_card_by_their_shares_of_it() -> None:
    whole, other = percents(slice_use(7, 2))[2], percents(slice_use(8, 2))[2]
    assert percents(slice_use(7, 2, 250)) == [0, 0, whole // 4, 0]
    assert percents(slice_use(7, 2, 250), slice_use(8, 2, 500), slice_use(9, 3)) == [
        0,
        0,
        whole // 4 + other // 2,
        percents(slice_use(9, 3))[3],
    ]


def use_after(milliseconds: int, slices: tuple[CardSlice, ...] = (), job: int = 7, cpus: int = 8) -> ReplicaUse:
    allocation = Allocation(3, G01.name, cpus, 64 * 1024, slices)
    spec = JobSpec(name="mine", command="python train.py", output="/o")
    start = StartReplica(ReplicaId(JobId(job), 1, 3), spec, actor_of(FIXTURE, "ann").who, allocation)
    return use_of(start, G01, Millis(HOUR), Millis(HOUR + milliseconds))


def test_a_replica_fills_its_memory_in_the_first_tenth_of_its_samples_and_then_stays_near_its_peak() -> None:
    for job in range(40):
        use = use_after(HOUR, job=job)
        assert use.rank == 3
        assert use.peak_memory_mib is not None
        memory = [sample.memory_mib or 0 for sample in use.course]
        assert len(memory) == 60
        assert sum(sample.lasted_ms for sample in use.course) == HOUR
        assert memory[0] < 0.16 * use.peak_memory_mib
        assert all(0.93 * use.peak_memory_mib <= each <= use.peak_memory_mib for each in memory[6:])
        assert use.memory_mib == memory[-1]


def test_processor_time_and_memory_are_within_the_allocation() -> None:
    uses = [use_after(HOUR, job=job) for job in range(1500)]
    levels = {use.cpu_ms * 100 // (8 * HOUR) for use in uses if use.cpu_ms is not None}
    assert (min(levels), max(levels)) == (30, 95)
    peaks = {use.peak_memory_mib or 0 for use in uses}
    assert (min(peaks), max(peaks)) == (64 * 1024 * 35 // 100, 64 * 1024 * 93 // 100)
    milli = [sample.busy_milli or 0 for use in uses for sample in use.course[6:]]
    assert 0.22 * 8000 < min(milli) < 0.26 * 8000
    assert max(milli) == 8000
    levels_of_samples = {
        100 * (sample.memory_mib or 0) // peak
        for use in uses
        for sample in use.course[9:]
        if (peak := use.peak_memory_mib)
    }
    assert (min(levels_of_samples), max(levels_of_samples)) == (93, 100), "94 % of the peak, rounded down, to all of it"
    starts = [100 * (use.course[0].memory_mib or 0) / (use.peak_memory_mib or 1) for use in uses]
    assert 14 < min(starts) < 14.2 < 14.9 < max(starts) <= 15
    assert min(100 * (use.course[5].memory_mib or 0) // (use.peak_memory_mib or 1) for use in uses) in {92, 93}
    assert all((use.cpu_ms or 0) > 0 for use in (use_after(0), use_after(1)))


def test_only_whole_cards_have_figures_of_their_use() -> None:
    without, share = use_after(HOUR), use_after(HOUR, (CardSlice(0, None, 500),))
    for use in (without, share):
        assert (use.card_percent, use.mean_card_percent, use.peak_card_percent) == (None, None, None)
        assert (use.card_memory_mib, use.peak_card_memory_mib) == (None, None)
    one, two = (
        use_after(HOUR, (CardSlice(0, None, 1000),)),
        use_after(HOUR, (CardSlice(0, None, 1000), CardSlice(2, None, 1000))),
    )
    percents = [sample.card_percent or 0 for sample in one.course]
    assert one.card_percent == percents[-1]
    assert one.mean_card_percent == sum(percents) // 60
    assert one.peak_card_percent == max(percents)
    assert one.card_memory_mib is not None
    assert two.card_memory_mib is not None
    assert abs(two.card_memory_mib - 2 * one.card_memory_mib) <= 1
    shares = {(use_after(HOUR, (CardSlice(0, None, 1000),), job=job).card_memory_mib or 0) for job in range(800)}
    assert (min(shares), max(shares)) == (80 * 1024 * 50 // 100, 80 * 1024 * 96 // 100)


def test_a_node_that_is_not_known_has_no_card_memory() -> None:
    allocation = Allocation(0, G01.name, 1, 1024, (CardSlice(0, None, 1000),))
    spec = JobSpec(name="mine", command="true", output="/o")
    start = StartReplica(ReplicaId(JobId(7), 1, 0), spec, actor_of(FIXTURE, "ann").who, allocation)
    assert use_of(start, None, Millis(0), Millis(HOUR)).card_memory_mib is None


async def test_the_demos_nodes_show_the_loads_of_the_jobs_on_them(opened: Open) -> None:
    demo = await opened()
    for row in await demo.backend.nodes():
        assert row.loads == with_loads(replace(row, loads=()), demo.now()).loads
        used = {each.card for each in row.slices if not each.held}
        for load in row.loads:
            assert (load.percent > 0) == (load.card in used)
