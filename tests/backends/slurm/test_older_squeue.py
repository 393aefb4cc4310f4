"""A squeue and a sacct that do not know all fields that newer ones have."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Failed, Printed
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.runtime.clock import VirtualClock


class OlderCommands(RecordedCommands):
    """A recorded cluster whose squeue refuses some fields, one at a time, as squeue does."""

    def __init__(self, refused: Sequence[str]) -> None:
        super().__init__("22.05")
        self.refused = refused
        self.named = ""
        self.asked: list[str] = []

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        if argv[0] == "squeue":
            words = " ".join(argv)
            self.asked.append(words)
            for field in self.refused:
                if f"{field}:" in words:
                    return Printed("", f"squeue: error: Invalid job format specification: {self.named or field}\n", 1)
        return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)


def reading_over(commands: RecordedCommands) -> Reading:
    clock = VirtualClock(commands.recorded_at)
    return Reading(Answers(commands, clock.now, Random(1)), clock.now)


@pytest.mark.req("SL-02")
async def test_jobs_are_listed_without_the_fields_that_an_older_squeue_does_not_know() -> None:
    commands = OlderCommands(["AccrueTime", "tres-per-task"])
    reading = reading_over(commands)
    listed = await reading.jobs()
    newest = await reading_over(OlderCommands([])).jobs()
    assert [each.id for each in listed] == [each.id for each in newest]
    assert all("AccrueTime" not in each.fields for each in listed)
    assert {each.fields["UserName"] for each in listed} >= {"alice", "bob"}
    assert len(commands.asked) == 3, "each unknown field is refused once"
    await reading.jobs_now(listed[0].id)
    assert len(commands.asked) == 4, "a field that was refused is not asked for again"


@pytest.mark.req("SL-02")
async def test_a_squeue_that_refuses_a_field_which_was_not_asked_for_has_failed() -> None:
    commands = OlderCommands(["JobID"])
    commands.named = "Dragons"
    with pytest.raises(Failed, match="Dragons"):
        await reading_over(commands).jobs()
    assert len(commands.asked) == 1


class OlderAccounting(RecordedCommands):
    """A recorded cluster whose sacct refuses some fields, one at a time, as sacct does."""

    def __init__(self, *refused: str) -> None:
        super().__init__("22.05")
        self.refused = refused
        self.questions = 0

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        if argv[0] == "sacct":
            self.questions += 1
            for field in self.refused:
                if field in argv[-1]:
                    return Printed("", f'sacct: error: Invalid field requested: "{field}"\n', 1)
        return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)


@pytest.mark.req("SL-15", "SL-02")
async def test_a_past_job_is_found_without_the_fields_that_an_older_sacct_does_not_know() -> None:
    commands = OlderAccounting("StdOut", "StdErr")
    reading = reading_over(commands)
    number = str((await reading.sacct.ended("2020-01-01"))[0].job.id)
    commands.questions = 0  # the list of ended jobs has met StdOut already
    past, _ = await reading.sacct.accounted(number)
    assert past is not None
    newest, _ = await reading_over(RecordedCommands("22.05")).sacct.accounted(number)
    assert newest is not None
    assert (past.job.id, past.job.exit, past.used) == (newest.job.id, newest.job.exit, newest.used)
    assert commands.questions == 2, "each unknown field is refused once"
    assert await reading.sacct.accounted("424242") == (None, ())
    assert commands.questions == 3, "a field that was refused is not asked for again"
    commands.refused = ("JobID",)
    assert await reading_over(commands).sacct.accounted(number) == (None, ())


class OlderSacct(RecordedCommands):
    """A recorded cluster whose sacct does not know the fields of newer ones."""

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        unknown = next((name for name in ("SubmitLine", "StdOut") if argv[0] == "sacct" and name in " ".join(argv)), "")
        if unknown:
            return Printed("", f'sacct: fatal: Invalid field requested: "{unknown}"\n', 1)
        return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)


@pytest.mark.req("SL-02", "SL-15")
async def test_ended_jobs_are_listed_without_the_fields_that_an_older_sacct_does_not_know() -> None:
    commands = OlderSacct("22.05")
    clock = VirtualClock(commands.recorded_at)
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now)
    newest = await reading_over(OlderCommands([])).sacct.ended("now-1days")
    assert [each.job.id for each in await reading.sacct.ended("now-1days")] == [each.job.id for each in newest] != []
    assert reading.trouble == {}
