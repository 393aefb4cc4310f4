"""The options of sbatch for every field of a job, and the lines that start its nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping.groups import groups
from cockpit.backends.slurm.mapping.modelines import launched_command, prelude
from cockpit.backends.slurm.mapping.script import (
    HOLD_SECONDS,
    array_text,
    asked_seconds,
    dependency_text,
    gres,
    kept_seconds,
    moment_text,
    options,
    qos,
    submission,
)
from cockpit.model.batchscript import BatchScript, OpenMode
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.mounts import Algorithm
from cockpit.model.spec import (
    PARAMETER_SERVER,
    Array,
    DebugHold,
    Dependency,
    DependencyKind,
    HoldAllocation,
    JobSpec,
    Mode,
    NodeSpec,
    PriorityWord,
    Sweep,
    WorkerPool,
)
from tests.builders import a_spec

pytestmark = pytest.mark.req("SL-20")
PLAIN = replace(a_spec("train", cpus=4, memory_mib=2048), output="/data/50%", time_limit_seconds=5400)


def of(**fields: Any) -> list[str]:
    return list(options(replace(PLAIN, **fields)))


def test_a_plain_job_says_no_more_than_it_asks_for() -> None:
    assert of() == [
        "--job-name=train",
        "--output=/data/50%%/slurm-%j.out",
        "--chdir=/data/50%",
        "--nodes=1",
        "--ntasks-per-node=1",
        "--cpus-per-task=4",
        "--mem=2048M",
        "--time=01:30:00",
        "--requeue",
    ]


@pytest.mark.parametrize(
    ("fields", "added"),
    [
        ({"account": "nlp"}, ["--account=nlp"]),
        ({"node_names": (NodeName("n1"), NodeName("n2"))}, ["--nodelist=n1,n2"]),
        ({"dependencies": (Dependency(DependencyKind.SINGLETON),)}, ["--dependency=singleton"]),
        ({"nice": -5}, ["--nice=-5"]),
        ({"begin_at": Millis(1_795_248_117_999)}, ["--begin=uts1795248117"]),
        ({"deadline_at": Millis(1_795_248_117_000)}, ["--deadline=uts1795248117"]),
        ({"labels": {"team": "cv", "run": "7"}}, ["--comment=team=cv,run=7"]),
        ({"hold": True}, ["--hold"]),
        ({"partitions": ("gpu", "batch")}, ["--partition=gpu,batch"]),
        ({"qos": "high", "priority": PriorityWord.URGENT}, ["--qos=high"]),
        ({"priority": PriorityWord.URGENT}, ["--qos=urgent"]),
        ({"reservation": "maint"}, ["--reservation=maint"]),
        ({"exclusive": True}, ["--exclusive"]),
        ({"specs": (NodeSpec(cpus=4, memory_mib=2048, card_milli=2000),)}, ["--gres=gpu:2"]),
    ],
)
def test_every_field_is_one_option(fields: dict[str, Any], added: list[str]) -> None:
    assert sorted({*of(**fields)} - {*of()}) == sorted(added)
    assert {*of()} <= {*of(**fields)}


def test_a_script_keeps_its_own_files_and_folder() -> None:
    script = BatchScript(
        text="#!/bin/sh\n", work_dir="/w", output="o-%j", error="e", input="i", open_mode=OpenMode.APPEND
    )
    found = of(script=script, algorithm=Algorithm(path="/code"))
    assert {"--output=o-%j", "--error=e", "--input=i", "--open-mode=append", "--chdir=/code"} <= set(found)
    plain = of(script=BatchScript(text="#!/bin/sh\n", work_dir="/w"))
    assert not [word for word in plain if word.startswith(("--error", "--input", "--open-mode"))]


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({}, 0),
        ({"terminal": True}, HOLD_SECONDS),
        ({"terminal": True, "debug_hold": DebugHold(window_seconds=60)}, 60),
        ({"terminal": True, "debug_hold": DebugHold(window_seconds=0)}, 0),
        ({"terminal": True, "debug_hold": DebugHold(allocation=HoldAllocation.FREE)}, 0),
        ({"debug_hold": DebugHold(window_seconds=60)}, 0),
    ],
)
def test_the_time_limit_has_the_window_of_a_debug_hold_on_top(fields: dict[str, Any], kept: int) -> None:
    spec = replace(PLAIN, **fields)
    assert (kept_seconds(spec), asked_seconds(spec)) == (kept, 5400 + kept)
    assert ("--comment=cockpit:terminal" in options(spec)) is spec.terminal


@pytest.mark.parametrize(
    ("array", "sweep", "text"),
    [
        (None, None, ""),
        (Array((7, 0, 1, 2)), None, "0-2,7"),
        (Array((0, 1), 1), None, "0-1%1"),
        (None, Sweep(parameters={"lr": ("1", "2", "3")}), "0-2"),
        (None, Sweep(parameters={"lr": ("1", "2")}, parallel=1), "0-1%1"),
    ],
)
def test_arrays_and_sweeps_are_tasks(array: Array | None, sweep: Sweep | None, text: str) -> None:
    spec = replace(PLAIN, array=array, sweep=sweep)
    assert array_text(spec) == text
    assert ("--output=/data/50%%/slurm-%A_%a.out" in options(spec)) is bool(text)
    assert (f"--array={text}" in options(spec)) is bool(text)


def test_words_of_single_fields() -> None:
    task = Dependency(DependencyKind.AFTER_OK, JobId(4), 2)
    assert dependency_text((task, Dependency(DependencyKind.AFTER_ANY, JobId(5)))) == "afterok:4_2,afterany:5"
    assert gres(NodeSpec(card_milli=4000, card_models=("a100", "h100"))) == "gpu:a100:4"
    assert (moment_text(None), moment_text(0)) == ("", "uts0")
    assert qos(PLAIN) == ""


SERVED = replace(
    PLAIN,
    mode=Mode.TENSORFLOW,
    nodes=2,
    parameter_servers=1,
    partitions=("gpu",),
)


def test_each_component_has_its_own_size_behind_a_colon() -> None:
    words = list(options(SERVED))
    assert words[words.index(":") :] == [
        ":",
        "--nodes=1",
        "--ntasks-per-node=1",
        f"--cpus-per-task={PARAMETER_SERVER.cpus}",
        f"--mem={PARAMETER_SERVER.memory_mib}M",
        "--time=01:30:00",
        "--partition=gpu",
    ]
    workers, servers = groups(SERVED)
    assert (workers.role, workers.first, workers.nodes, workers.alone) == ("worker", 0, 2, False)
    assert (servers.role, servers.first, servers.nodes, servers.position) == ("ps", 2, 1, 1)
    assert servers.of_slurm("SLURM_JOB_NODELIST") == "SLURM_JOB_NODELIST_HET_GROUP_1"
    assert servers.peers == "COCKPIT_PEERS_1"


def test_helpers_run_beside_the_group_that_decides_the_end() -> None:
    lines = submission(SERVED).script.splitlines()
    steps = [line for line in lines if line.startswith("srun ")]
    assert steps[0].startswith("srun --het-group=1 --nodes=1 --ntasks=1 --kill-on-bad-exit=1 ")
    assert "srun --het-group=0 --nodes=2 --ntasks=2 --kill-on-bad-exit=1" in "\n".join(lines)
    assert 'cockpit_others="$cockpit_others $!"' in lines
    assert lines[-3:] == ["rc=$?", "kill $cockpit_others 2>/dev/null", '(exit "$rc")']
    assert "COCKPIT_REPLICAS=$((SLURM_JOB_NUM_NODES_HET_GROUP_0 + SLURM_JOB_NUM_NODES_HET_GROUP_1))" in "\n".join(lines)


def test_one_node_needs_no_srun_and_several_of_one_kind_need_no_group() -> None:
    assert "srun " not in submission(PLAIN).script
    assert "kill $cockpit_others" not in submission(PLAIN).script
    two = replace(PLAIN, nodes=2, mode=Mode.PYTORCH)
    assert 'srun --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK"' in submission(two).script


@pytest.mark.parametrize(("milli", "slots"), [(0, 1), (500, 1), (1000, 1), (2000, 2), (2500, 3)])
def test_a_launcher_starts_a_process_for_each_card(milli: int, slots: int) -> None:
    (group,) = groups(replace(PLAIN, specs=(NodeSpec(card_milli=milli),)))
    assert group.slots == slots


def test_pools_without_replicas_are_left_out() -> None:
    pools = (
        WorkerPool(replicas=1, command="a"),
        WorkerPool(replicas=0, command="b"),
        WorkerPool(replicas=2, command="", spec=NodeSpec(cpus=3)),
    )
    spec = replace(PLAIN, mode=Mode.WORKER_POOLS, worker_pools=pools, command="own")
    found = groups(spec)
    assert [(each.role, each.nodes, each.first, each.command) for each in found] == [
        ("workerpool0", 1, 0, "a"),
        ("workerpool2", 2, 1, "own"),
    ]
    assert found[1].each.cpus == 3


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("deepspeed train.py", 'deepspeed --hostfile "$COCKPIT_FILES/hostfile" train.py'),
        ("deepspeed --hostfile=/x train.py", "deepspeed --hostfile=/x train.py"),
        ("python train.py", "python train.py"),
    ],
)
def test_deepspeed_is_given_the_jobs_hosts(command: str, expected: str) -> None:
    spec: JobSpec = replace(PLAIN, mode=Mode.DEEPSPEED, command=command)
    assert launched_command(spec, groups(spec)[0]) == expected


@pytest.mark.parametrize(
    ("mode", "has", "lacks"),
    [
        (Mode.PYTORCH, ["MASTER_ADDR", "COCKPIT_PORT=", "SLOTS=1"], ["cockpit_peers()", "COCKPIT_FILES"]),
        (Mode.DEEPSPEED, ["MASTER_ADDR", "PDSH_RCMD_TYPE", "COCKPIT_FILES"], ["cockpit_peers()", "HYDRA"]),
        (Mode.HOROVOD, ["HYDRA_HOST_FILE", "COCKPIT_FILES"], ["MASTER_ADDR", "COCKPIT_PORT=", "PDSH"]),
        (Mode.TENSORFLOW, ["cockpit_peers()", "COCKPIT_PEERS_0", "COCKPIT_PORT="], ["MASTER_ADDR", "COCKPIT_FILES"]),
        (None, [], ["MASTER_ADDR", "cockpit_peers()", "COCKPIT_FILES", "COCKPIT_PORT="]),
    ],
)
def test_each_mode_has_its_own_preparations(mode: Mode | None, has: list[str], lacks: list[str]) -> None:
    text = "\n".join(prelude(replace(PLAIN, mode=mode, nodes=2)))
    assert all(word in text for word in has)
    assert not any(word in text for word in lacks)
