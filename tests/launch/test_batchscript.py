"""Where a batch script writes, and what Slurm's variables say: as Slurm 22.05 does it for the same scripts."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.launch.batchscript import (
    Run,
    clock,
    expanded,
    job_facts,
    job_record,
    output_of,
    runs,
    script_files,
    slurm_environment,
)
from cockpit.launch.plan import launch_plan
from cockpit.model.batchscript import BatchScript, OpenMode
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.job import ArrayTask
from cockpit.model.node import Allocation, CardSlice, Node
from cockpit.model.spec import Array, HomeAccess, JobSpec, Mode
from tests.builders import ANN, NOON, a_spec
from tests.engine.driver import EngineDriver

pytestmark = pytest.mark.req("LA-71")

TASK = ArrayTask(JobId(40), 5, count=3, first=3, last=7)
REPLICA = ReplicaId(JobId(42), 1, 0)


def a_job(nodes: int = 1, env: dict[str, str] | None = None, array: Array | None = None, **script: Any) -> JobSpec:
    given = BatchScript(**{"text": "#!/bin/bash -l\ntrue\n", "work_dir": "/home/ann/proj", **script})
    return JobSpec(
        name="train",
        command="true",
        output="/home/ann/proj",
        mode=Mode.SLURM,
        home=HomeAccess.RW,
        nodes=nodes,
        env=env or {},
        array=array,
        script=given,
    )


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (
            "out-%j-%x-%A-%a-%u-%N-%n-%t-%s-%J-%%-%5j.txt",
            "out-42-train-42-4294967294-ann-train-0-0-0-batch-42-%-00042.txt",
        ),
        ("%12j", "0000000042"),
        ("%z%", "%z%"),
        ("50%_off", "50%_off"),
        (r"\%j", "%j"),
    ],
)
def test_patterns_are_filled_in_as_sbatch_does(pattern: str, name: str) -> None:
    assert expanded(pattern, name="train", user="ann", host="train-0", job=42, task=None) == name


def test_a_task_of_an_array_has_the_array_id_and_its_task_id() -> None:
    assert expanded("%A_%a-%3a-%j", name="x", user="ann", host="h", job=42, task=TASK) == "40_5-005-42"


def test_a_job_name_cannot_lead_into_another_folder() -> None:
    assert expanded("%x.out", name="../../etc/x", user="ann", host="h", job=1, task=None) == ".._.._etc_x.out"


@pytest.mark.parametrize(
    ("script", "task", "stdout", "stderr"),
    [
        ({}, None, "/home/ann/proj/slurm-42.out", "/home/ann/proj/slurm-42.out"),
        ({}, TASK, "/home/ann/proj/slurm-40_5.out", "/home/ann/proj/slurm-40_5.out"),
        ({"output": "/dev/null"}, None, "/dev/null", "/dev/null"),
        ({"output": "../%j.o", "error": "e"}, None, "/home/ann/42.o", "/home/ann/proj/e"),
        ({"error": "/x/%j.e"}, None, "/home/ann/proj/slurm-42.out", "/x/42.e"),
    ],
)
def test_files_are_relative_to_the_working_folder(
    script: dict[str, str], task: ArrayTask, stdout: str, stderr: str
) -> None:
    files = script_files(a_job(**script), ANN, "train-0", REPLICA, task)
    assert (files.stdin, files.stdout, files.stderr, files.append) == ("/dev/null", stdout, stderr, False)
    assert script_files(a_job(open_mode=OpenMode.APPEND), ANN, "h", REPLICA, task).append


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (a_job(output="%x-%N-%5j.o"), "/home/ann/proj/train-%N-00042.o"),
        (a_job(array=Array((1, 2))), "/home/ann/proj/slurm-42_%a.out"),
    ],
)
def test_a_submission_names_the_file_as_far_as_it_is_known(spec: JobSpec, path: str) -> None:
    assert output_of(spec, 42, "ann") == path


@pytest.mark.parametrize(
    ("env", "nodes", "expected"),
    [
        ({}, 1, {"SLURM_TASKS_PER_NODE": "1"}),
        ({}, 2, {"SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_NNODES": "2"}),
        ({"SLURM_NTASKS": "3"}, 2, {"SLURM_TASKS_PER_NODE": "2,1", "SLURM_NPROCS": "3", "SLURM_NTASKS": "3"}),
        ({"SLURM_NTASKS_PER_NODE": "2"}, 2, {"SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "2(x2)"}),
    ],
)
def test_tasks_are_counted_as_the_script_requested(env: dict[str, str], nodes: int, expected: dict[str, str]) -> None:
    placement = tuple(Allocation(rank, NodeName(f"n{rank}"), 2, 512) for rank in range(nodes))
    hosts = [f"train-{rank}" for rank in range(nodes)]
    found = slurm_environment(a_job(nodes, env), Run(ANN, placement, REPLICA, hosts, facts=_facts()))
    assert {name: found.get(name) for name in expected} == expected
    assert ("SLURM_NTASKS" in found) == bool(env)


@pytest.mark.parametrize("share", ["SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU"])
def test_memory_is_set_in_only_one_variable(share: str) -> None:
    """Slurm's own srun ends where two of these variables are there."""
    placement = (Allocation(0, NodeName("n1"), 2, 512),)
    run = Run(ANN, placement, REPLICA, ["train-0"], facts=_facts())
    assert slurm_environment(a_job(), run)["SLURM_MEM_PER_NODE"] == "512"
    assert "SLURM_MEM_PER_NODE" not in slurm_environment(a_job(env={share: "256"}), run)


def _facts() -> Any:
    from cockpit.launch.batchscript import JobFacts

    return JobFacts(account="lab", qos="normal", partition="gpu", cluster="login", started_at=1000, submitted_at=900)


def test_the_script_itself_is_started_with_its_arguments_in_its_folder() -> None:
    spec = a_job(arguments=("--lr", "0 1"), submit_dir="/home/ann")
    node = Node(name=NodeName("n0"), cpus=8, memory_mib=8192)
    placement = (Allocation(0, NodeName("n0"), 2, 512),)
    plan = launch_plan(spec, ANN, node, placement[0], placement, REPLICA, None, _facts())
    assert plan.argv == ("/run/cockpit-slurm/slurm_script", "--lr", "0 1")
    assert plan.files[plan.argv[0]] == "#!/bin/bash -l\ntrue\n"
    assert plan.workdir == "/home/ann/proj"
    assert plan.env["PATH"].startswith("/run/cockpit-slurm/bin:")
    given = {name: plan.env[f"SLURM_{name}"] for name in ("SUBMIT_DIR", "JOB_PARTITION", "JOB_ACCOUNT", "JOB_END_TIME")}
    assert given == {
        "SUBMIT_DIR": "/home/ann",
        "JOB_PARTITION": "gpu",
        "JOB_ACCOUNT": "lab",
        "JOB_END_TIME": str(1000 + 86_400),
    }


def test_the_record_of_the_job_equals_the_output_of_scontrol() -> None:
    placement = (Allocation(0, NodeName("n0"), 2, 512),)
    run = Run(ANN, placement, REPLICA, ["train-0"], _facts())
    spec = a_job(file="/home/ann/train.sh", arguments=("a b",))
    lines = job_record(spec, run, script_files(spec, ANN, "train-0", REPLICA, None), None).splitlines()
    assert lines[0] == "JobId=42 JobName=train"
    assert "   Command=/home/ann/train.sh 'a b'" in lines
    assert "   StartTime=@1000@ EndTime=@87400@ Deadline=N/A" in lines
    assert "   StdOut=/home/ann/proj/slurm-42.out" in "\n".join(lines)


def test_counts_and_times_are_written_as_slurm_writes_them() -> None:
    assert runs([4, 4, 2]) == "4(x2),2"
    assert (clock(3600), clock(90_061)) == ("01:00:00", "1-01:01:01")


def test_only_the_first_node_runs_the_script() -> None:
    placement = tuple(Allocation(rank, NodeName(f"n{rank}"), 2, 512) for rank in range(2))
    node = Node(name=NodeName("n1"), cpus=8, memory_mib=8192)
    plan = launch_plan(a_job(2), ANN, node, placement[1], placement, ReplicaId(JobId(42), 1, 1), None, _facts())
    assert plan.argv != ("/run/cockpit-slurm/slurm_script",)
    assert "/run/cockpit-slurm/slurm_script" not in plan.files


def test_a_jobs_gpus_are_listed_once_and_counted() -> None:
    shared = (CardSlice(3, 0, 500), CardSlice(1, None))
    for slices, expected in ((shared, ("2", "1,3")), ((), (None, None))):
        placement = (Allocation(0, NodeName("n1"), 2, 512, slices),)
        found = slurm_environment(a_job(), Run(ANN, placement, REPLICA, ["train-0"], facts=_facts()))
        assert (found.get("SLURM_GPUS_ON_NODE"), found.get("SLURM_JOB_GPUS")) == expected


def test_the_facts_of_a_placed_job_are_those_of_its_attempt() -> None:
    driver = EngineDriver()
    (job,) = driver.run(a_spec())
    driver.pass_time(1000)
    facts = job_facts(driver.job(job), "login")
    assert (facts.cluster, facts.started_at, facts.submitted_at) == ("login", NOON // 1000, NOON // 1000)
    assert (facts.account, facts.partition) == (driver.job(job).account, "")


@pytest.mark.parametrize(("attempt", "restarts"), [(1, None), (2, "1"), (4, "3")])
def test_a_script_knows_how_often_it_was_started_again(attempt: int, restarts: str | None) -> None:
    placement = (Allocation(0, NodeName("n1"), 2, 512),)
    run = Run(ANN, placement, ReplicaId(JobId(42), attempt, 0), ["train-0"], facts=_facts())
    found = slurm_environment(a_job(), run)
    assert found.get("SLURM_RESTART_COUNT") == restarts
    assert {found[f"SLURM_{name}"] for name in ("PROCID", "NODEID", "LOCALID", "GTIDS")} == {"0"}


@pytest.mark.parametrize(
    ("task", "step"),
    [
        (TASK, "2"),
        (ArrayTask(JobId(40), 0, count=4, first=0, last=3), "1"),
        (ArrayTask(JobId(40), 5, count=3, first=5, last=12), "1"),
        (ArrayTask(JobId(40), 5, count=1, first=5, last=5), "1"),
    ],
)
def test_the_step_of_an_array_is_the_distance_of_its_indices_where_they_are_even(task: ArrayTask, step: str) -> None:
    placement = (Allocation(0, NodeName("n1"), 2, 512),)
    node = Node(name=NodeName("n1"), cpus=8, memory_mib=8192)
    plan = launch_plan(a_job(), ANN, node, placement[0], placement, REPLICA, task, _facts())
    assert plan.env["SLURM_ARRAY_TASK_STEP"] == step
