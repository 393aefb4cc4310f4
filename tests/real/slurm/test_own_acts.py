"""What one user does is seen at once by all cockpits of this user, though answers are shared for seconds."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Manners, Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.shelf import FolderShelf
from cockpit.model.asking import WantedLimit
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.reasons import Held
from cockpit.runtime.clock import SystemClock
from tests.real.slurm.conftest import AsPerson
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


def a_process(cluster: RealCluster, folder: Path, person: str = ADA) -> SlurmBackend:
    """One cockpit process with the default intervals, which shares its answers with the user's other ones."""
    clock = SystemClock()
    commands = AsPerson(cluster.env, person, cluster.home(person))
    answers = Answers(commands, clock.now, Random(1), FolderShelf(folder, clock.now))
    return SlurmBackend("cockpit", commands, Reading(answers, clock.now, Manners()), clock, person)


@pytest.mark.req("SL-20", "SL-03")
async def test_acts_of_one_command_after_the_other_are_seen_and_decide(emptied: RealCluster, tmp_path: Path) -> None:
    """Each command line is a process of its own; a screen is open all the time."""
    job = JobId(emptied.submit(ADA, "--begin=now+1hour", run="true"))
    screen = a_process(emptied, tmp_path)

    async def reasons() -> set[bool]:
        """Whether it is held, by the screen and by a command that begins now."""
        shown = [await each.jobs() for each in (screen, a_process(emptied, tmp_path))]
        return {isinstance(row.reason, Held) for rows in shown for row in rows}

    assert await reasons() == {False}
    for held in (True, False, True, False):
        acting = a_process(emptied, tmp_path)
        await (acting.hold(job) if held else acting.release(job))
        assert emptied.ask("squeue", "-h", "-o", "%r").startswith("JobHeldUser") is held
        assert await reasons() == {held}
    await a_process(emptied, tmp_path).set_time_limit(job, WantedLimit(600))
    assert {row.time_limit_seconds for row in await screen.jobs()} == {600}
    await a_process(emptied, tmp_path).cancel(job)
    assert await screen.jobs() == []
    assert (await screen.job(job)).job.state is JobState.STOPPED


@pytest.mark.req("SL-20")
async def test_an_act_decides_by_what_another_program_did_a_moment_ago(emptied: RealCluster, tmp_path: Path) -> None:
    job = JobId(emptied.submit(ADA, "--begin=now+1hour", run="true"))
    cockpit = a_process(emptied, tmp_path)
    assert len(await cockpit.jobs()) == 1
    emptied.as_person(ADA, "scontrol", "hold", str(job))
    await cockpit.release(job)
    assert not (emptied.ask("squeue", "-h", "-o", "%r") or "").startswith("JobHeldUser")
