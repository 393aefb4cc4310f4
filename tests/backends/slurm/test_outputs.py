"""Where jobs write, as Slurm names files, and what ran within them."""

from __future__ import annotations

from datetime import UTC

import pytest

from cockpit.backends.slurm.mapping import accounting, outputs, running
from cockpit.backends.slurm.mapping.jobs import Found, Listed
from cockpit.formats.foreign.sbatch_options import line_options
from tests.backends.slurm.test_values import a_record

RUNS = {"State": "RUNNING", "NodeList": "n1.site.org", "StartTime": "2026-11-21T08:00:01", "UserName": "ann"}
PLAIN = Listed(a_record(JobID="41", Name="pat", **RUNS))
TASK = Listed(a_record(JobID="44", ArrayJobID="43", ArrayTaskID="12", Name="pat", **RUNS))


@pytest.mark.parametrize(
    ("pattern", "plain", "task"),
    [
        ("%j", "41", "44"),
        ("%J", "41", "44"),
        ("%A", "41", "43"),
        ("%a", "4294967294", "12"),
        ("%x", "pat", "pat"),
        ("%u", "ann", "ann"),
        ("%N", "n1", "n1"),
        ("%n%t", "00", "00"),
        ("%s", "batch", "batch"),
        ("%5j", "00041", "00044"),
        ("%3t", "000", "000"),
        ("%%", "%", "%"),
        ("%y", "%y", "%y"),
        ("%b", "4294967294", "2"),
    ],
)
@pytest.mark.req("SL-10")
def test_every_pattern_of_sbatch_is_what_slurm_makes_of_it(pattern: str, plain: str, task: str) -> None:
    """As 22.05 names the files, but for %b, which came later."""
    for listed, word in ((PLAIN, plain), (TASK, task)):
        assert outputs.resolved(f"/out/{pattern}.log", Found(listed.job, listed), (24, 11)) == f"/out/{word}.log"
    assert outputs.resolved("/out/%b", Found(TASK.job, TASK), (22, 5, 8)) == "/out/%b"
    assert outputs.resolved("/out/\\%j", Found(TASK.job, TASK), (24, 11)) == "/out/%j"


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("sbatch -o out.%j job.sh -o its.own", "out.%j"),
        ("sbatch --mem=4G --output out.%j --requeue job.sh", "out.%j"),
        ("sbatch --requeue job.sh --output=its.own", None),
        ("sbatch -oout.%A_%a --wrap srun -o no.log", "out.%A_%a"),
        ("sbatch job.sh", None),
        ("", None),
    ],
)
@pytest.mark.req("SL-10")
def test_what_a_submission_asked_for(line: str, output: str | None) -> None:
    assert line_options(line).get("output") == output


@pytest.mark.req("SL-10")
def test_accounting_knows_where_a_forgotten_job_wrote() -> None:
    line = {"SubmitLine": "sbatch -o out.%j -e err.%j job.sh", "WorkDir": "/home/ann"}
    assert outputs.of_record(line) == {"stdout": "out.%j", "stderr": "err.%j", "folder": "/home/ann"}
    told = line | {"StdOut": "/home/ann/out.7", "StdErr": "/home/ann/err.7"}
    assert outputs.of_record(told) == {"stdout": "/home/ann/out.7", "stderr": "/home/ann/err.7", "folder": "/home/ann"}
    assert outputs.of_script("#!/bin/sh\n#SBATCH -o own.%j\necho\n") == {"stdout": "own.%j"}


@pytest.mark.req("SL-10")
def test_steps_of_accounting_and_of_the_controller() -> None:
    records = (
        {"JobID": "7", "State": "FAILED", "JobName": "train"},
        {"JobID": "7.batch", "State": "FAILED", "JobName": "batch", "ExitCode": "3:0", "End": "2026-11-21T08:00:09"},
        {"JobID": "7.0", "State": "COMPLETED", "JobName": "python", "MaxRSS": "2048K", "NTasks": "8", "NNodes": "2"},
    )
    told = [dict.fromkeys(accounting.FIELDS_OF_ONE, "") | {"Start": "2026-11-21T08:00:01"} | each for each in records]
    printed = "".join("".join(f"{value}~" for value in each.values()) + "\n" for each in told)
    batch, first = accounting.steps(printed, "~", UTC, accounting.FIELDS_OF_ONE)
    assert (batch.name, batch.state, batch.exit_code) == ("batch", "failed", 3)
    assert (first.name, first.command, first.tasks, first.nodes, first.peak_memory_mib) == ("0", "python", 8, 2, 2)
    (step,) = running.steps(
        "StepId=6.0 UserId=1 StartTime=2026-11-22T00:57:07 TimeLimit=UNLIMITED\n   State=RUNNING Partition=batch "
        "NodeList=n[2-3]\n   Nodes=2 CPUs=2 Tasks=2 Name=sleep Network=(null)\n",
        UTC,
    )
    assert (step.name, step.command, step.state, step.nodes, step.tasks) == ("0", "sleep", "running", 2, 2)
    assert accounting.unknown_field('sacct: error: Invalid field requested: "StdOut"\n') == "StdOut"
