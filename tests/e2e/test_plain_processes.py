"""An ordinary user on a machine that lets nobody make a container: jobs are plain processes, and everybody is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.e2e.people import ANN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.real

ALL_CPUS = {"cpus": len(os.sched_getaffinity(0)), "memory": "100M"}
FORBIDDEN = "echo 0 > /proc/sys/user/max_user_namespaces"


@pytest.fixture(scope="module")
def confinement(people: None) -> Iterator[Sequence[str]]:
    """Words that start a program in a user namespace in which nobody may make another one."""
    with subprocess.Popen(["unshare", "--user", "sleep", "infinity"]) as first:
        eventually(lambda: not Path(f"/proc/{first.pid}/ns/user").samefile("/proc/self/ns/user"))
        for kind in ("uid", "gid"):
            Path(f"/proc/{first.pid}/{kind}_map").write_text("0 0 65536")
        enters = ("nsenter", "--user", "--target", str(first.pid))
        subprocess.run([*enters, "sh", "-c", FORBIDDEN], check=True)
        yield enters
        first.kill()


@pytest.fixture
def confined(folder: Path, everybodys_python: str, confinement: Sequence[str]) -> Iterator[CockpitUser]:
    somebody = CockpitUser(folder, python=everybodys_python, user=ANN, inside=confinement)
    yield somebody
    somebody.leave()
    eventually(lambda: not alive(somebody))


def alive(user: CockpitUser) -> Sequence[str]:
    """Command lines of what was started with this user's folder in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(user.folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


LEAVES_MUCH = """
pwd -P
echo model > $COCKPIT_OUTPUTS/model.bin
echo note > $TMPDIR/note
cat /workspace/algorithm/t.sh 2>&1 | tail -n 1
setsid sleep 1000 & (setsid sh -c 'sleep 1001 & wait' &)
env -i setsid sleep 1002 &
until pgrep -f 'sleep 1001' >/dev/null; do sleep 0.01; done
exit 3
"""


def test_a_failed_plain_job_ends_completely_and_a_shell_opens_in_its_folder(confined: CockpitUser) -> None:
    volume = confined.write("data/rows", "rows\n").parent
    volumes, env = [{"name": "data", "path": str(volume)}], {"ROWS": "/workspace/volume/data/rows"}
    hooks = {"before_start": "true", "after_end": "echo $COCKPIT_EXIT_CODE > /workspace/outputs/after"}
    job = confined.submit(LEAVES_MUCH, terminal=True, volumes=volumes, env=env, hooks=hooks)
    assert confined.wait(job) == 3
    assert (confined.work / "job/out/after").read_text() == "3\n"
    assert "error · held 3:59" in confined.ok("jobs")
    where, missing = confined.ok("logs", job).splitlines()
    assert where == str(confined.work / "job/algo")
    assert "No such file" in missing
    assert (confined.work / "job/out/model.bin").read_text() == "model\n"
    assert not [line for line in alive(confined) if "sleep" in line]
    looks = 'pwd -P; cat "$TMPDIR/note" "$ROWS"; cat "$COCKPIT_OUTPUTS/model.bin"; id -un'
    inside = confined.run("shell", job, "--", "sh", "-c", looks)
    assert inside.stdout.decode().split() == [where, "note", "rows", "model", ANN]
    assert b"No container: this is a plain process of yours." in inside.stderr


@pytest.mark.req("EL-03")
def test_its_scripts_import_the_elastic_library_beside_their_own_modules(confined: CockpitUser) -> None:
    folder = confined.write("lib/mine.py", "").parent
    asks = "import mine, cockpit.elastic, kubeai.elastic as kubeai; print(kubeai.check_alive())"
    job = confined.submit(f'/usr/bin/python3 -c "{asks}"; echo $PYTHONPATH', env={"PYTHONPATH": str(folder)})
    assert confined.wait(job) == 0, confined.ok("logs", job, "--stderr")
    alive_still, path = confined.ok("logs", job).splitlines()
    assert alive_still == "True"
    assert path == f"{folder}:{confined.folder / 'state/cockpit-cluster/python'}"


@pytest.mark.req("EL-02", "EL-03")
def test_its_elastic_worker_reads_the_list_of_workers_from_file_and_socket(confined: CockpitUser) -> None:
    asks = "import cockpit.elastic as e; print(e.world()['hosts'], e._connect().makefile().readline())"
    script = f'/usr/bin/python3 -c "{asks}"'
    job = confined.submit(script, name="alone", elastic={"workers": 1, "max_workers": 1})
    assert confined.wait(job) == 0, confined.ok("logs", job, "--stderr")
    hosts, sent = confined.ok("logs", job).strip().split("] ")
    assert hosts == "['alone-worker-0'"
    assert [each["host"] for each in json.loads(sent)["workers"]] == ["alone-worker-0"]


def test_missing_isolation_is_reported_everywhere(confined: CockpitUser) -> None:
    job = confined.submit("exit 0")
    assert confined.wait(job) == 0
    lacks = "plain processes, not a container: no file system and no /workspace of its own"
    assert lacks in confined.ok("job", job)
    assert lacks in confined.row("engine", "status")["containers"]
    assert "⚠ No containers here: jobs are plain processes" in confined.ok("overview")
    assert confined.row("engine", "status")["trouble"] == []
    assert confined.row("nodes")["badges"] == ["no containers"]
    doctor = confined.run("doctor").stdout.decode()
    assert "forbidden by user.max_user_namespaces = 0" in doctor
    assert "jobs run as plain processes" in " ".join(doctor.split())


def test_several_replicas_and_images_are_refused_with_what_to_do(confined: CockpitUser) -> None:
    confined.ok("jobs")
    eventually(lambda: "plain processes" in confined.row("engine", "status")["containers"])
    refused = confined.run("submit", str(confined.job("true", nodes=2, mode="pytorch", image="torch:2")))
    assert refused.returncode == 65
    for word in ("image: plain processes have no other root", "nodes: several replicas need", "`cockpit doctor` says"):
        assert word in refused.stderr.decode()
    busy, job = (confined.submit("sleep 100", name=name, specs=[ALL_CPUS]) for name in ("busy", "waits"))
    changed = str(confined.job("true", name="waits", nodes=2, mode="pytorch"))
    assert b"nodes: several replicas need" in confined.run("edit", job, changed).stderr
    for each in (job, busy):
        confined.ok("cancel", each, "--grace", "1s", "--yes")


def test_a_job_is_ended_with_the_reason_where_plain_processes_are_forbidden(confined: CockpitUser) -> None:
    confined.configure("config.toml", "plain_processes = false\n")
    job = confined.submit("exit 0")
    assert confined.wait(job) == 255
    assert "could not be made: unshare: No space left on device" in confined.ok("job", job)
    assert "No job can run here" in confined.ok("overview")


def test_a_killed_holder_ends_its_processes_and_the_engine_ends_the_rest(confined: CockpitUser) -> None:
    job = confined.submit("setsid sleep 1003 & echo $! > $COCKPIT_OUTPUTS/pid; exec sleep 1004", terminal=True)
    pid = confined.work / "job/out/pid"
    eventually(lambda: pid.exists() and pid.read_text())
    confined.kill_engine()
    os.kill(confined.holder_pid(job), signal.SIGKILL)
    assert confined.wait(job) == 255
    assert not [line for line in alive(confined) if "sleep" in line]
    assert "killed from outside" in confined.ok("job", job)
    entered = confined.run("shell", job, "--", "cat", "/dev/stdin", stdin=b"in again")
    assert entered.stdout == b"in again"


def test_a_restarted_engine_finds_its_plain_processes_again(confined: CockpitUser) -> None:
    job = confined.submit("until test -e $COCKPIT_OUTPUTS/go; do sleep 0.02; done; exit 5")
    confined.until(job, "running")
    confined.kill_engine()
    confined.write("job/out/go", "")
    assert confined.wait(job) == 5


def test_a_job_can_neither_end_its_holder_by_a_signal_nor_resist_its_own_end(confined: CockpitUser) -> None:
    attacks = "kill -HUP $PPID; kill -TERM $PPID; kill -RTMIN+2 $PPID; kill -RTMIN+3 $PPID"
    job = confined.submit(f"{attacks}; trap : TERM; touch $COCKPIT_OUTPUTS/up; while :; do sleep 0.05; done")
    eventually((confined.work / "job/out/up").exists)
    confined.ok("cancel", job, "--grace", "1s", "--yes")
    assert confined.wait(job) == 128 + signal.SIGKILL
    assert confined.row("job", job)["state"] == "stopped"


def test_shells_end_with_the_command_that_they_were_opened_beside(confined: CockpitUser) -> None:
    job = confined.submit("until test -e $COCKPIT_OUTPUTS/go; do sleep 0.02; done")
    confined.until(job, "running")
    says = 'echo in > "$COCKPIT_OUTPUTS/in"; exec sleep 1005'
    shell = confined.start("shell", job, "--", "sh", "-c", says)
    eventually((confined.work / "job/out/in").exists)
    confined.write("job/out/go", "")
    assert confined.wait(job) == 0
    assert shell.wait(60) == 128 + signal.SIGKILL


@pytest.mark.req("LA-71")
def test_a_batch_script_runs_in_its_folder_and_finds_its_tools(confined: CockpitUser) -> None:
    script = """#!/bin/bash
#SBATCH -o out.txt --mem=100M -n 2
pwd -P; which srun; srun -l sh -c 'echo $SLURM_PROCID' | sort; scontrol show hostnames
"""
    confined.write("job.sh", script)
    job = confined.ok("submit", "job.sh").split()[-1]
    assert confined.wait(job) == 0, confined.ok("job", job)
    folder, tool, *rest = (confined.work / "out.txt").read_text().splitlines()
    assert folder == str(confined.work.resolve())
    assert tool.startswith(str(confined.folder / "state"))
    assert rest == ["0: 0", "1: 1", "job-sh-0"]
    assert confined.ok("logs", job) == (confined.work / "out.txt").read_text()
