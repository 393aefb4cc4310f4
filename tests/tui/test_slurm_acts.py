"""Acts on a Slurm cluster: the command is looked at before it is run. The cluster is a recording of a real one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.runtime.clock import VirtualClock
from cockpit.tui.opening import Session
from tests.backends.slurm.paper_cluster import Changeable
from tests.tui.driver import at_the_cockpit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.tui.driver import Cockpit


@asynccontextmanager
async def cluster(user: str = "root") -> AsyncIterator[Cockpit]:
    commands = Changeable("22.05")
    clock = VirtualClock(commands.recorded_at)
    reading = Reading(Answers(commands, clock.now, Random(1)), clock.now)
    backend = SlurmBackend("recorded", commands, reading, clock, user)

    def read(source: str, text: str, folder: str):
        return read_jobs(source, text, folder, defaults=Defaults(time_limit_seconds=3600, home_folder="/home/alice"))

    session = Session(backend=backend, now=clock.now, user=user, read_jobs=read, close=backend.close)
    async with at_the_cockpit(session) as cockpit:
        yield cockpit


@pytest.mark.req("SL-20", "SL-21")
async def test_a_signal_and_fields_are_shown_as_the_commands_they_are() -> None:
    async with cluster() as cockpit:
        await cockpit.sees("timesout").press("colon").type("2").press("enter").stands_on("timesout")
        await cockpit.press("colon").type("signal USR1").press("enter").sees("scancel --full --signal=USR1")
        await cockpit.press("n").press("colon").type("update Features=x 'Comment=a b'").press("enter")
        await cockpit.sees("scontrol update JobId=", "Features=x 'Comment=a b'")


@pytest.mark.req("SL-20", "SL-21")
async def test_a_batch_script_is_shown_before_it_is_submitted(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=2\nsrun hostname\n")
    async with cluster() as cockpit:
        await cockpit.sees("timesout").press("colon").type(f"submit {script}").press("enter")
        await cockpit.sees("sbatch --parsable", "#SBATCH --nodes=2", "srun hostname")


@pytest.mark.req("SL-20", "SL-21")
async def test_a_wrapped_command_is_refused_with_the_way_to_submit_it() -> None:
    async with cluster() as cockpit:
        await cockpit.sees("timesout").press("colon").type("submit --wrap true").press("enter")
        await cockpit.sees("works in the shell alone")


@pytest.mark.req("SL-23")
async def test_a_job_without_remaining_files_shows_a_message() -> None:
    async with cluster() as cockpit:
        await cockpit.sees("timesout").press("colon").type("4").press("enter").stands_on("victim")
        await cockpit.press("colon").type("open-shell").press("enter").sees("only a running job can be entered")


@pytest.mark.req("SL-21")
@pytest.mark.parametrize("folder", ["plain", "with a space"])
async def test_the_form_shows_the_script_that_will_be_run(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / folder)
    async with cluster() as cockpit:
        await (
            cockpit.sees("timesout")
            .press("n")
            .sees("New job")
            .sees("What the cluster is handed", "sbatch --parsable", "#!/bin/sh")
        )


@pytest.mark.req("UI-06", "SL-11")
async def test_no_quota_tree_is_offered_where_slurm_schedules() -> None:
    async with cluster() as cockpit:
        await cockpit.sees("timesout").press("6").sees("partition debug").misses("quota apply")


@pytest.mark.req("UI-20", "SL-20")
async def test_a_key_explains_why_slurm_cannot_do_it_before_any_question() -> None:
    async with cluster() as cockpit:
        await cockpit.sees("timesout").press("colon").type("4").press("enter").stands_on("victim")
        await cockpit.press("colon").type("delete").press("enter").sees("Slurm's accounting keeps jobs that have ended")
        await cockpit.misses("Delete job")
        await cockpit.press("2").press("C").sees("A Slurm cluster has no staged copies.")
