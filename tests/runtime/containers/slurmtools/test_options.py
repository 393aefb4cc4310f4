"""What `srun` makes of its options."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from cockpit.runtime.containers.slurmtools.gpus import cards_per_task, step_resources
from cockpit.runtime.containers.slurmtools.options import (
    Task,
    Unusable,
    assign_tasks,
    format_counts,
    parse,
    parse_counts,
    programs,
    seconds,
)

pytestmark = pytest.mark.req("LA-71")

ENV = {"SLURM_JOB_NODELIST": "a,b,c", "LR": "0.1"}


def shares(line: str, env: dict[str, str]) -> dict[str, int]:
    options, command = parse([*line.split(), "hostname"])
    assert command == ["hostname"]
    tasks = assign_tasks(options, ENV | env)
    assert [task.rank for task in tasks] == list(range(len(tasks)))
    hosts = [task.host for task in tasks]
    return {host: hosts.count(host) for host in hosts}


@pytest.mark.parametrize(
    ("line", "env", "expected"),
    [
        ("", {}, {"a": 1, "b": 1, "c": 1}),
        ("-n 4", {}, {"a": 2, "b": 1, "c": 1}),
        ("-n2", {}, {"a": 1, "b": 1}),
        ("-ln4 -N1", {}, {"a": 4}),
        ("-N 2 --ntasks-per-node=4 -l", {}, {"a": 4, "b": 4}),
        ("--ntasks 5 --nodes=2 --mpi=none", {}, {"a": 3, "b": 2}),
        ("", {"SLURM_NTASKS": "6"}, {"a": 2, "b": 2, "c": 2}),
        ("", {"SLURM_NTASKS": "6", "SLURM_NTASKS_PER_NODE": "2"}, {"a": 2, "b": 2, "c": 2}),
        ("-n 1", {"SLURM_NTASKS_PER_NODE": "2"}, {"a": 1}),
        ("-N 2 --ntasks-per-node=4", {"SLURM_NTASKS": "2"}, {"a": 1, "b": 1}),
        ("-N 2 --ntasks-per-node=1", {"SLURM_NTASKS": "4"}, {"a": 2, "b": 2}),
        ("-w c,a -n 3", {}, {"c": 2, "a": 1}),
        ("-x a", {}, {"b": 1, "c": 1}),
        ("-w b", {"SLURM_NTASKS": "6"}, {"b": 1}),
        ("--exclusive -n1 --overlap", {}, {"a": 1}),
        ("-K1 --kill-on-bad-exit=1 -u --cpu-bind none", {}, {"a": 1, "b": 1, "c": 1}),
        ("-n 1", {"SLURM_JOB_NODELIST": "gpu[07-08]"}, {"gpu07": 1}),
    ],
)
def test_tasks_are_spread_over_the_nodes_in_blocks(line: str, env: dict[str, str], expected: dict[str, int]) -> None:
    assert shares(line, env) == expected


def test_each_task_has_its_node_and_local_id() -> None:
    assert assign_tasks({"ntasks": "3", "nodes": "2"}, ENV) == [
        Task(0, "a", 0, 0),
        Task(1, "a", 0, 1),
        Task(2, "b", 1, 0),
    ]


@pytest.mark.parametrize("words", [["-m", "cyclic"], ["--distribution=cyclic:block"]])
def test_ranks_alternate_over_the_nodes_where_the_distribution_is_cyclic(words: list[str]) -> None:
    options, _ = parse([*words, "-n", "5", "hostname"])
    assert [(task.host, task.local) for task in assign_tasks(options, ENV)] == [
        *(("a", 0), ("b", 0), ("c", 0)),
        *(("a", 1), ("b", 1)),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "--het-group=1 x",
        "--het-group=0,1 x",
        "-n 0 x",
        "-n",
        "-N two x",
        "-w elsewhere x",
        "-N 4 x",
        "-x a,b,c x",
        "-n 2",
        "--container-image=ubuntu hostname",
        "--container-mounts /data:/data hostname",
        "--nmber-of-tasks=2 hostname",
        "-y hostname",
        "--cpus=2 hostname",
        "--jobid=8 hostname",
        "-n 1 ./server : -n 2 ./worker",
    ],
)
def test_unsupported_options_are_reported(line: str) -> None:
    with pytest.raises(Unusable):
        assign_tasks(parse(line.split())[0], ENV)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--container-image=ubuntu hostname", "--container-image: .* #SBATCH --container-image"),
        ("--nmber-of-tasks=2 hostname", "unrecognized option '--nmber-of-tasks'"),
        ("--cpus=2 hostname", "option '--cpus' is ambiguous"),
        ("-n 1 ./server : -n 2 ./worker", "own srun with &"),
    ],
)
def test_the_refusal_of_an_option_names_it_and_what_to_do(line: str, expected: str) -> None:
    with pytest.raises(Unusable, match=expected):
        parse(line.split())


def test_an_option_may_be_cut_short_and_has_its_older_names() -> None:
    options, command = parse(["--tasks-per-node=2", "--overc", "--cpu_bind=none", "env"])
    assert (options, command) == ({"ntasks-per-node": "2", "overcommit": "", "cpu_bind": "none"}, ["env"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("0", 0), ("UNLIMITED", 0), ("30", 1800), ("1:30", 90), ("23:00:00", 82_800)),
        *(("1-2", 93_600), ("1-2:3", 93_780), ("1-2:3:4", 93_784), ("0:01", 1)),
    ],
)
def test_the_time_limit_of_a_step_is_read_as_slurm_does(text: str, expected: int) -> None:
    assert seconds(text, "--time") == expected


@pytest.mark.parametrize("text", ["soon", "1:2:3:4", "-5", "1-", "1:-2"])
def test_a_time_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Unusable, match="--time"):
        seconds(text, "--time")


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, "1"), ({"gpus-per-task": "2"}, "2"), ({"gres": "gpu:1"}, None), ({"gpus": "1"}, None)],
)
def test_a_step_takes_over_the_cards_per_task_of_its_script(options: dict[str, str], expected: str | None) -> None:
    wanted = dict(options)
    cards_per_task(wanted, {"SLURM_GPUS_PER_TASK": "1"})
    assert wanted.get("gpus-per-task") == expected


@pytest.mark.parametrize(
    ("line", "cpus", "fits"),
    [
        ("-N1 -n 4", "4", True),
        ("-N1 -n 5", "4", False),
        ("-N1 -n 5 --overcommit", "4", True),
        ("-N1 -n 2 -c 3", "4", False),
        ("-n 3", "1,2,1", True),
        ("-n 4", "1,2,1", False),
        ("-N2 -n 4", "2(x2),1", True),
        ("-n 1 -w b --exact -c 2", "1,2,1", True),
    ],
)
def test_a_step_has_the_cpus_of_its_job_at_most(line: str, cpus: str, fits: bool) -> None:
    env = {**ENV, "SLURM_JOB_CPUS_PER_NODE": cpus, "SLURM_CPUS_ON_NODE": cpus[0]}
    options, _ = parse([*line.split(), "hostname"])
    with nullcontext() if fits else pytest.raises(Unusable, match="More processors requested than permitted"):
        step_resources(assign_tasks(options, env), options, env)


def test_the_cpus_per_task_of_a_step_come_from_the_option_or_its_variable() -> None:
    env = {**ENV, "SLURM_JOB_CPUS_PER_NODE": "4(x3)", "SRUN_CPUS_PER_TASK": "2", "SLURM_CPUS_PER_TASK": "3"}
    options = {"ntasks": "1", "exact": ""}
    held = step_resources(assign_tasks(options, env), options, env)({})
    assert held == {"cpus": {"a": 2}, "cards": []}


@pytest.mark.parametrize("counts", [[1], [2, 2], [2, 1], [1, 2, 2, 2, 1]])
def test_counts_of_nodes_are_grouped(counts: list[int]) -> None:
    assert parse_counts(format_counts(counts)) == counts
    assert format_counts([4, 4, 1]) == "4(x2),1"


def test_srun_outside_of_a_job_reports_it() -> None:
    with pytest.raises(Unusable, match="inside of a job"):
        assign_tasks({}, {})


def test_a_program_file_names_what_each_task_runs() -> None:
    lines = programs("# roles\n0 ./server -p 1\n1-2,4 ./worker %t %o\n* ./rest\n")
    assert lines == [({0}, ["./server", "-p", "1"]), ({1, 2, 4}, ["./worker", "%t", "%o"]), (set(), ["./rest"])]


def test_a_steps_tasks_fill_nodes_up_to_the_scripts_tasks_per_node_unless_the_step_counts_its_own() -> None:
    script = {"SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "4"}
    assert shares("", script) == {"a": 4}
    assert shares("-n 5", script) == {"a": 2, "b": 2, "c": 1}
