"""Nodes with best-effort workers that run short of memory (EL-08), and workers that do not answer (EL-05)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.engine.effects import RemoveContainer
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Mode
from cockpit.runtime.clock import wall_nanos
from cockpit.runtime.containers import measuring, pressure
from cockpit.runtime.containers.heartbeats import Heartbeats, Worker, silence_ms
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.tasks import Tasks
from tests.runtime.containers.house import Seen

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 1_000_000_000


@pytest.mark.req("EL-08")
def test_memory_pressure_sums_the_working_sets_of_all_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {"a": 60, "b": 35, "c": 90}
    monkeypatch.setattr(pressure, "working_mib", lambda attempt: used[attempt.path])
    watch = pressure.Pressure(Tasks(), Seen(), lambda _: 100)

    def short(*tenants: tuple[str, str, bool]) -> list[str]:
        return watch.short(
            [pressure.RunningReplica(Attempt(path), NodeName(node), free) for path, node, free in tenants]
        )

    assert short(("a", "n1", True), ("b", "n1", False)) == ["n1"]
    assert short(("a", "n1", True), ("b", "n2", False)) == []
    assert short(("c", "n1", True)) == []
    assert short(("a", "n1", False), ("b", "n1", False)) == [], "nobody there is of best effort"


@pytest.mark.req("EL-08")
@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("cockpit-cluster/g", {"memory.current": "300000000", "memory.stat": "anon 1\ninactive_file 90284800\n"}),
        (
            "memory/cockpit-cluster/g",
            {"memory.usage_in_bytes": "300000000", "memory.stat": "inactive_file 7\ntotal_inactive_file 90284800\n"},
        ),
    ],
)
def test_cached_files_do_not_count_as_memory_pressure(tmp_path: Path, folder: str, files: dict[str, str]) -> None:
    (tmp_path / folder).mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / folder / name).write_text(text)
    assert measuring.working_of_group("g", tmp_path) == 200
    assert measuring.working_of_group("other", tmp_path) is None


@pytest.fixture
def worker(tmp_path: Path) -> Callable[[str, bool, int | None], Attempt]:
    """One that has begun or not, and has answered so many seconds ago."""

    def made(name: str, begun: bool, ago: int | None) -> Attempt:
        folder = tmp_path / name
        (folder / "pulse").mkdir(parents=True)
        if begun:
            (folder / "started.json").write_text("{}")
        if ago is not None:
            beat = folder / "pulse" / "beat"
            beat.touch()
            at = wall_nanos() - ago * SECOND
            os.utime(beat, ns=(at, at))
        return Attempt(str(folder))

    return made


@pytest.mark.req("EL-05")
def test_a_worker_is_reported_when_it_stops_answering(worker) -> None:
    seen = Seen()
    heartbeats = Heartbeats(Tasks(), seen)
    for rank, (begun, ago) in enumerate([(True, 5), (True, 100), (True, None), (False, None)]):
        heartbeats._workers[ReplicaId(JobId(1), 1, rank)] = Worker(worker(str(rank), begun, ago), 60_000)
    heartbeats.check()
    told = {replica.rank: silent for replica, silent in seen.silent}
    assert set(told) == {1, 3}
    assert told[3] is None
    assert 100_000 <= told[1] < 160_000
    assert silence_ms(worker("x", True, None), wall_nanos()) is None


@pytest.mark.req("EL-08")
@pytest.mark.parametrize("adopted", [False, True])
async def test_the_memory_of_a_node_is_watched_while_a_best_effort_worker_runs_on_it(
    house, monkeypatch, adopted
) -> None:
    monkeypatch.setattr(house.executor._pressure, "_every", 0.01)
    house.executor.memory_of = lambda node: {"n1": 0}[node]
    worker = house.job("sleep 100", elastic=Elastic(workers=2, min_workers=1, max_workers=3, best_effort=True))
    if adopted:
        await house.executor.start(worker)
        house.executor.close()
        house.move_in()
        monkeypatch.setattr(house.executor._pressure, "_every", 0.01)
        house.executor.memory_of = lambda node: {"n1": 0}[node]
        await house.executor.adopt([worker], [])
    else:
        await house.executor.start(worker)
    await house.seen.until(lambda: house.seen.pressed)
    assert set(house.seen.pressed) == {"n1"}
    watching = house.executor._pressure._watching
    await house.executor.remove(RemoveContainer(worker.replica))
    await watching
    assert house.executor._pressure._watching is None


async def test_only_workers_of_best_effort_jobs_make_a_node_watched(house) -> None:
    """Every replica counts as a user of memory, also the launcher, which requests its own."""
    watch = pressure.Pressure(Tasks(), Seen(), lambda _: 100)
    attempt = Attempt(str(house.folder))
    plain = house.job("true")
    watch.follow(plain, attempt)
    launched = house.job(
        "true", elastic=Elastic(workers=2, min_workers=1, max_workers=3, best_effort=True), mode=Mode.HOROVOD
    )
    watch.follow(launched, attempt)
    assert watch._watching is None
    assert [each.best_effort for each in watch._replicas.values()] == [False, False]
    first = replace(launched, replica=ReplicaId(launched.replica.job, 1, 1))
    second = replace(launched, replica=ReplicaId(launched.replica.job, 1, 2))
    watch.follow(first, attempt)
    watching = watch._watching
    watch.follow(second, attempt)
    assert watch._watching is watching is not None
    assert [each.best_effort for each in watch._replicas.values()] == [False, False, True, True]
    watch.close()
