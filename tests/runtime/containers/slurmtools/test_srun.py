"""The srun of a job's script, run as a program of its own."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.slurmtools import srun
from cockpit.runtime.containers.slurmtools.options import Task, parse

if TYPE_CHECKING:
    from pathlib import Path

SIGNALLED_AT_ONCE = """
import os, signal, sys
from cockpit.runtime.containers.slurmtools import srun

start = srun._child

def start_and_signal(*args, **options):
    process = start(*args, **options)
    os.kill(os.getpid(), signal.SIGUSR1)
    return process

srun._child = start_and_signal
sys.exit(srun.main(["-n2", "--overlap", "sleep", "60"]))
"""


@pytest.mark.req("LA-71")
def test_a_signal_that_comes_while_tasks_start_reaches_all_of_them(tmp_path: Path) -> None:
    env = os.environ | {
        "TMPDIR": str(tmp_path),
        "COCKPIT_PLAIN": "1",
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "a",
        "SLURM_CPUS_ON_NODE": "2",
    }
    run = subprocess.run(
        [sys.executable, "-c", SIGNALLED_AT_ONCE], env=env, cwd=tmp_path, capture_output=True, check=False, timeout=50
    )
    assert run.returncode == 128 + 10, run.stderr


class Script:
    """A batch script whose `srun` is run as a program, on host `a` of a job with two hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = os.environ | {
            "TMPDIR": str(folder),
            "COCKPIT_PLAIN": "1",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NODELIST": "a",
            "SLURMD_NODENAME": "a",
            "SLURM_CPUS_ON_NODE": "4",
        }

    def srun(self, *words: str, text: str = "", program: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program or RUN, *words],
            env=self.env | env,
            cwd=self.folder,
            input=text,
            text=True,
            capture_output=True,
            check=False,
            timeout=50,
        )


RUN = "import sys; from cockpit.runtime.containers.slurmtools.srun import main; sys.exit(main(sys.argv[1:]))"
DENYING = """
import sys
from cockpit.runtime.containers.slurmtools import srun

start = srun._child

def deny(words, *args, **options):
    if words[0] != "/bin/sh":
        raise PermissionError(13, "Permission denied")
    return start(words, *args, **options)

srun._child = deny
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


@pytest.mark.req("LA-71")
def test_each_task_runs_with_its_rank_in_the_folder_of_the_script_or_the_given_one(script: Script) -> None:
    say = "echo $SLURM_PROCID/$SLURM_NTASKS $SLURM_LOCALID $SLURM_STEP_ID $SLURM_GTIDS $SLURM_NNODES $PWD $MINE"
    run = script.srun("-l", "-n3", "--export=ALL,MINE=x", "sh", "-c", say)
    lines = sorted(run.stdout.splitlines())
    assert lines == [f"{rank}: {rank}/3 {rank} 0 0,1,2 1 {script.folder} x" for rank in range(3)]
    (script.folder / "inner").mkdir()
    run = script.srun("-n1", "-D", "inner", "sh", "-c", "pwd; echo $SLURM_STEP_ID")
    assert run.stdout == f"{script.folder}/inner\n1\n"


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("true", 0, ""),
        ("exit $SLURM_PROCID", 2, "task 2: Exited with exit code 2"),
        ("exit $((3 - SLURM_PROCID))", 3, "task 0: Exited with exit code 3"),
        ("test $SLURM_PROCID = 0 || kill -TERM $$", 143, "task 1: Terminated"),
    ],
)
def test_the_exit_code_is_the_largest_of_all_tasks(script: Script, command: str, code: int, said: str) -> None:
    run = script.srun("-n3", "sh", "-c", command)
    assert run.returncode == code
    assert said in run.stderr


@pytest.mark.req("LA-71")
def test_a_quiet_step_does_not_say_what_failed(script: Script) -> None:
    run = script.srun("-Q", "sh", "-c", "exit 4")
    assert (run.returncode, run.stderr) == (4, "")


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(("file", "code"), [("no-such", 2), ("./data", 13), ("./broken", errno.ENOEXEC)])
def test_a_command_that_cannot_be_run_is_reported_as_slurm_does(script: Script, file: str, code: int) -> None:
    (script.folder / "data").write_text("text")
    (script.folder / "broken").write_text("neither a program nor a script with an interpreter")
    (script.folder / "broken").chmod(0o755)
    run = script.srun(file)
    assert run.returncode == code
    assert f"srun: error: execve(): {file}: " in run.stderr


@pytest.mark.req("LA-71")
def test_a_missing_command_is_not_found_although_exec_was_denied_a_folder_of_path(script: Script) -> None:
    """exec says EACCES of a program that no folder has if PATH has a folder which the user may not enter."""
    denied = RUN.replace("import sys; ", DENYING)
    run = script.srun("no-such", program=denied)
    assert run.returncode == 2
    assert "srun: error: execve(): no-such: No such file or directory" in run.stderr
    assert script.srun("true", program=denied).returncode == 13


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(("words", "env"), [(["-K"], {}), ([], {"SLURM_KILL_BAD_EXIT": "1"}), (["-W", "1"], {})])
def test_the_other_tasks_are_ended_after_the_first(script: Script, words: list[str], env: dict[str, str]) -> None:
    """With -K after a failure, with -W some time after any end."""
    run = script.srun(*words, "-n2", "sh", "-c", "[ $SLURM_PROCID = 1 ] && exit 5; exec sleep 60", **env)
    assert run.returncode == 143
    assert "srun: Terminating StepId=7.0" in run.stderr
    assert ("First task exited 1s ago; still running: 0" in run.stderr) == ("-W" in words)


@pytest.mark.req("LA-71")
def test_a_step_ends_at_its_own_time_limit(script: Script) -> None:
    run = script.srun("-t", "0:1", "sleep", "60")
    assert run.returncode == 143
    assert "STEP 7.0 CANCELLED AT" in run.stderr
    assert "DUE TO TIME LIMIT" in run.stderr


@pytest.mark.req("LA-71")
def test_every_task_reads_all_of_the_scripts_input(script: Script) -> None:
    run = script.srun("-n2", "-l", "cat", text="one\ntwo\n")
    assert sorted(run.stdout.splitlines()) == ["0: one", "0: two", "1: one", "1: two"]
    assert script.srun("-n1", "cat", text="one\n").stdout == "one\n"
    run = script.srun("-n2", "-l", "-i", "1", "cat", text="one\n")
    assert run.stdout == "1: one\n"


@pytest.mark.req("LA-71")
def test_a_program_file_gives_each_task_its_command(script: Script) -> None:
    (script.folder / "programs").write_text("0 echo first %t %o\n* echo rest %t %o\n")
    run = script.srun("-n3", "-l", "--multi-prog", "programs")
    assert sorted(run.stdout.splitlines()) == ["0: first 0 0", "1: rest 1 0", "2: rest 2 1"]
    (script.folder / "programs").write_text("0 true\n")
    run = script.srun("-n2", "--multi-prog", "programs")
    assert (run.returncode, run.stderr) == (1, "srun: error: The program file says nothing of task 1\n")
    run = script.srun("-n2", "--multi-prog", "none")
    assert "Unable to open the program file none: No such file or directory" in run.stderr


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-V"], 0, "slurm 22.05 (cockpit)\n"),
        (["--mpi=list"], 0, "MPI plugin types are...\n\tnone\n"),
        (["--mpi=pmix", "true"], 1, "srun: error: --mpi=pmix: tasks of srun are no ranks of one MPI program"),
        (["--mpi=none", "true"], 0, ""),
        ([], 1, "srun: error: No command given to execute."),
        (["-n2", "-o", "/none/out", "true"], 1, "srun: error: Could not open file /none/out"),
    ],
)
def test_srun_says_what_it_cannot_do(script: Script, words: list[str], code: int, said: str) -> None:
    run = script.srun(*words)
    assert run.returncode == code
    assert (run.stdout or run.stderr).startswith(said)
    after = script.srun("-n4", "--exact", "sh", "-c", "echo $SLURM_STEP_ID")
    assert after.returncode == 0, "and gives back what it held"


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ("ALL", {"MINE", "OTHER", "PATH", "SLURM_JOB_ID"}),
        ("ALL,NEW=1", {"MINE", "OTHER", "PATH", "SLURM_JOB_ID", "NEW"}),
        ("NEW=a=b", {"MINE", "OTHER", "PATH", "SLURM_JOB_ID", "NEW"}),
        ("MINE", {"MINE", "PATH", "SLURM_JOB_ID"}),
        ("MINE,NEW=1", {"MINE", "PATH", "SLURM_JOB_ID", "NEW"}),
        ("NONE", {"PATH", "SLURM_JOB_ID"}),
    ],
)
def test_tasks_get_the_variables_that_export_names(wanted: str, names: set[str]) -> None:
    env = {"MINE": "1", "OTHER": "2", "PATH": "/bin", "SLURM_JOB_ID": "7"}
    exported = srun._exported_variables({"export": wanted}, env)
    assert set(exported) == names
    assert exported.get("NEW") in {None, "1", "a=b"}
    assert srun._exported_variables({}, env) == env


def step(words: str, **env: str) -> srun.Step:
    options, command = parse(words.split())
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a,b", "SLURMD_NODENAME": "", "SLURM_NTASKS": "3"}
    return srun.Step(options, command, {**job, **env})


@pytest.mark.req("LA-71")
def test_the_variables_of_a_task_are_those_of_slurm() -> None:
    made = step("-n3 -J mine -c 2 x")
    made.number = 4
    values = made.variables(made.tasks[1])
    assert values == {
        "SLURMD_NODENAME": "a",
        "SLURM_CPUS_PER_TASK": "2",
        "SLURM_GTIDS": "0,1",
        "SLURM_JOBID": "7",
        "SLURM_JOB_NAME": "mine",
        "SLURM_LOCALID": "1",
        "SLURM_NNODES": "2",
        "SLURM_NODEID": "0",
        "SLURM_NPROCS": "3",
        "SLURM_NTASKS": "3",
        "SLURM_PROCID": "1",
        "SLURM_STEPID": "4",
        "SLURM_STEP_ID": "4",
        "SLURM_STEP_NODELIST": "a,b",
        "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_STEP_TASKS_PER_NODE": "2,1",
        "SLURM_TASKS_PER_NODE": "2,1",
    }
    made.address = "198.18.0.2"
    values = made.variables(made.tasks[2])
    assert values["SLURM_LAUNCH_NODE_IPADDR"] == values["SLURM_SRUN_COMM_HOST"] == "198.18.0.2"
    assert "SLURM_JOB_NAME" not in step("x").variables(Task(0, "a", 0, 0))


@pytest.mark.req("LA-71")
def test_a_task_on_another_host_gets_the_scripts_variables_but_none_of_its_container() -> None:
    env = {
        "MINE": "a b",
        "COCKPIT_REPLICA": "0",
        "CUDA_VISIBLE_DEVICES": "GPU-1",
        "PWD": "/x",
        "SLURM_CPUS_ON_NODE": "4",
    }
    made = step("x", **env)
    text = made._text_for(["run", "it's"], made.tasks[2], "/my folder")
    assert text.startswith("cd '/my folder' 2>/dev/null; env ")
    assert text.endswith(" run 'it'\"'\"'s'")
    words = shlex.split(text)
    assert {"MINE=a b", "SLURMD_NODENAME=b", "SLURM_PROCID=2"} <= set(words)
    assert not [word for word in words if word.startswith(("COCKPIT_", "CUDA_", "PWD=", "SLURM_CPUS_ON_NODE"))]
    assert "cut -d, -f1-2" in step("--gpus-per-task 2 x")._text_for(["run"], made.tasks[2], "/")


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["no-such", "x"], 2, "srun: error: execve(): no-such: No such file or directory\n"),
        (["sh", "-c", "exit $1", "sh", "4"], 4, ""),
    ],
)
def test_a_task_on_another_host_ends_with_its_own_code_or_slurms(words: list[str], code: int, said: str) -> None:
    text = step("x")._text_for(words, Task(2, "b", 2, 0), "/")
    run = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (code, said)


@pytest.mark.parametrize(
    ("words", "env", "patience", "kills"),
    [
        ("x", {}, 0, False),
        ("-W 5 -K x", {}, 5, True),
        ("-K0 x", {"SLURM_KILL_BAD_EXIT": "1", "SLURM_WAIT": "9"}, 9, False),
        ("-W 0 x", {"SLURM_KILL_BAD_EXIT": "1", "SLURM_WAIT": "9"}, 0, True),
    ],
)
def test_options_take_precedence_over_variables(words: str, env: dict[str, str], patience: int, kills: bool) -> None:
    made = step(words, **env)
    assert (made.patience, srun._kills_on_bad_exit(made.options, made.env)) == (patience, kills)


@pytest.mark.parametrize(
    ("words", "env", "limit"),
    [("x", {}, 0), ("-t 2 x", {"SLURM_TIMELIMIT": "9"}, 120), ("x", {"SLURM_TIMELIMIT": "9"}, 540)],
)
def test_the_limit_of_a_step_is_its_own_or_the_variables(words: str, env: dict[str, str], limit: int) -> None:
    assert step(words, **env).limit == limit


def test_a_signal_reaches_the_group_of_a_task_and_only_the_agent_of_one_elsewhere(monkeypatch) -> None:
    sent: list[tuple[str, int, int]] = []

    def killpg(pid: int, number: int) -> None:
        sent.append(("group", pid, number))
        if pid == 10:
            raise ProcessLookupError

    monkeypatch.setattr(srun.os, "killpg", killpg)
    monkeypatch.setattr(srun.os, "kill", lambda pid, number: sent.append(("process", pid, number)))
    made = step("x", SLURMD_NODENAME="a")
    made.running = {10 + task.rank: task for task in made.tasks}
    made.forward(15)
    assert sent == []
    made._has_started = True
    made.forward(15)
    assert sent == [("group", 10, 15), ("group", 11, 15), ("process", 12, 15)]
    made.options["pty"] = ""
    sent.clear()
    made.send(2)
    assert [kind for kind, *_ in sent] == ["process"] * 3


@pytest.mark.req("LA-71")
def test_a_host_without_an_address_has_an_empty_one() -> None:
    assert [srun._address(name) for name in ("localhost", "", "no-such-host.invalid")] == ["127.0.0.1", "", ""]
