"""How often a cluster is really asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from cockpit.backends.slurm.mapping.listing import SEPARATOR
from cockpit.backends.slurm.wire import answer_cache, answers
from cockpit.backends.slurm.wire.answer_cache import SharedAnswerCache, UserAnswerCache, answer_cache_for
from cockpit.backends.slurm.wire.answers import AnswerCache, Answers
from cockpit.backends.slurm.wire.calls import DATABASE_PROGRAMS, AnswerLost, Failed, Printed
from cockpit.errors import Unreachable
from cockpit.runtime.clock import VirtualClock

QUESTION = ("squeue", "-h")


class ScriptedCommands:
    """Commands that print these answers in turn; the last one again and again."""

    name = "scripted"
    database_programs = DATABASE_PROGRAMS

    def __init__(self, clock: VirtualClock, *printed: Printed, takes_ms: int = 0) -> None:
        self._clock, self._printed, self._takes_ms = clock, list(printed), takes_ms
        self.asked: list[tuple[str, ...]] = []

    async def run(self, argv: Sequence[str], **_: object) -> Printed:
        self.asked.append(tuple(argv))
        self._clock.advance(self._takes_ms)
        await asyncio.sleep(0)
        return self._printed.pop(0) if len(self._printed) > 1 else self._printed[0]


FINE = Printed("fine", "", 0, verified=True)


def asking(commands: ScriptedCommands, clock: VirtualClock, kept: AnswerCache | None = None) -> Answers:
    return Answers(commands, clock.now, Random(1), kept)


@pytest.mark.req("SL-03")
async def test_a_command_is_run_again_once_its_answer_is_outdated() -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, FINE)
    cockpit = asking(commands, clock)
    await asyncio.gather(*(cockpit.ask(QUESTION, 10) for _ in range(5)))
    clock.advance(9_000)
    await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 1
    clock.advance(2_000)
    await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 2
    cockpit.forget()
    await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 3


@pytest.mark.req("SL-03")
async def test_a_slow_cluster_is_polled_less_often() -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, FINE, takes_ms=3_000)
    cockpit = asking(commands, clock)
    await cockpit.ask(QUESTION, 10)
    clock.advance(50_000)
    await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 1


@pytest.mark.req("SL-04")
async def test_a_temporary_fault_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PAUSE_SECONDS", 0)
    clock = VirtualClock()
    commands = ScriptedCommands(clock, Printed("", "squeue: error: Zero Bytes were transmitted or received", 1), FINE)
    assert (await asking(commands, clock).ask(QUESTION, 10)).stdout == "fine"
    assert len(commands.asked) == 2


@pytest.mark.req("SL-04", "TR-04")
async def test_a_failed_command_is_not_repeated_for_a_while() -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(
        clock, Printed("", "squeue: error: Unable to contact slurm controller (connect failure)", 1), FINE
    )
    cockpit = asking(commands, clock)
    for _ in range(3):
        with pytest.raises(Unreachable, match="Slurm does not answer squeue: Unable to contact slurm controller"):
            await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 1
    clock.advance(3_000)
    assert (await cockpit.ask(QUESTION, 10)).stdout == "fine"


NOT_ASKED = {
    "munge": """squeue: error: If munged is up, restart with --num-threads=10
squeue: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file (Did you start munged?)
squeue: error: slurm_send_node_msg: auth_g_create: REQUEST_JOB_INFO has authentication error
slurm_load_jobs error: Protocol authentication error
""",
    "the controller's munge": "slurm_load_jobs error: Protocol authentication error\n",
    "the configuration": """scontrol: error: _parse_next_key: Parsing error at unrecognized key: NonsenseKey
scontrol: fatal: Unable to process configuration file
""",
    "a host name": """squeue: error: slurm_set_addr: Unable to resolve "head"
squeue: error: Unable to establish control machine address
""",
}
"""What squeue and scontrol of 22.05 print when they cannot ask the controller."""


@pytest.mark.req("SL-04", "TR-04")
@pytest.mark.parametrize("cause", NOT_ASKED)
async def test_a_command_that_cannot_ask_the_controller_is_no_refusal(cause: str) -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, Printed("", NOT_ASKED[cause], 1))
    with pytest.raises(Unreachable, match="Slurm does not answer squeue: ") as failed:
        await asking(commands, clock).ask(QUESTION, 10)
    assert not isinstance(failed.value, AnswerLost), "nothing was sent"
    assert cause != "munge" or str(failed.value).endswith("(Did you start munged?)")


async def test_a_refusal_is_reported_with_slurms_message() -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, Printed("", "scontrol: error: Invalid job id specified\n", 1))
    with pytest.raises(Failed, match=r"^Invalid job id specified$"):
        await asking(commands, clock).ask(("scontrol", "show"), 1)


async def test_the_separator_differs_each_time() -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, FINE)
    cockpit = asking(commands, clock)
    first = await cockpit.ask(("squeue", f"-O Name:{SEPARATOR}"), 0)
    clock.advance(1)
    second = await cockpit.ask(("squeue", f"-O Name:{SEPARATOR}"), 0)
    assert first.separator != second.separator
    assert commands.asked[0][1] == f"-O Name:{first.separator}"


@pytest.mark.req("SL-03")
async def test_cockpits_share_their_cached_answers(tmp_path: Path) -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, FINE)
    caches = [answer_cache_for("a cluster", tmp_path / "cockpit" / "own", clock.now) for _ in range(10)]
    assert (tmp_path / "cockpit").stat().st_mode & 0o777 == 0o700, "where the engine's socket is to lie too"
    (folder,) = (tmp_path / "cockpit" / "own").iterdir()
    cockpits = [asking(commands, clock, each) for each in caches]
    answers = await asyncio.gather(*(each.ask(QUESTION, 10) for each in cockpits))
    assert {each.stdout for each in answers} == {"fine"}
    assert len(commands.asked) == 1
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_a_cache_folder_that_cannot_be_used_is_ignored(tmp_path: Path) -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, FINE)
    (tmp_path / "file").touch()
    broken = UserAnswerCache(tmp_path / "file", clock.now)
    assert (await asking(commands, clock, broken).ask(QUESTION, 10)).stdout == "fine"
    assert answer_cache_for("x", tmp_path / "file", clock.now) is None


@pytest.fixture
def for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that root made for all users of the machine."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a folder for all users")
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(answer_cache, "FOR_ALL", folder)
    return folder


def of_user(number: int, folder: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> AnswerCache:
    """The cache of a cockpit that this user runs, without a folder of their own."""
    (folder.parent / "file").touch()
    monkeypatch.setattr(os, "geteuid", lambda: number)
    found = answer_cache_for(
        "x", folder.parent / "file", clock.now, shared="cluster host 6817", trusted=frozenset({0, 64030})
    )
    assert found is not None
    return found


@pytest.mark.req("SL-03")
async def test_one_publisher_runs_the_commands_for_all_users(for_all: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock()
    root, commands = ScriptedCommands(clock, FINE), ScriptedCommands(clock, FINE)
    publisher = asking(root, clock, of_user(0, for_all, clock, monkeypatch))
    users = [asking(commands, clock, of_user(uid, for_all, clock, monkeypatch)) for uid in range(1001, 1008)]
    for _ in range(9):
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        await publisher.ask(QUESTION, 10)
        clock.advance(10_000)
        monkeypatch.setattr(os, "geteuid", lambda: 1001)
        assert [(await each.ask(QUESTION, 10)).stdout for each in users] == ["fine"] * 7
    assert (len(root.asked), commands.asked) == (9, [])
    clock.advance(60_000)
    await users[0].ask(QUESTION, 10)
    assert len(commands.asked) == 1, "whose asker is gone asks by itself"


def tamper(for_all: Path, how: str) -> None:
    """Change who may have written the one answer that is there."""
    (folder,) = for_all.iterdir()
    (file,) = (each for each in folder.iterdir() if not each.suffix)
    if how == "another's file":
        os.chown(file, 1005, 1005)
    elif how == "writable by others":
        file.chmod(0o666)
    elif how == "another's folder":
        os.chown(folder, 1005, 1005)
    elif how == "open folder":
        folder.chmod(0o1777)
    else:
        file.rename(folder / "elsewhere")
        file.symlink_to(folder / "elsewhere")


@pytest.mark.req("SL-03", "TR-05")
@pytest.mark.parametrize("how", ["another's file", "writable by others", "another's folder", "a link", "open folder"])
async def test_cached_answers_of_untrusted_users_are_ignored(
    for_all: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    clock = VirtualClock()
    await asking(
        ScriptedCommands(clock, Printed("a lie", "", 0, verified=True)), clock, of_user(0, for_all, clock, monkeypatch)
    ).ask(QUESTION, 10)
    tamper(for_all, how)
    commands = ScriptedCommands(clock, FINE)
    user = asking(commands, clock, of_user(1001, for_all, clock, monkeypatch))
    assert (await user.ask(QUESTION, 10)).stdout == "fine"


@pytest.mark.req("SL-03")
@pytest.mark.parametrize(("mode", "is_shared"), [(0o755, True), (0o1777, True), (0o777, False)])
def test_answers_are_shared_through_a_folder_to_which_others_can_only_add(
    for_all: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_shared: bool
) -> None:
    for_all.chmod(mode)
    own = for_all.parent / "own"
    found = answer_cache_for("x", own, VirtualClock().now, shared="cluster host 6817", trusted=frozenset({0}))
    assert isinstance(found, SharedAnswerCache) is is_shared
    assert isinstance(found, UserAnswerCache) is not is_shared


@pytest.mark.req("SL-03")
async def test_a_change_outdates_cached_answers(tmp_path: Path) -> None:
    """The cache's answer is of before the act."""
    clock = VirtualClock(1_000_000)
    commands = ScriptedCommands(clock, FINE)
    cockpit = asking(commands, clock, answer_cache_for("x", tmp_path / "own", clock.now))
    await cockpit.ask(QUESTION, 10)
    clock.advance(1)
    cockpit.forget()
    await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 2


@pytest.mark.req("SL-03", "SL-20")
async def test_an_action_outdates_the_cached_answers_of_every_cockpit_of_its_user(tmp_path: Path) -> None:
    """Also those that the folder for all has, which other users go on believing."""
    clock = VirtualClock()
    commands = ScriptedCommands(clock, FINE, takes_ms=1)
    shared, ann, bob = (tmp_path / name for name in ("shared", "ann", "bob"))
    for folder in (shared, ann, bob):
        folder.mkdir(mode=0o755)
    trusted = frozenset({os.geteuid()})

    def of(user: Path) -> SharedAnswerCache:
        return SharedAnswerCache(shared, trusted, UserAnswerCache(user, clock.now), clock.now)

    acting, watching, other = (asking(commands, clock, of(user)) for user in (ann, ann, bob))
    for each in (acting, watching, other):
        await each.ask(QUESTION, 10)
        await each.ask(("sacctmgr", "list"), 10)
    assert len(commands.asked) == 2
    clock.advance(1)
    acting.forget(answers.JOBS_REPORTED_BY)
    clock.advance(1)
    for each in (watching, acting, asking(commands, clock, of(ann)), other):
        await each.ask(QUESTION, 10)
        await each.ask(("sacctmgr", "list"), 10)
    assert commands.asked[2:] == [QUESTION], "once anew, and only what the act can have changed"


@pytest.mark.req("SL-20")
async def test_an_answer_requested_before_an_action_is_not_cached() -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(
        clock, Printed("before", "", 0, verified=True), Printed("after", "", 0, verified=True), takes_ms=5
    )
    cockpit = asking(commands, clock)
    async with asyncio.TaskGroup() as tasks:
        under_way = tasks.create_task(cockpit.ask(QUESTION, 10))
        await asyncio.sleep(0)
        cockpit.forget()
    assert under_way.result().stdout == "before"
    assert (await cockpit.ask(QUESTION, 10)).stdout == "after"


@pytest.mark.req("SL-20")
async def test_actions_use_a_fresh_answer() -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(
        clock, Printed("before", "", 0, verified=True), Printed("after", "", 0, verified=True), takes_ms=5_000
    )
    cockpit = asking(commands, clock)
    assert (await cockpit.ask(QUESTION, 10)).stdout == "before"
    assert (await cockpit.ask_now(QUESTION)).stdout == "after"


@pytest.mark.req("SL-03")
async def test_a_clock_that_was_set_back_outdates_no_answer(tmp_path: Path) -> None:
    clock = VirtualClock()
    commands = ScriptedCommands(clock, FINE)
    (tmp_path / "squeue.changed").write_text(str(clock.now() + 3_600_000))
    await asking(commands, clock, UserAnswerCache(tmp_path, clock.now)).ask(QUESTION, 10)
    await asking(commands, clock, UserAnswerCache(tmp_path, clock.now)).ask(QUESTION, 10)
    assert len(commands.asked) == 1


@pytest.mark.req("SL-01", "SL-03")
async def test_an_answer_of_slurmrestd_is_as_complete_for_the_cockpit_that_shares_it(tmp_path: Path) -> None:
    clock = VirtualClock()
    answer = Printed("", "", 0, verified=True, records=({"JobID": "1"},))
    for commands in (ScriptedCommands(clock, answer), ScriptedCommands(clock)):
        shared = await asking(commands, clock, UserAnswerCache(tmp_path, clock.now)).ask(QUESTION, 10)
        assert (shared.verified, shared.records) == (True, answer.records)
        assert shared.settings() == {"JobID": "1"}
    assert not commands.asked
