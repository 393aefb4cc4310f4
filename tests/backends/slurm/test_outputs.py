"""Where jobs write, as Slurm names files, and what ran within them."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping import accounting, outputs
from cockpit.backends.slurm.mapping.jobs import Listed, LookedUpJob
from cockpit.backends.slurm.mapping.rest import ended as rest_ended
from cockpit.backends.slurm.rows import past_row, row
from cockpit.formats.foreign.sbatch_options import line_options
from cockpit.model.jobdetail import StepRow
from cockpit.model.spec import Access
from tests.backends.slurm.test_values import a_record

RUNS = {"State": "RUNNING", "NodeList": "n1.site.org", "StartTime": "2026-11-21T08:00:01", "UserName": "ann"}
PLAIN = Listed(a_record(JobID="41", Name="7", **RUNS))
TASK = Listed(a_record(JobID="44", ArrayJobID="43", ArrayTaskID="12", Name="7", **RUNS))


@pytest.mark.parametrize(
    ("pattern", "plain", "task"),
    [
        ("%j", "41", "44"),
        ("%J", "41", "44"),
        ("%A", "41", "43"),
        ("%a", "4294967294", "12"),
        ("%x", "7", "7"),
        ("%u", "ann", "ann"),
        ("%N", "n1", "n1"),
        ("%n%t", "00", "00"),
        ("%s", "batch", "batch"),
        ("%5j", "00041", "00044"),
        ("%12A", "0000000041", "0000000043"),
        ("%3u", "ann", "ann"),
        ("%5x", "7", "7"),
        ("%3t", "000", "000"),
        ("%%", "%", "%"),
        ("%y", "%y", "%y"),
        ("%b", "4294967294", "2"),
    ],
)
@pytest.mark.req("SL-10")
def test_every_sbatch_pattern_expands_as_in_slurm(pattern: str, plain: str, task: str) -> None:
    """As 22.05 names the files, but for %b, which came later."""
    for listed, word in ((PLAIN, plain), (TASK, task)):
        assert path_of(listed, f"/out/{pattern}.log", (24, 11)) == f"/out/{word}.log"
    assert path_of(TASK, "/out/%b", (22, 5, 8)) == "/out/%b"
    assert path_of(TASK, "/out/\\%j", (24, 11)) == "/out/%j"


def path_of(listed: Listed, path: str, version: tuple[int, ...] = (22, 5, 8), index: int | None = None) -> str:
    """Of a job that wrote on n1.site.org; `index`: of that task of those that wait together."""
    job = listed.job if index is None else listed.task(index)
    host = "n1.site.org" if listed.nodes else ""
    return outputs.fill_patterns(path, outputs.batch_words(LookedUpJob(job, listed), version, host))


@pytest.mark.req("SL-10")
def test_an_unknown_part_of_a_pattern_is_not_expanded() -> None:
    waiting = Listed(a_record(JobID="43", ArrayJobID="43", ArrayTaskID="4-9%2", State="PENDING", UserName="ann"))
    assert path_of(waiting, "/out/%A_%a-%j-%J-%N-%u") == "/out/43_%a-%j-%J-%N-ann"
    assert path_of(waiting, "/out/%A_%a-%j-%N", index=5) == "/out/43_5-%j-%N"
    last = Listed(a_record(JobID="43", ArrayJobID="43", ArrayTaskID="9", State="PENDING"))
    assert path_of(last, "/out/%A_%a-%j-%N") == "/out/43_9-43-%N"


@pytest.mark.parametrize(
    ("told", "record", "path"),
    [
        ({"stdout": "/w/slurm-44.out", "stderr": "/w/slurm-44.out"}, TASK, "/w/slurm-43_12.out"),
        ({"stdout": "/w/slurm-41.out", "stderr": "/w/slurm-41.out"}, PLAIN, "/w/slurm-41.out"),
        ({"stdout": "/w/slurm-41.out", "stderr": "N/A"}, PLAIN, ""),
        ({"stdout": "/w/slurm-40.out", "stderr": "/w/slurm-40.out"}, PLAIN, "/w/slurm-40.out"),
        ({"stdout": "out.%j", "stderr": "err.%j"}, PLAIN, "/w/out.41"),
        ({"stdout": "/w/slurm-43_4294967294.out", "stderr": "x"}, TASK, "/w/slurm-43_12.out"),
        ({}, TASK, "/w/slurm-43_12.out"),
        ({}, PLAIN, "/w/slurm-41.out"),
    ],
)
@pytest.mark.req("SL-10")
def test_a_name_that_squeue_made_up_is_not_the_files(told: dict[str, str], record: Listed, path: str) -> None:
    """22.05 makes `slurm-44.out` of a task's own number, while sbatch writes `slurm-43_12.out`; of what srun runs at a
    terminal it makes one, too."""
    known = LookedUpJob(record.job, record)
    named = outputs.written_path(told | {"folder": "/w"}, known)
    assert (path_of(record, named) if named else "") == path


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ({"JobID": "44", "ArrayJobID": "43", "ArrayTaskID": "12", "STDOUT": "/w/slurm-44.out"}, "/w/slurm-43_12.out"),
        ({"JobID": "43", "ArrayJobID": "43", "ArrayTaskID": "4-9", "STDOUT": "/w/slurm-43.out"}, "/w/slurm-43_%a.out"),
        ({"JobID": "41", "Name": "x", "STDOUT": "/w/%x-%j-%N.out"}, "/w/x-41-%N.out"),
        ({"JobID": "41", "STDOUT": "/w/slurm-41.out"}, "/w/slurm-41.out"),
        ({"JobID": "8", "HetJobID": "7", "HetJobOffset": "1", "STDOUT": "/w/slurm-8.out"}, "/w/slurm-7.out"),
        ({"JobID": "8", "HetJobID": "7", "HetJobOffset": "1", "STDOUT": "/w/h-%j.out"}, "/w/h-7.out"),
    ],
)
@pytest.mark.req("SL-10")
def test_a_list_names_the_files_of_its_jobs(record: dict[str, str], path: str) -> None:
    listed = Listed(a_record(State="RUNNING", WorkDir="/w", **record), UTC)
    assert row(listed, None, None, Access.RO).output == path


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ({"SubmitLine": "sbatch -o out-%x.%j --time=5 job.sh", "JobName": "a b"}, "/w/out-a b.41"),
        ({"SubmitLine": "sbatch -J 7 --wrap true"}, "/w/slurm-41.out"),
        ({"SubmitLine": "/usr/bin/sbatch --array=12 --wrap=true", "JobID": "40_12"}, "/w/slurm-40_12.out"),
        ({"SubmitLine": "sbatch -o h-%j : -o i-%j job.sh", "JobID": "38+3"}, "/w/h-38"),
        ({"SubmitLine": "sbatch job.sh"}, ""),
        ({"SubmitLine": ""}, ""),
        ({"SubmitLine": "srun --pty bash"}, ""),
        ({"SubmitLine": "srun -o of-srun-%j hostname"}, "/w/of-srun-41"),
        ({"SubmitLine": "sbatch job.sh", "StdOut": "/o/%u-%j.txt"}, "/o/ann-41.txt"),
    ],
)
@pytest.mark.req("SL-10", "SL-15")
def test_a_list_of_ended_jobs_names_the_files_that_accounting_knows(record: dict[str, str], path: str) -> None:
    """Only the script says where `sbatch job.sh` writes, and no list asks for scripts: then it is not known."""
    ended = {"JobID": "41", "JobIDRaw": "41", "JobName": "7", "User": "ann", "WorkDir": "/w", "State": "COMPLETED"}
    (past,) = accounting.ended_jobs(as_sacct(ended | record), UTC)
    assert past_row(past).output == path


@pytest.mark.req("SL-10")
def test_errors_have_a_file_of_their_own_where_one_was_asked_for() -> None:
    known = LookedUpJob(PLAIN.job, PLAIN)
    told = {"stdout": "/w/slurm-41.out", "folder": "/w"}
    assert outputs.written_path(told | {"stderr": "/e/%j"}, known, errors=True) == "/e/%j"
    assert outputs.written_path(told | {"stderr": "/w/slurm-41.out"}, known, errors=True) == "/w/slurm-%j.out"


@pytest.mark.req("SL-10")
def test_the_files_of_steps() -> None:
    assert outputs.of_step("srun --overlap -u -n2 --output=st-%J-%2s-%t.txt hostname -o no") == "st-%J-%2s-%t.txt"
    assert outputs.of_step("srun -N1 -l hostname -o no") == ""
    batch = outputs.batch_words(LookedUpJob(PLAIN.job, PLAIN), (22, 5, 8), "n1")
    step = StepRow(name="0", command="", state="", nodes=1, tasks=2, started_at=None, ended_at=None)
    assert outputs.fill_patterns("/o/%J-%2s-%s-%t-%n-%N", outputs.step_words(batch, step, 1)) == "/o/41.0-00-0-1-0-n1"
    assert outputs.fill_patterns("/o/%s-%t", outputs.step_words(batch, step, None)) == "/o/0-%t"
    alone = replace(step, tasks=1, nodes=2)
    assert outputs.fill_patterns("/o/%t-%N-%n", outputs.step_words(batch, alone, None)) == "/o/0-%N-%n"


@pytest.mark.req("SL-10")
def test_the_script_of_a_heterogeneous_job_is_run_by_its_first_component() -> None:
    second = Listed(a_record(JobID="20", HetJobID="19", HetJobOffset="1", State="RUNNING"))
    first = Listed(a_record(JobID="19", HetJobID="19", HetJobOffset="0", State="RUNNING"))
    assert (LookedUpJob(first.job, first).leader, LookedUpJob(second.job, second).leader) == (None, 19)
    assert LookedUpJob(second.job, None, {"JobID": "19+1"}).leader == 19
    assert LookedUpJob(second.job, None, {"JobID": "19+0"}).leader is LookedUpJob(PLAIN.job, PLAIN).leader is None


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
def test_the_output_files_of_a_submission(line: str, output: str | None) -> None:
    assert line_options(line).get("output") == output


@pytest.mark.parametrize(
    "line",
    [
        "sbatch -J na me -o out.%j job.sh",
        "sbatch --job-name=na me --comment of mine -o out.%j job.sh -o its.own",
        "sbatch --job-name na me -o out.%j --wrap echo na me",
    ],
)
@pytest.mark.req("SL-10")
def test_a_job_name_with_spaces_hides_no_later_option(line: str) -> None:
    """Slurm stores the line without its quotes."""
    told = outputs.of_record({"SubmitLine": line, "JobName": "na me", "Comment": "of mine"})
    assert told == {"stdout": "out.%j"}


@pytest.mark.req("SL-10")
def test_accounting_knows_where_a_forgotten_job_wrote() -> None:
    line = {"SubmitLine": "sbatch -o out.%j -e err.%j job.sh", "WorkDir": "/home/ann"}
    assert outputs.of_record(line) == {"stdout": "out.%j", "stderr": "err.%j", "folder": "/home/ann"}
    told = line | {"StdOut": "/home/ann/out.7", "StdErr": "/home/ann/err.7"}
    assert outputs.of_record(told) == {"stdout": "/home/ann/out.7", "stderr": "/home/ann/err.7", "folder": "/home/ann"}
    assert outputs.of_script("#!/bin/sh\n#SBATCH -o own.%j\necho\n") == {"stdout": "own.%j"}


def as_sacct(*records: dict[str, str]) -> list[dict[str, str]]:
    """These records of sacct with their other fields, which are empty."""
    return [dict.fromkeys(accounting.FIELDS_OF_ONE, "") | {"Start": "2026-11-21T08:00:01"} | each for each in records]


@pytest.mark.parametrize(
    ("job", "name", "files"),
    [
        ("20", "first", ["hs-%j.out"]),
        ("21", "second", ["other"]),
        ("20+1", "second", ["other"]),
    ],
)
@pytest.mark.req("SL-10", "SL-15")
def test_accounting_distinguishes_the_components_of_a_heterogeneous_job(job: str, name: str, files: list[str]) -> None:
    ended = {"State": "COMPLETED", "End": "2026-11-21T08:00:09", "NNodes": "1", "Partition": "all"}
    printed = as_sacct(
        {"JobID": "20+0", "JobIDRaw": "20", "JobName": "first", **ended},
        {"JobID": "20+0.0", "JobIDRaw": "20.0", "SubmitLine": "srun -o hs-%j.out true", **ended},
        {"JobID": "20+1", "JobIDRaw": "21", "JobName": "second", **ended},
        {"JobID": "20+1.0", "JobIDRaw": "21.0", "SubmitLine": "srun -o other true", **ended},
    )
    past, steps = accounting.of_one(printed, job, UTC)
    assert past is not None
    assert (past.job.spec.name, [step.output for step in steps]) == (name, files)


@pytest.mark.req("SL-01", "SL-10")
def test_slurmrestd_names_the_components_of_a_heterogeneous_job_as_sacct_does() -> None:
    jobs = [
        {"job_id": 21, "het": {"job_id": 20, "job_offset": {"set": True, "infinite": False, "number": 1}}},
        {"job_id": 20, "het": {"job_id": 20, "job_offset": 0}},
        {"job_id": 9, "het": {"job_id": 0, "job_offset": {"set": False, "infinite": False, "number": 0}}},
    ]
    records = rest_ended.records_of_ended(jobs, ["JobID", "JobIDRaw"])
    assert [tuple(each.values()) for each in records] == [("20+1", "21"), ("20+0", "20"), ("9", "9")]


@pytest.mark.parametrize(("job", "name"), [("18", "one"), ("18_2", "two"), ("18_3", "three"), ("24", "one")])
@pytest.mark.req("SL-10", "SL-15")
def test_an_arrays_own_number_stands_for_its_first_task_in_accounting_too(job: str, name: str) -> None:
    """Slurm gives the array's own number to the task that is split off last."""
    ended = {"State": "COMPLETED", "End": "2026-11-21T08:00:09", "NNodes": "1", "Partition": "all"}
    tasks = (("18_1", "24", "one"), ("18_2", "25", "two"), ("18_3", "18", "three"))
    told = [{"JobID": own, "JobIDRaw": raw, "JobName": named, **ended} for own, raw, named in tasks]
    wanted = [each for each in told if job in {"18", each["JobID"], each["JobIDRaw"]}]
    past, _ = accounting.of_one(as_sacct(*wanted), job, UTC)
    assert past is not None
    assert past.job.spec.name == name


@pytest.mark.req("SL-10")
def test_steps_of_accounting_and_of_the_controller() -> None:
    records = (
        {"JobID": "7", "State": "FAILED", "JobName": "train"},
        {"JobID": "7.batch", "State": "FAILED", "JobName": "batch", "ExitCode": "3:0", "End": "2026-11-21T08:00:09"},
        {"JobID": "7.0", "State": "COMPLETED", "JobName": "python", "MaxRSS": "2048K", "NTasks": "8", "NNodes": "2"},
    )
    _, (batch, first) = accounting.of_one(as_sacct(*records), "7", UTC)
    assert (batch.name, batch.state, batch.exit_code) == ("batch", "failed", 3)
    assert (first.name, first.command, first.tasks, first.nodes, first.peak_memory_mib) == ("0", "python", 8, 2, 2)
    (step,) = accounting.steps(
        "StepId=6.0 UserId=1 StartTime=2026-11-22T00:57:07 TimeLimit=UNLIMITED\n   State=RUNNING Partition=batch "
        "NodeList=n[2-3]\n   Nodes=2 CPUs=2 Tasks=2 Name=sleep Network=(null)\n",
        UTC,
    )
    assert (step.name, step.command, step.state, step.nodes, step.tasks) == ("0", "sleep", "running", 2, 2)
    assert accounting.unknown_field('sacct: error: Invalid field requested: "StdOut"\n') == "StdOut"
