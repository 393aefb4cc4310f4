"""Slurm's own words about a batch script on several nodes: its record, its variables, its files and folders."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.launch.batchscript import (
    UNKNOWN_FACTS,
    JobFacts,
    Run,
    clock,
    expanded,
    job_record,
    output_folders,
    output_of,
    runs,
    script_files,
    slurm_environment,
    tasks_on_nodes,
)
from cockpit.model.batchscript import BatchScript
from cockpit.model.ids import JobId, NodeName, ReplicaId
from cockpit.model.job import ArrayTask
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.spec import Array, Dependency, DependencyKind, JobSpec, Mode
from tests.builders import ANN, a_spec

pytestmark = pytest.mark.req("LA-71")

SCRIPT = BatchScript(text="#!/bin/bash\n", work_dir="/home/ann/proj", file="/home/ann/train.sh", arguments=("a b", "c"))
FACTS = JobFacts(account="lab", qos="high", partition="gpu", cluster="login", started_at=1000, submitted_at=900)
CARDS = (CardSlice(3, None), CardSlice(1, 0, 500))
PLACEMENT = (
    Allocation(0, NodeName("n0"), 2, 512, CARDS),
    Allocation(1, NodeName("n1"), 2, 512, CARDS),
    Allocation(2, NodeName("n2"), 1, 256),
)
TASK = ArrayTask(JobId(40), 5)


def a_job(**fields: Any) -> JobSpec:
    return a_spec("train", mode=Mode.SLURM, **{"nodes": 3, "script": SCRIPT, **fields})


def a_run(rank: int = 0, attempt: int = 1, facts: JobFacts = FACTS) -> Run:
    return Run(ANN, PLACEMENT, ReplicaId(JobId(42), attempt, rank), ["train-0", "train-1", "train-2"], facts)


def test_the_record_of_a_job_has_every_line_of_scontrol() -> None:
    spec = a_job(env={"SLURM_NTASKS": "7", "SLURM_CPUS_PER_TASK": "2"}, nice=5, time_limit_seconds=90_061)
    record = job_record(spec, a_run(attempt=3), script_files(spec, ANN, "train-0", a_run().replica, TASK), TASK)
    assert record == (
        "JobId=42 ArrayJobId=40 ArrayTaskId=5 JobName=train\n"
        "   UserId=ann(1001) GroupId=1001 MCS_label=N/A\n"
        "   Priority=0 Nice=5 Account=lab QOS=high\n"
        "   JobState=RUNNING Reason=None Dependency=(null)\n"
        "   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
        "   RunTime=@since 1000@ TimeLimit=1-01:01:01 TimeMin=N/A\n"
        "   SubmitTime=@900@ EligibleTime=@900@\n"
        "   StartTime=@1000@ EndTime=@91061@ Deadline=N/A\n"
        "   Partition=gpu AllocNode:Sid=login:0\n"
        "   NodeList=train-0,train-1,train-2\n"
        "   BatchHost=train-0\n"
        "   NumNodes=3 NumCPUs=5 NumTasks=7 CPUs/Task=2\n"
        "   TRES=cpu=5,mem=1280M,node=3,billing=5,gres/gpu=4\n"
        "   MinCPUsNode=2 MinMemoryNode=512M MinTmpDiskNode=0\n"
        "   Command=/home/ann/train.sh 'a b' c\n"
        "   WorkDir=/home/ann/proj\n"
        "   StdErr=/home/ann/proj/slurm-40_5.out\n"
        "   StdIn=/dev/null\n"
        "   StdOut=/home/ann/proj/slurm-40_5.out\n"
    )


def test_what_is_not_known_of_a_job_is_written_as_scontrol_does() -> None:
    spec = a_spec("x", mode=Mode.SLURM)
    placement = PLACEMENT[2:]
    run = Run(ANN, placement, ReplicaId(JobId(42), 1, 2), ["x-0"], UNKNOWN_FACTS)
    lines = [line.strip() for line in job_record(spec, run, None, None).splitlines()]
    assert lines[0] == "JobId=42 JobName=x"
    assert "Priority=0 Nice=0 Account=(null) QOS=(null)" in lines
    assert "StartTime=@0@ EndTime=Unknown Deadline=N/A" in lines
    assert "Partition=(null) AllocNode:Sid=localhost:0" in lines
    assert "NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1" in lines
    assert "TRES=cpu=1,mem=256M,node=1,billing=1" in lines
    assert lines[-2:] == ["Command=python train.py", "WorkDir=/data/out"]


def test_a_replica_has_the_variables_of_its_own_node() -> None:
    env = slurm_environment(a_job(env={"SLURM_NTASKS": "4"}), a_run(rank=1))
    own = {"SLURMD_NODENAME": "train-1", "SLURM_NODEID": "1", "SLURM_CPUS_ON_NODE": "2", "SLURM_MEM_PER_NODE": "512"}
    assert own.items() <= env.items()
    assert env["SLURM_TOPOLOGY_ADDR"] == "train-1"
    assert (env["SLURM_JOB_CPUS_PER_NODE"], env["SLURM_TASKS_PER_NODE"]) == ("2(x2),1", "2,1(x2)")
    assert (env["SLURM_JOB_START_TIME"], env["SLURM_JOB_END_TIME"]) == ("1000", "87400")
    assert env["SLURM_SUBMIT_DIR"] == "/home/ann/proj"


def test_only_what_is_known_and_asked_for_is_a_variable() -> None:
    bare = slurm_environment(a_job(script=None), a_run(facts=UNKNOWN_FACTS))
    absent = {"SLURM_SUBMIT_DIR", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM_JOB_RESERVATION"}
    assert not (absent | {"SLURM_JOB_DEPENDENCY", "SLURM_NTASKS", "SLURM_NPROCS"}) & bare.keys()
    after = Dependency(DependencyKind.AFTER_OK, JobId(7), 1)
    asked = a_job(reservation="night", dependencies=(after, Dependency(DependencyKind.SINGLETON)))
    env = slurm_environment(asked, a_run())
    assert (env["SLURM_JOB_RESERVATION"], env["SLURM_JOB_DEPENDENCY"]) == ("night", "afterok:7_1,singleton")


@pytest.mark.parametrize(
    ("env", "nodes", "tasks"),
    [
        ({}, 2, [1, 1]),
        ({"SLURM_NTASKS_PER_NODE": "3"}, 2, [3, 3]),
        ({"SLURM_NTASKS": "6", "SLURM_NTASKS_PER_NODE": "3"}, 2, [3, 3]),
        ({"SLURM_NTASKS": "5", "SLURM_NTASKS_PER_NODE": "3"}, 2, [3, 2]),
        ({"SLURM_NTASKS": "5"}, 3, [2, 2, 1]),
        ({"SLURM_NTASKS": "1"}, 3, [1, 1, 1]),
        ({"SLURM_NTASKS": "many"}, 2, [1, 1]),
        ({"SLURM_NTASKS": "٣"}, 2, [1, 1]),
    ],
)
def test_tasks_are_spread_evenly_and_every_node_has_one(env: dict[str, str], nodes: int, tasks: list[int]) -> None:
    assert tasks_on_nodes(env, nodes) == tasks


@pytest.mark.parametrize(
    ("counts", "text"), [([], ""), ([4], "4"), ([4, 4], "4(x2)"), ([1, 2, 2, 2, 1, 1], "1,2(x3),1(x2)")]
)
def test_equal_counts_of_neighbours_are_one_run(counts: list[int], text: str) -> None:
    assert runs(counts) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "00:00:00"), (59, "00:00:59"), (86_399, "23:59:59"), (86_400, "1-00:00:00")]
)
def test_a_time_has_days_only_from_a_day_on(seconds: int, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("output", "array", "path"),
    [
        ("", None, "/home/ann/proj/slurm-42.out"),
        ("%A-%j-%u.o", None, "/home/ann/proj/42-42-ann.o"),
        ("%A-%3a-%j-%J.o", Array((1, 2)), "/home/ann/proj/42-%3a-%j-%J.o"),
        ("../%x.o", None, "/home/ann/train.o"),
    ],
)
def test_what_only_a_task_knows_stays_in_the_name_of_an_arrays_output(
    output: str, array: Array | None, path: str
) -> None:
    assert output_of(a_job(script=replace(SCRIPT, output=output), array=array), 42, "ann") == path


def test_folders_of_files_outside_of_the_working_folder_are_listed_if_they_are_known_before_the_start() -> None:
    script = replace(SCRIPT, output="logs/%j.out", error="%j/err", input="in.txt")
    assert output_folders(script) == [("script.output", "/home/ann/proj/logs")]
    assert output_folders(replace(SCRIPT, input="/data/in.txt")) == [("script.input", "/data")]
    assert output_folders(SCRIPT) == []


def test_a_host_is_written_without_its_domain_and_a_number_with_at_most_ten_digits() -> None:
    name = expanded("%N-%99j", name="x", user="ann", host="n0.lab.example", job=42, task=None)
    assert name == "n0-0000000042"
