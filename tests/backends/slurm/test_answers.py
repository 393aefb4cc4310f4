"""How often a cluster is really asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from cockpit.backends.slurm.mapping.listing import SEPARATOR
from cockpit.backends.slurm.wire import answers
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Failed, Printed
from cockpit.backends.slurm.wire.shelf import FolderShelf, folder_for
from cockpit.errors import Unreachable
from cockpit.runtime.clock import VirtualClock

QUESTION = ("squeue", "-h")


class Told:
    """Commands that print what they are told to, in turn; the last one again and again."""

    name = "told"

    def __init__(self, clock: VirtualClock, *printed: Printed, takes_ms: int = 0) -> None:
        self._clock, self._printed, self._takes_ms = clock, list(printed), takes_ms
        self.asked: list[tuple[str, ...]] = []

    async def run(self, argv: Sequence[str], **_: object) -> Printed:
        self.asked.append(tuple(argv))
        self._clock.advance(self._takes_ms)
        await asyncio.sleep(0)
        return self._printed.pop(0) if len(self._printed) > 1 else self._printed[0]


FINE = Printed("fine", "", 0, verified=True)


def asking(commands: Told, clock: VirtualClock, shelf: FolderShelf | None = None) -> Answers:
    return Answers(commands, clock.now, Random(1), shelf)


@pytest.mark.req("SL-03")
async def test_a_question_is_asked_again_once_its_answer_is_old() -> None:
    clock = VirtualClock()
    commands = Told(clock, FINE)
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
async def test_a_slow_cluster_is_asked_more_seldom() -> None:
    clock = VirtualClock()
    commands = Told(clock, FINE, takes_ms=3_000)
    cockpit = asking(commands, clock)
    await cockpit.ask(QUESTION, 10)
    clock.advance(50_000)
    await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 1


@pytest.mark.req("SL-04")
async def test_a_passing_fault_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PAUSE_SECONDS", 0)
    clock = VirtualClock()
    commands = Told(clock, Printed("", "squeue: error: Zero Bytes were transmitted or received", 1), FINE)
    assert (await asking(commands, clock).ask(QUESTION, 10)).stdout == "fine"
    assert len(commands.asked) == 2


@pytest.mark.req("SL-04", "TR-04")
async def test_what_failed_is_left_alone_for_a_while() -> None:
    clock = VirtualClock()
    commands = Told(clock, Printed("", "squeue: error: Unable to contact slurm controller (connect failure)", 1), FINE)
    cockpit = asking(commands, clock)
    for _ in range(3):
        with pytest.raises(Unreachable, match="Slurm does not answer squeue: Unable to contact slurm controller"):
            await cockpit.ask(QUESTION, 10)
    assert len(commands.asked) == 1
    clock.advance(3_000)
    assert (await cockpit.ask(QUESTION, 10)).stdout == "fine"


async def test_a_no_is_told_in_slurms_words() -> None:
    clock = VirtualClock()
    commands = Told(clock, Printed("", "scontrol: error: Invalid job id specified\n", 1))
    with pytest.raises(Failed, match=r"^Invalid job id specified$"):
        await asking(commands, clock).ask(("scontrol", "show"), 1)


async def test_a_separator_is_another_each_time() -> None:
    clock = VirtualClock()
    commands = Told(clock, FINE)
    cockpit = asking(commands, clock)
    first = await cockpit.ask(("squeue", f"-O Name:{SEPARATOR}"), 0)
    clock.advance(1)
    second = await cockpit.ask(("squeue", f"-O Name:{SEPARATOR}"), 0)
    assert first.separator != second.separator
    assert commands.asked[0][1] == f"-O Name:{first.separator}"


@pytest.mark.req("SL-03")
async def test_cockpits_leave_each_other_their_answers(tmp_path: Path) -> None:
    clock = VirtualClock()
    commands = Told(clock, FINE)
    folder = folder_for("a cluster", tmp_path / "cockpit" / "own", private=True)
    assert folder is not None
    assert (tmp_path / "cockpit").stat().st_mode & 0o777 == 0o700, "where the engine's socket is to lie too"
    cockpits = [asking(commands, clock, FolderShelf(folder, clock.now)) for _ in range(10)]
    told = await asyncio.gather(*(each.ask(QUESTION, 10) for each in cockpits))
    assert {each.stdout for each in told} == {"fine"}
    assert len(commands.asked) == 1
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_a_shelf_that_cannot_be_used_is_none(tmp_path: Path) -> None:
    clock = VirtualClock()
    commands = Told(clock, FINE)
    (tmp_path / "file").touch()
    shelf = FolderShelf(tmp_path / "file", clock.now)
    assert (await asking(commands, clock, shelf).ask(QUESTION, 10)).stdout == "fine"
    assert folder_for("x", tmp_path / "file", private=True) is None
