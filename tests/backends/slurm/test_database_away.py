"""An accounting database that does not answer: one short wait for all that asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from cockpit.backends.slurm.acting import Acts
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import AnswerLost, Printed
from cockpit.backends.slurm.wire.database import AWAY_MS, PROBE
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.errors import Unreachable
from cockpit.runtime.clock import VirtualClock

pytestmark = [pytest.mark.req("SL-04"), pytest.mark.req("SL-15")]
SACCT = ("sacct", "--allusers")


class Silent(RecordedCommands):
    """The recorded cluster whose database answers nothing, until `answering` is set."""

    def __init__(self) -> None:
        super().__init__("22.05")
        self.asked: list[tuple[str, ...]] = []
        self.answering = asyncio.Event()
        self.answers_probe = False

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        self.asked.append(tuple(argv))
        if tuple(argv) == PROBE:
            if self.answers_probe:
                self.answering.set()
                return Printed("cock\n", "", 0)
            raise AnswerLost("sacctmgr has not answered")
        if argv[0] in {"sacct", "sacctmgr"}:
            await self.answering.wait()
        if argv[-1] == "format=adminlevel":
            return Printed("Administrator\n", "", 0)
        return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)


@pytest.fixture
def commands() -> Silent:
    return Silent()


@pytest.fixture
def clock(commands: Silent) -> VirtualClock:
    return VirtualClock(commands.recorded_at)


@pytest.fixture
def answers(commands: Silent, clock: VirtualClock) -> Answers:
    made = Answers(commands, clock.now, Random(1))
    made.database.quiet_seconds = 0.0
    return made


async def test_a_page_comes_without_accounting_after_one_wait(
    commands: Silent, clock: VirtualClock, answers: Answers
) -> None:
    backend = SlurmBackend("c", commands, Reading(answers, clock.now), clock, "ann")
    assert await backend.jobs(ended=True)
    assert (await backend.accounts()).missing
    assert commands.asked.count(PROBE) == 1, "all commands for the database share one wait"
    said = " ".join((await backend.status()).trouble)
    assert "sacct is not available at the moment: the accounting database (slurmdbd) has not answered" in said


async def test_a_database_that_answers_slowly_is_waited_for(commands: Silent, answers: Answers) -> None:
    commands.answers_probe = True
    printed = await answers.ask(("sacctmgr", "-P", "list", "qos"), 1.0)
    assert printed.stdout
    assert commands.asked.count(PROBE) == 1


async def test_it_is_asked_again_after_a_while(commands: Silent, clock: VirtualClock, answers: Answers) -> None:
    question = ("sacctmgr", "-P", "list", "qos")
    for _ in range(2):
        with pytest.raises(Unreachable, match="has not answered within"):
            await answers.ask(question, 1.0)
    assert commands.asked.count(question) == 1
    commands.answering.set()
    with pytest.raises(Unreachable):
        await answers.ask_now(question)
    clock.advance(AWAY_MS)
    assert (await answers.ask(question, 1.0)).stdout


async def test_an_administrator_is_known_as_one_once_it_is_back(
    commands: Silent, clock: VirtualClock, answers: Answers
) -> None:
    acts = Acts(commands, Reading(answers, clock.now), "ann")
    assert not await acts.is_admin()
    commands.answering.set()
    clock.advance(AWAY_MS)
    assert await acts.is_admin()


async def test_commands_that_ask_the_controller_are_not_affected(commands: Silent, answers: Answers) -> None:
    with pytest.raises(Unreachable):
        await answers.ask(("sacctmgr", "-P", "list", "qos"), 1.0)
    assert (await answers.ask(("scontrol", "show", "config"), 1.0)).stdout
