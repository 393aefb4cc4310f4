"""How long answers are good, how often a command runs again, and which files of answers are used."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from cockpit.backends.slurm.wire import answer_cache, answers
from cockpit.backends.slurm.wire.answer_cache import UserAnswerCache, _belongs_to, _make_folder, answer_cache_for
from cockpit.backends.slurm.wire.answers import FAILED_MS, SLOW_FACTOR
from cockpit.backends.slurm.wire.calls import Failed, Garbled, Printed
from cockpit.errors import Unreachable
from cockpit.model.ids import Millis
from cockpit.runtime.clock import VirtualClock
from tests.backends.slurm.test_answers import FINE, QUESTION, ScriptedCommands, asking

pytestmark = pytest.mark.req("SL-03", "SL-04")
BUSY = Printed("", "squeue: error: Zero Bytes were transmitted or received", 1)
CONFIG = ("scontrol", "show", "config")


async def test_an_answer_is_good_for_twenty_times_as_long_as_it_took() -> None:
    clock = VirtualClock(1_000_000)
    commands = ScriptedCommands(clock, FINE, takes_ms=1000)
    cockpit = asking(commands, clock)
    await cockpit.ask(QUESTION, 1)
    clock.advance(1000 * SLOW_FACTOR - 1000 - 1)
    await cockpit.ask(QUESTION, 1)
    assert len(commands.asked) == 1
    clock.advance(1)
    await cockpit.ask(QUESTION, 1)
    assert len(commands.asked) == 2


async def test_an_answer_is_as_old_as_the_start_of_its_command() -> None:
    clock = VirtualClock(1_000_000)
    cockpit = asking(ScriptedCommands(clock, FINE, takes_ms=500), clock)
    assert cockpit.given_at(QUESTION) is cockpit.last(QUESTION) is None
    await cockpit.ask(QUESTION, 1)
    assert cockpit.given_at(QUESTION) == 1_000_000
    await cockpit.ask_now(QUESTION)
    assert cockpit.given_at(QUESTION) == 1_000_500
    assert cockpit.last(QUESTION).stdout == "fine"


async def test_a_busy_controller_is_asked_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)

    clock = VirtualClock(1_000_000)
    commands = ScriptedCommands(clock, BUSY)
    cockpit = asking(commands, clock)
    monkeypatch.setattr(answers.asyncio, "sleep", sleep)
    with pytest.raises(Unreachable, match="Zero Bytes"):
        await cockpit.ask(QUESTION, 1)
    assert len(commands.asked) == 3
    assert pauses == [0.5, 1.0]


async def test_an_incomplete_answer_is_fetched_once_more() -> None:
    clock = VirtualClock(1_000_000)
    half, whole = Printed("Configuration data as of", "", 0), Printed("ClusterName = lab\n", "", 0, verified=True)
    commands = ScriptedCommands(clock, half, whole)
    assert (await asking(commands, clock).ask(CONFIG, 1)).stdout == whole.stdout
    assert len(commands.asked) == 2
    twice = ScriptedCommands(clock, half)
    cockpit = asking(twice, clock)
    with pytest.raises(Garbled, match="The answer of scontrol show config is not whole"):
        await cockpit.ask(CONFIG, 1)
    assert len(twice.asked) == 2


async def test_an_answer_that_proved_wrong_is_an_error_for_a_while() -> None:
    clock = VirtualClock(1_000_000)
    commands = ScriptedCommands(clock, FINE)
    cockpit = asking(commands, clock)
    await cockpit.ask(QUESTION, 100)
    wrong = Garbled("squeue", "it leaves out 1")
    cockpit.replace_by_error(QUESTION, wrong)
    assert cockpit.last(QUESTION) is None
    clock.advance(FAILED_MS - 1)
    with pytest.raises(Garbled):
        await cockpit.ask(QUESTION, 100)
    assert len(commands.asked) == 1
    clock.advance(1)
    assert (await cockpit.ask(QUESTION, 100)).stdout == "fine"
    assert len(commands.asked) == 2
    clock.advance(100_000)
    assert (await cockpit.ask(QUESTION, 1)).stdout == "fine", "the error is forgotten with the next answer"


async def test_a_command_that_failed_slowly_is_left_alone_for_longer() -> None:
    clock = VirtualClock(1_000_000)
    commands = ScriptedCommands(clock, Printed("", "squeue: error: Invalid user", 1), takes_ms=10_000)
    cockpit = asking(commands, clock)
    for advance, asked in ((0, 1), (9_000, 1), (20_000, 2)):
        clock.advance(advance)
        with pytest.raises(Failed):
            await cockpit.ask(QUESTION, 1)
        assert len(commands.asked) == asked


async def test_a_change_forgets_failures_of_its_programs_alone() -> None:
    clock = VirtualClock(1_000_000)
    commands = ScriptedCommands(clock, Printed("", "error: Invalid user", 1))
    cockpit = asking(commands, clock)
    for question in (QUESTION, ("sacctmgr", "list")):
        with pytest.raises(Failed):
            await cockpit.ask(question, 1)
    clock.advance(1)
    cockpit.forget({"squeue"})
    for question in (QUESTION, ("sacctmgr", "list")):
        with pytest.raises(Failed):
            await cockpit.ask(question, 1)
    assert [each[0] for each in commands.asked] == ["squeue", "sacctmgr", "squeue"]


async def test_a_shared_answer_is_asked_for_with_its_age_in_milliseconds() -> None:
    wanted: list[tuple[str, int]] = []

    class Cache:
        async def get(self, question: str, fresh_ms: int, _fetch: object) -> tuple[Printed, Millis]:
            wanted.append((question, fresh_ms))
            return FINE, Millis(at)

        def outdate(self, program: str) -> None: ...

        def outdated_at(self, _program: str) -> Millis:
            return Millis(900)

    clock = VirtualClock(1000)
    commands = ScriptedCommands(clock, Printed("own", "", 0, verified=True))
    at = 950
    assert (await asking(commands, clock, Cache()).ask(("squeue", "-h"), 2.5)).stdout == "fine"
    assert wanted == [("squeue\0-h", 2500)]
    at = 899
    cockpit = asking(commands, clock, Cache())
    assert (await cockpit.ask(("squeue", "-h"), 2.5)).stdout == "own", "it is older than this user's last change"
    assert cockpit.given_at(("squeue", "-h")) == 1000


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_000_000)


async def fetched(cache: UserAnswerCache, fresh_ms: int, text: str) -> str:
    async def fetch() -> Printed:
        return Printed(text, "", 0, "~")

    return (await cache.get("squeue\0-h", fresh_ms, fetch))[0].stdout


async def test_a_cached_answer_is_used_while_it_is_younger_than_wanted(tmp_path: Path, clock: VirtualClock) -> None:
    cache = UserAnswerCache(tmp_path, clock.now)
    assert await fetched(cache, 100, "one") == "one"
    clock.advance(99)
    assert await fetched(cache, 100, "two") == "one"
    clock.advance(1)
    assert await fetched(cache, 100, "three") == "three"
    file = tmp_path / answer_cache._name("squeue\0-h")
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b"damaged")
    assert await fetched(cache, 100, "four") == "four"
    clock._now = Millis(clock.now() - 1)
    assert await fetched(cache, 100, "five") == "five", "an answer of the future is none"


async def test_only_one_cockpit_runs_a_command_at_a_time(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_cache, "LOOK_SECONDS", 0.001)
    running, going, runs = asyncio.Event(), asyncio.Event(), []
    caches = [UserAnswerCache(tmp_path, clock.now) for _ in range(2)]

    async def fetch() -> Printed:
        runs.append(1)
        running.set()
        await going.wait()
        return Printed("told", "", 0)

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(each.get("squeue", 100, fetch)) for each in caches]
        await running.wait()
        await asyncio.sleep(0)
        going.set()
    assert [each.result()[0].stdout for each in asked] == ["told", "told"]
    assert len(runs) == 1
    assert (tmp_path / f"{answer_cache._name('squeue')}.lock").exists()


async def test_a_cockpit_that_hangs_is_not_waited_for_without_end(
    tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_cache, "PATIENCE_SECONDS", 0.003)
    monkeypatch.setattr(answer_cache, "LOOK_SECONDS", 0.001)
    cache = UserAnswerCache(tmp_path, clock.now)
    held = await cache._lock_question(tmp_path / answer_cache._name("squeue\0-h"))
    assert held is not None
    assert await fetched(cache, 100, "own") == "own"
    os.close(held)


def test_the_time_of_a_change_is_kept_in_a_file(tmp_path: Path, clock: VirtualClock) -> None:
    cache = UserAnswerCache(tmp_path, clock.now)
    assert cache.outdated_at("squeue") < 0
    cache.outdate("squeue")
    assert cache.outdated_at("squeue") == clock.now()
    assert [each.name for each in tmp_path.iterdir()] == ["squeue.changed"]
    (tmp_path / "squeue.changed").write_text("soon")
    assert cache.outdated_at("squeue") < 0


@pytest.mark.parametrize(
    ("mode", "owners", "sticky", "belongs"),
    [
        (0o755, {0}, False, True),
        (0o775, {0}, False, False),
        (0o757, {0}, False, False),
        (0o1777, {0}, False, False),
        (0o1777, {0}, True, True),
        (0o777, {0}, True, False),
        (0o755, {64030}, False, False),
    ],
)
def test_a_folder_is_believed_if_only_its_owners_can_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, owners: set[int], sticky: bool, belongs: bool
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    own = frozenset(owners if owners != {0} else {os.geteuid()})
    assert _belongs_to(folder, own, sticky=sticky) is belongs
    (tmp_path / "file").touch()
    assert not _belongs_to(tmp_path / "file", frozenset({os.geteuid()}))
    assert not _belongs_to(tmp_path / "none", frozenset({os.geteuid()}))


def test_a_folder_for_answers_is_made_with_its_mode_and_refused_as_a_file(tmp_path: Path) -> None:
    made = _make_folder(tmp_path / "a" / "b", 0o755)
    assert made == tmp_path / "a" / "b"
    assert made.stat().st_mode & 0o777 == 0o755
    assert made.parent.stat().st_mode & 0o777 == 0o700
    made.chmod(0o700)
    assert _make_folder(made, 0o755) == made
    assert made.stat().st_mode & 0o777 == 0o700, "a folder that exists keeps its mode"
    (tmp_path / "file").touch()
    assert _make_folder(tmp_path / "file", 0o700) is None
    assert _make_folder(tmp_path / "file" / "below", 0o700) is None


def test_each_cluster_has_a_folder_of_its_own(tmp_path: Path, clock: VirtualClock) -> None:
    for cluster in ("lab", "other", "lab"):
        assert isinstance(answer_cache_for(cluster, tmp_path / "own", clock.now), UserAnswerCache)
    assert len(list((tmp_path / "own").iterdir())) == 2
