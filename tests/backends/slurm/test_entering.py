"""The commands that open a shell in a running job, or beside the files of a failed one."""

from __future__ import annotations

import shlex

import pytest

from cockpit.backends.slurm import entering
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.errors import RequestRefused
from cockpit.model.asking import ShellRequest
from cockpit.model.job import Job
from cockpit.model.refusal import RefusalKind
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SL-22")
RUNS = {"State": "RUNNING", "NodeList": "n[1-2]", "NumNodes": "2", "StartTime": "2026-11-21T08:00:00"}
COPIED = "cockpit:copied rc=3 folder=/data/left"
PYXIS = "cockpit:contained rc=3 node=n2 with=pyxis kept=cockpit-7 image=library/python"
APPTAINER = "cockpit:contained rc=3 node=n2 with=apptainer kept=/data/.overlay image=docker://python"


def a_job(**fields: str) -> Job:
    return Listed(a_record(**{"JobID": "7", **fields})).job


def entered(job: Job, folder: str = "/home/ann", **request: object) -> str:
    return shlex.join(entering.command(job, folder, ShellRequest(job=7, **request)))


def test_a_shell_runs_on_the_node_of_its_rank_in_the_jobs_folder() -> None:
    srun = "srun --overlap --jobid=7 --nodes=1 --ntasks=1"
    assert entered(a_job(**RUNS)) == f"{srun} --nodelist=n1 --chdir=/home/ann /bin/bash -l"
    assert entered(a_job(**RUNS), "", rank=1, terminal=True, command=("top",)) == f"{srun} --nodelist=n2 --pty top"


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_the_job_does_not_have_is_refused(rank: int) -> None:
    with pytest.raises(RequestRefused, match="Job 7 has nodes 0 to 1, in the order of its list") as refused:
        entered(a_job(**RUNS), rank=rank)
    assert refused.value.refusal.kind is RefusalKind.NOT_FOUND


@pytest.mark.parametrize("state", ["PENDING", "SUSPENDED", "FAILED"])
def test_only_a_running_or_held_job_can_be_entered(state: str) -> None:
    with pytest.raises(RequestRefused, match="only a running job can be entered"):
        entered(a_job(**RUNS | {"State": state, "EndTime": "2026-11-21T09:00:00"}))
    held = a_job(**RUNS, Comment="cockpit:held rc=3 until=1795248117")
    assert "--jobid=7" in entered(held)


SIZE = "--nodes=1 --ntasks=1 --cpus-per-task=2 --mem=1024M"
WITHIN = "apptainer exec --overlay /data/.overlay docker://python"
AMOUNTS = {"tres-alloc": "cpu=2,mem=1G,node=1,billing=2", "NumCPUs": "2", "Name": "train"}


@pytest.mark.parametrize(
    ("fields", "comment", "line"),
    [
        (
            {"Partition": "gpu,batch", "Account": "nlp"},
            COPIED,
            f"srun --job-name=train-look {SIZE} --partition=gpu,batch --account=nlp --chdir=/data/left /bin/bash -l",
        ),
        (
            {"Partition": "", "Account": ""},
            COPIED,
            f"srun --job-name=train-look {SIZE} --chdir=/data/left /bin/bash -l",
        ),
        (
            {"Partition": "", "Account": ""},
            PYXIS,
            f"srun --job-name=train-look {SIZE} --nodelist=n2 --container-name=cockpit-7 /bin/bash -l",
        ),
        (
            {"Partition": "", "Account": ""},
            APPTAINER,
            f"srun --job-name=train-look {SIZE} --nodelist=n2 {WITHIN} /bin/bash -l",
        ),
    ],
)
def test_the_files_of_a_failed_job_are_looked_at_in_a_new_job_of_the_same_size(
    fields: dict[str, str], comment: str, line: str
) -> None:
    job = a_job(**AMOUNTS | fields)
    assert shlex.join(entering.command_in_new_job(job, comment, ShellRequest(job=7))) == line
    words = entering.command_in_new_job(job, comment, ShellRequest(job=7, terminal=True, command=("ls", "a b")))
    assert ("--pty" in words, words[-2:]) == (True, ("ls", "a b"))


def test_a_new_job_for_a_failed_one_has_its_cards() -> None:
    cards = {"tres-alloc": "cpu=2,mem=1G,node=1,billing=2,gres/gpu=4", "tres-per-node": "gres/gpu:a100:4"}
    words = entering.command_in_new_job(a_job(**AMOUNTS | cards), COPIED, ShellRequest(job=7))
    assert "--gres=gpu:a100:4" in words


def test_a_failed_job_whose_files_are_unknown_is_refused() -> None:
    with pytest.raises(RequestRefused, match="Job 7 is error, and Slurm no longer reports where its remaining files"):
        entering.command_in_new_job(a_job(**RUNS | {"State": "FAILED"}), "", ShellRequest(job=7))
