"""Where a real Slurm writes what jobs print, by every pattern of sbatch and srun, is where cockpit reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.rows import past_row
from cockpit.model.asking import LogRequest, LogSearch
from cockpit.model.ids import JobId, NodeName, task_id
from cockpit.model.job import ENDED
from tests.real.slurm.conftest import eventually
from tests.real.slurm.real_cluster import ADA

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.model.jobrow import JobRow
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]

EVERY = "%A-%a-%j-%J-%N-%n-%s-%t-%u-%x-%4j-%12A-%3a-%02t-%3s-%4u-%9x-%%-%%%j-%q"
SMALL = ("--mem=10", "--time=1", "--partition=debug")


def written(path: str) -> str:
    """What is in the file, as everybody reads it."""
    return Path(path).read_text()


async def ended(ada: SlurmBackend, *jobs: JobId) -> None:
    async def all_ended() -> bool:
        return all([(await ada.job(job)).job.state in ENDED for job in jobs])

    await eventually(all_ended, bool)


@pytest.mark.req("SL-10")
async def test_every_job_is_read_from_the_file_that_slurm_made(emptied: RealCluster, ada: SlurmBackend) -> None:
    """The page, the JSON and the logs name and read one file: of arrays, patterns, heterogeneous jobs and steps."""
    folder = emptied.home(ADA) / "logs"
    emptied.as_person(ADA, "mkdir", str(folder))
    within = f"--chdir={folder}"
    echo = "echo $SLURM_JOB_ID $SLURM_ARRAY_TASK_ID"

    def submit(*options: str, run: str = echo) -> JobId:
        return JobId(emptied.submit(ADA, *options, run=run))

    array = submit(within, *SMALL, "--array=3-4")
    plain = submit(within, *SMALL)
    named = submit(within, *SMALL, "--job-name=a b", f"--output=one-{EVERY}", "--error=err-%j")
    tasks = submit(within, *SMALL, "--array=7", f"--output={folder}/task-{EVERY}")
    escaped = submit(within, *SMALL, "--output=\\%j-%j")
    stepped = submit(
        within, *SMALL, "--ntasks=2", run="srun --overlap -o st-%A-%J-%2s-%n-%t-%x-%N echo in a step; srun -n1 echo out"
    )
    await ended(ada, plain, named, escaped, stepped, *(task_id(array, index) for index in (3, 4)), task_id(tasks, 7))
    leader = submit(  # by itself: the plan for its components keeps other jobs of 22.05 waiting
        *(within, "--mem=10", "--time=1", "--output=het-%A-%a-%j"),
        *(":", "--account=vision", "--mem=10", "--output=other-%j"),
    )
    single = [plain, named, escaped, stepped, leader, JobId(leader + 1)]
    await ended(ada, leader)

    async def read(job: JobId, **more: object) -> tuple[str, str]:
        """What it wrote, and where the page says so."""
        return (await ada.logs(LogRequest(job=job, **more))).data.decode(), (await ada.job(job)).row.output

    for job in (task_id(array, 3), task_id(array, 4), task_id(tasks, 7), *single):
        text, path = await read(job)
        assert path == (await ada.job(job)).job.spec.output
        assert written(path) == text != ""
        assert path.startswith(f"{folder}/")
    assert (await read(task_id(array, 4)))[0].split()[1] == "4"
    assert (await read(JobId(leader + 1)))[1] == (await read(leader))[1] == f"{folder}/het-{leader}-4294967294-{leader}"

    async def in_accounting() -> dict[JobId, JobRow]:
        return {each.job.id: past_row(each) for each in await ada._reading.sacct.ended("now-1days")}

    # slurmdbd may learn of a job's end before it has the job's submit line
    past = await eventually(in_accounting, lambda rows: all(job in rows and rows[job].output for job in single))
    for job in (task_id(array, 3), task_id(tasks, 7), *single):
        listed, path = past[job].output, (await ada.job(job)).row.output
        assert listed.replace("%N", (await ada._reading.host_of(NodeName("n4"))).partition(".")[0]) == path
    steps = (await ada.job(stepped)).steps
    assert [step.output != "" for step in steps] == [False, True, False]
    for rank in (0, 1):
        assert written(steps[1].output.replace("%t", str(rank))) == "in a step\n"
        assert (await read(stepped, step="0", rank=rank))[0] == "in a step\n"
    assert (await read(stepped, step="1"))[0] == "out\n"


@pytest.mark.req("UI-14")
async def test_a_large_log_is_searched_on_the_machine_that_has_it(emptied: RealCluster, ada: SlurmBackend) -> None:
    folder = emptied.home(ADA) / "logs"
    emptied.as_person(ADA, "mkdir", "-p", str(folder))
    run = "seq -f 'step %.0f of a long training' 1 3000000; echo needle in the haystack"
    job = JobId(emptied.submit(ADA, f"--chdir={folder}", *SMALL, "--output=large", run=run))
    await ended(ada, job)
    size = (await ada.logs(LogRequest(job=job, offset=-1, limit=1))).size
    assert size > 80_000_000
    found, counted = LogSearch(job=job, text="NEEDLE"), LogSearch(job=job)
    assert (await ada.search_log(found)).found == ((size - len("needle in the haystack\n"), 6),)
    assert (await ada.search_log(counted)).count == 3_000_001
    pattern = LogSearch(job=job, text=r"^step 1\d{6} ", pattern=True, most=0)
    assert (await ada.search_log(pattern)).count == 1_000_000
    (last,) = (await ada.search_log(replace(found, text="step 2999999 ", backward=True))).found
    chunk = await ada.logs(LogRequest(job=job, offset=last[0], limit=last[1]))
    assert chunk.data == b"step 2999999 "
