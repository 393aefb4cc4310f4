"""What one user does is seen at once by all cockpits of this user, though answers are shared for seconds."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answer_cache import UserAnswerCache
from cockpit.backends.slurm.wire.answers import Answers, PollIntervals
from cockpit.errors import RequestRefused
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.specfile import read_changes, spec_as_yaml
from cockpit.model.asking import WantedLimit
from cockpit.model.directives import SubmitScript
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.reasons import Held
from cockpit.runtime.clock import SystemClock
from tests.real.slurm.conftest import AsPerson, eventually
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]


def a_process(cluster: RealCluster, folder: Path, person: str = ADA) -> SlurmBackend:
    """One cockpit process with the default intervals, which shares its answers with the user's other ones."""
    clock = SystemClock()
    commands = AsPerson(cluster.env, person, cluster.home(person))
    answers = Answers(commands, clock.now, Random(1), UserAnswerCache(folder, clock.now))
    return SlurmBackend("cockpit", commands, Reading(answers, clock.now, PollIntervals()), clock, person)


@pytest.mark.req("SL-20", "SL-03")
async def test_actions_of_successive_commands_are_seen_by_the_next(emptied: RealCluster, tmp_path: Path) -> None:
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
async def test_an_action_sees_the_recent_change_of_another_program(emptied: RealCluster, tmp_path: Path) -> None:
    job = JobId(emptied.submit(ADA, "--begin=now+1hour", run="true"))
    cockpit = a_process(emptied, tmp_path)
    assert len(await cockpit.jobs()) == 1
    emptied.as_person(ADA, "scontrol", "hold", str(job))
    await cockpit.release(job)
    assert not (emptied.ask("squeue", "-h", "-o", "%r") or "").startswith("JobHeldUser")


@pytest.mark.req("SL-20")
async def test_a_script_is_submitted_as_sbatch_submits_it(emptied: RealCluster, ada: SlurmBackend) -> None:
    """By its file's name, with arguments; the same file by sbatch itself has the same record."""
    file = emptied.home(ADA) / "train.sbatch"
    file.write_text('#!/bin/sh\n#SBATCH --account=vision --output=%x-%j.txt --begin=now+1hour\necho "$@"\n')
    words = (str(file), "--epochs", "3 4")
    ours = await ada.direct(SubmitScript(file.read_text(), file=words[0], arguments=words[1:]))
    theirs = int(emptied.as_person(ADA, "sbatch", "--parsable", *words))
    wrapped = await ada.direct(SubmitScript("", ("--account=vision", "--hold"), wrap="echo 'a b'"))

    def record(job: int | None) -> list[str]:
        return (emptied.ask("squeue", "-h", "-j", str(job), "-O", "Name:|,Command:|") or "").strip().split("|")

    assert record(ours) == record(theirs)
    assert record(ours)[:2] == ["train.sbatch", f"{file} --epochs 3 4"]
    assert ours is not None
    assert record(wrapped)[0] == "wrap"


@pytest.mark.req("SL-20")
async def test_a_job_is_edited_whose_script_came_on_standard_input(emptied: RealCluster, ada: SlurmBackend) -> None:
    script = "#!/bin/sh\n#SBATCH --account=vision --hold --time=5 --job-name=odd/name\ntrue\n"
    job = await ada.direct(SubmitScript(script))
    assert job is not None
    spec = (await ada.job(job)).job.spec
    read = read_changes(spec, lambda *given: read_jobs(*given, defaults=Defaults()))
    (changed,) = read("the job file", spec_as_yaml(spec).replace("5m", "7m"), "/")
    await ada.edit(job, changed)
    assert emptied.ask("squeue", "-h", "-o", "%l %j") == "7:00 odd/name\n"
    with pytest.raises(RequestRefused, match="script came on standard input"):
        await ada.submit([spec])


@pytest.mark.req("SL-20")
async def test_an_action_on_an_array_applies_to_the_tasks_it_can_apply_to(
    emptied: RealCluster, ada: SlurmBackend
) -> None:
    array = JobId(emptied.submit(ADA, "--array=1-4%1", "--partition=debug", "--mem=10", run="sleep 60"))
    await eventually(ada.jobs, lambda rows: any(row.started_at for row in rows))

    def reasons() -> set[str]:
        return set((emptied.ask("squeue", "-h", "-r", "-t", "pending", "-o", "%r") or "").split())

    await ada.hold(array)
    assert reasons() == {"JobHeldUser"}
    await ada.release(array)
    assert reasons() != {"JobHeldUser"}
