"""Steps of the executor that need no container."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cockpit.engine.effects import (
    CheckNodes,
    FreezeReplica,
    KeepContainer,
    SignalKind,
    SignalReplica,
    ThawReplica,
    WriteWorkersFile,
)
from cockpit.errors import RequestRefused
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
        self.attempt, self.sent = "its attempt", []

    def send(self, signal: int) -> None:
        self.sent.append(signal)

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


@pytest.mark.parametrize(
    ("watched", "alive", "ended", "runs"),
    [(True, True, False, True), (True, False, False, False), (True, True, True, False), (False, True, False, False)],
)
async def test_only_a_running_container_is_frozen_or_gets_a_list_of_workers(
    made: Executor, monkeypatch: pytest.MonkeyPatch, watched: bool, alive: bool, ended: bool, runs: bool
) -> None:
    done: list[object] = []
    monkeypatch.setattr(driver.freezing, "freeze", lambda attempt: done.append(("freeze", attempt)))
    monkeypatch.setattr(driver.freezing, "thaw", lambda attempt: done.append(("thaw", attempt)))
    monkeypatch.setattr(driver.heartbeats, "show", lambda attempt, files: done.append((attempt, files)))
    watch: Any = Watched()
    watch.alive, watch.ended = alive, ended
    if watched:
        made.executor._watched[REPLICA] = watch
    made.executor._workers_of = lambda _replica: {"workers": b"1"}
    await made.executor.freeze(FreezeReplica(REPLICA))
    await made.executor.thaw(ThawReplica(REPLICA))
    await made.executor.write_workers_file(WriteWorkersFile(REPLICA))
    expected = [("freeze", "its attempt"), ("thaw", "its attempt"), ("its attempt", {"workers": b"1"})]
    assert done == (expected if runs else [])


@pytest.mark.parametrize(
    ("force", "number"),
    [
        (SignalKind.TERM, holder.TERMINATE),
        (SignalKind.KILL, holder.KILL),
        (SignalKind.EARLY, holder.EARLY),
    ],
)
async def test_a_signal_reaches_the_holder_of_a_container_which_is_thawed_first(
    made: Executor, monkeypatch: pytest.MonkeyPatch, force: SignalKind, number: int
) -> None:
    thawed: list[object] = []
    monkeypatch.setattr(driver.freezing, "thaw", thawed.append)
    await made.executor.signal(SignalReplica(REPLICA, force))
    assert (thawed, made.seen.ended) == ([], []), "there is nothing to signal"
    watch: Any = Watched()
    made.executor._watched[REPLICA] = watch
    await made.executor.signal(SignalReplica(REPLICA, force))
    assert (thawed, watch.sent) == (["its attempt"], [number])


async def test_a_replica_that_waits_with_its_copies_ends_at_once_and_once(made: Executor) -> None:
    made.executor._waiting.add(REPLICA)
    await made.executor.signal(SignalReplica(REPLICA, SignalKind.TERM))
    ((replica, status),) = made.seen.ended
    assert (replica, status.lost) == (REPLICA, "it was ended while its files were copied")
    await made.executor.signal(SignalReplica(REPLICA, SignalKind.TERM))
    assert len(made.seen.ended) == 1


async def test_nobody_enters_what_was_not_started_or_has_left_no_plan(made: Executor) -> None:
    def refused() -> Any:
        return pytest.raises(RequestRefused, match="has no container to enter")

    for record in (None, "exit.json", "plan.json"):
        if record == "exit.json":
            made.attempt.write_exit({"code": 3})
        if record == "plan.json":
            Path(made.attempt.file("exit.json")).unlink()
            made.attempt.write("plan.json", {})
        with refused():
            await made.executor.enter(REPLICA, [], terminal=None, label="")
