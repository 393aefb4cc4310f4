"""Steps of the executor that need no container."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cockpit.engine.effects import CheckNodes, KeepContainer
from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
from cockpit.model.spec import HoldCards
from cockpit.model.usage import ReplicaTotals
from cockpit.runtime.containers import driver
from cockpit.runtime.containers.driver import ContainerExecutor, _with_logs
from cockpit.runtime.containers.prechecking import NOWHERE
from cockpit.runtime.containers.shim import holder
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.spawning import SpawnError
from tests.runtime.containers.house import Seen

pytestmark = pytest.mark.req("JT-40", "EL-10")
REPLICA = ReplicaId(JobId(7), 1, 0)


class Executor:
    def __init__(self, state: Path) -> None:
        self.seen = Seen()
        planner: Any = None
        self.executor = ContainerExecutor(state, planner, self.seen)
        self.attempt = Attempt(str(state / "containers" / REPLICA.folder))


@pytest.fixture
def made(tmp_path: Path) -> Executor:
    (tmp_path / "containers" / REPLICA.folder).mkdir(parents=True)
    return Executor(tmp_path)


@pytest.mark.parametrize(
    ("found", "checked", "failed"),
    [(None, [""], []), ((NOWHERE, "fine"), ["fine"], []), ((NodeName("n1"), "no card"), [], ["n1: no card"])],
)
async def test_nodes_pass_a_check_that_is_not_made_or_finds_nothing(
    made: Executor, found: Any, checked: list[str], failed: list[str]
) -> None:
    class Checks:
        def look(self, _placement: object) -> Any:
            return found

    checks: Any = Checks()
    made.executor.prechecks = checks if found else None
    await made.executor.check(CheckNodes(REPLICA, ()))
    assert (made.seen.checked, made.seen.failed) == (checked, failed)


async def test_a_machine_without_staging_has_no_copies(made: Executor) -> None:
    assert await made.executor.copies() == []
    assert not await made.executor.remove_copy("key")
    assert made.executor.staging(REPLICA) is None


class Watched:
    """The watch of an attempt whose holder leaves when it is asked to."""

    def __init__(self) -> None:
        self.ended, self.alive, self.left = False, True, []

    async def leave(self, signal: int, _seconds: float) -> None:
        self.left.append(signal)
        self.alive = False

    def close(self) -> None: ...


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_held_podman_container_is_made_of_its_committed_files(
    made: Executor, monkeypatch: pytest.MonkeyPatch, again: bool, watched: bool, fails: bool
) -> None:
    made.attempt.write("plan.json", {"podman": "image"})
    made.attempt.write("exit.json", {"code": 3})
    made.attempt.write("shim.json", {"remounted": again, "boot_id": "x"})
    spawned: list[str] = []
    watch = Watched()
    watches: list[Watched] = []

    def spawn_again(attempt: Attempt, _shims: object) -> None:
        spawned.append(attempt.name)
        if fails:
            raise SpawnError("no space")

    def new_watch(_replica: ReplicaId, _attempt: Attempt) -> Watched:
        watches.append(Watched() if watches or watched else watch)
        return watches[-1]

    monkeypatch.setattr(driver.spawning, "spawn_again", spawn_again)
    monkeypatch.setattr(made.executor, "_watch", new_watch)
    if watched:
        watching: Any = watch
        made.executor._watched[REPLICA] = watching
    await made.executor.keep(KeepContainer(REPLICA, HoldCards.KEEP, Millis(9)))
    assert made.attempt.read("kept.json") == {"cards": "keep", "until": 9}
    assert watch.ended
    assert watch.left == ([] if again else [holder.LEAVE])
    if again and watched:
        assert spawned == [], "its holder is alive"
    else:
        assert spawned == [REPLICA.folder]


async def test_other_held_containers_keep_their_holder(made: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver.spawning, "spawn_again", lambda *_: pytest.fail("it was made again"))
    await made.executor.keep(KeepContainer(REPLICA, HoldCards.FREE))
    assert made.attempt.read("kept.json") is None, "there is no container"
    made.attempt.write("plan.json", {"podman": ""})
    made.attempt.write_exit({"code": 3})
    await made.executor.keep(KeepContainer(REPLICA, HoldCards.FREE))
    assert made.attempt.read("kept.json") == {"cards": "free", "until": None}


def test_output_that_was_dropped_from_the_logs_counts_to_the_usage(
    made: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = ReplicaTotals(cpu_ms=7)
    assert _with_logs(used, made.attempt) is used
    made.attempt.write("plan.json", {"stdout": "/out", "stderr": "/err"})
    dropped = {"/out": 0, "/err": 0}
    monkeypatch.setattr(driver, "left_out", lambda path: dropped[str(path)])
    assert _with_logs(used, made.attempt) is used
    assert _with_logs(None, made.attempt) is None
    dropped |= {"/out": 3 << 20, "/err": 2 << 20}
    assert _with_logs(used, made.attempt) == ReplicaTotals(cpu_ms=7, log_left_out_mib=5)
    assert _with_logs(None, made.attempt) == ReplicaTotals(log_left_out_mib=5)


def test_replicas_on_disk_are_the_folders_with_their_names(made: Executor) -> None:
    for name in ("8.2.1", "probe-x", "9.1"):
        (made.executor._state / "containers" / name).mkdir()
    assert made.executor._replicas_on_disk() == {REPLICA, ReplicaId(JobId(8), 2, 1)}
