"""Distributed jobs for real: mpirun, PyTorch's launchers, and what TensorFlow and DeepSpeed go by, over the network of
their job."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.e2e.training import HYDRA, PAIRS, TORCH
from tests.torch_launcher import needs_torch, require_launcher

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

FOUR_NODES = "overcommit = true\n" + "".join(
    f'[[nodes]]\nname = "n{number}"\ncpus = 4\nmemory = "4G"\n' for number in range(1, 5)
)
PATH = "/usr/bin:/bin"
"""Debian's own python3 comes first, which Debian's torch is for."""
TEES = {"PATH": PATH, "PET_REDIRECTS": "1", "PET_TEE": "1"}
"""Debian's torch 1.13 knows no other redirection under Python 3.11, not even its own default."""
SECONDS = 400
"""Patience: each process imports PyTorch, which takes minutes where many others run."""


needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="Debian's openmpi-bin is not installed")
needs_mpich = pytest.mark.skipif(shutil.which("mpiexec.hydra") is None, reason="Debian's mpich is not installed")


@pytest.fixture
def lab(user: CockpitUser) -> Iterator[CockpitUser]:
    """A cluster of four nodes."""
    user.configure("cluster.toml", FOUR_NODES)
    yield user
    networks = user.folder / "state/cockpit-cluster/networks"
    eventually(lambda: not networks.exists())


def submit(user: CockpitUser, command: str, script: str, *, name: str = "train", **fields: Any) -> str:
    user.write(f"{name}/algo/train.py", script)
    job = {"command": command, "specs": [{"cpus": 1, "memory": "900M"}], "nodes": 2, "env": {"PATH": PATH}, **fields}
    return user.submit("", name=name, **job)


def outputs(user: CockpitUser, job: str, ranks: int = 2) -> list[str]:
    return [user.ok("logs", f"{job}/{rank}") for rank in range(ranks)]


@needs_mpi
@pytest.mark.req("LA-10", "LA-12")
def test_mpirun_starts_its_processes_in_the_containers_of_its_host_file(lab: CockpitUser) -> None:
    script = "import os, socket; print('rank', os.environ['OMPI_COMM_WORLD_RANK'], 'on', socket.gethostname())"
    job = submit(lab, "python3 /workspace/algorithm/train.py", script, mode="horovod", nodes=3)
    assert lab.wait(job, SECONDS) == 0
    assert sorted(outputs(lab, job)[0].splitlines()) == [f"rank {rank} on train-{rank}" for rank in range(3)]
    assert lab.row("jobs", "--all", "--filter", f"id:{job}", "--columns", "state") == {"state": "succeeded"}


@needs_mpich
@pytest.mark.req("LA-11")
def test_mpichs_launcher_starts_ranks_in_the_containers_of_its_own_host_file(lab: CockpitUser) -> None:
    launch = "mpiexec.hydra -np 2 python3 /workspace/algorithm/train.py"
    job = submit(lab, launch, HYDRA, mode="horovod")
    assert lab.wait(job, SECONDS) == 0, lab.ok("logs", f"{job}/0", "--stderr")
    assert sorted(outputs(lab, job)[0].splitlines()) == [f"rank {rank} of 2 on train-{rank}" for rank in (0, 1)]


@needs_torch
@pytest.mark.req("LA-30", "LA-31")
def test_both_launchers_of_pytorch_reduce_over_two_containers(lab: CockpitUser) -> None:
    require_launcher()
    torchrun = (
        "torchrun --nnodes ${WORLD_SIZE} --nproc_per_node ${SLOTS} --node_rank ${RANK} "
        "--master_addr ${MASTER_ADDR} --master_port ${MASTER_PORT} /workspace/algorithm/train.py"
    )
    commands = {
        "run": torchrun,
        "module": "python3 -u -W ignore -m train",
    }
    jobs = [submit(lab, command, TORCH, name=name, mode="pytorch", env=TEES) for name, command in commands.items()]
    for job in jobs:
        assert lab.wait(job, SECONDS) == 0, lab.ok("job", job) + lab.ok("logs", f"{job}/0", "--stderr")
        assert outputs(lab, job) == [f"[default0]:rank {rank} of 2 total 3\n" for rank in range(2)]


@pytest.mark.req("LA-01")
def test_a_scripts_own_variables_reach_the_shell_of_each_replica(lab: CockpitUser) -> None:
    loop = 'bash -c "for i in 1 2; do echo $i of $WORLD_SIZE at $((i + RANK)) ${none:-none} $(echo "a  b"); done"'
    job = submit(lab, loop, "", mode="pytorch")
    assert lab.wait(job, SECONDS) == 0, lab.ok("logs", f"{job}/0", "--stderr")
    assert outputs(lab, job) == ["".join(f"{i} of 2 at {i + rank} none a b\n" for i in (1, 2)) for rank in range(2)]


@pytest.mark.req("LA-70")
def test_a_kubernetes_job_runs_unchanged(lab: CockpitUser) -> None:
    manifest = """apiVersion: batch/v1
kind: Job
metadata: {name: pi, labels: {team: nlp}}
spec:
  completions: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: pi
        command: [sh, -c]
        args: ['for i in a b; do echo $i $(LR) $(NONE) 2>/dev/null $JOB_COMPLETION_INDEX; done']
        env: [{name: LR, value: "0.1"}]
        resources: {limits: {cpu: 1, memory: 900Mi}}
"""
    said = lab.run("submit", str(lab.write("pi.yaml", manifest)))
    assert said.returncode == 0, said.stderr
    job = said.stdout.decode().split()[-1]
    assert lab.wait(job, SECONDS) == 0
    for task in (0, 1):
        assert lab.ok("logs", f"{job}_{task}") == "".join(f"{letter} 0.1 {task}\n" for letter in "ab")
    assert "team=nlp" in lab.ok("job", f"{job}_0")


@pytest.mark.req("LA-21", "LA-40")
def test_every_pair_of_hosts_given_to_tensorflow_and_deepspeed_connects(lab: CockpitUser) -> None:
    tensorflow = submit(lab, "python3 /workspace/algorithm/train.py", PAIRS, name="flow", mode="tensorflow")
    launch = "python3 /workspace/algorithm/train.py --hostfile /job/hostfile"
    deepspeed = submit(lab, launch, PAIRS, name="speed", mode="deepspeed", env={})
    assert (lab.wait(tensorflow, SECONDS), lab.wait(deepspeed, SECONDS)) == (0, 0)
    assert outputs(lab, tensorflow) == [f"at flow-{rank}:2222 met flow-0:2222 flow-1:2222\n" for rank in range(2)]
    assert sorted(outputs(lab, deepspeed)[0].splitlines()) == [
        f"at speed-{rank}:2300 met speed-0:2300 speed-1:2300" for rank in range(2)
    ]


@pytest.mark.req("JT-08", "LA-70")
def test_srun_in_a_batch_script_starts_tasks_on_all_nodes(lab: CockpitUser) -> None:
    script = """#!/bin/bash
#SBATCH --job-name=multi --nodes=2 --ntasks=3 --mem=900M
export WHO=me
srun sh -c 'echo $WHO $SLURM_PROCID/$SLURM_NTASKS on $(hostname); exit $SLURM_PROCID'
echo "srun: $?"
"""
    job = lab.ok("submit", str(lab.write("multi.sh", script))).split()[-1]
    assert lab.wait(job, SECONDS) == 0, lab.ok("logs", job, "--stderr")
    said = outputs(lab, job)
    assert sorted(said[0].splitlines()) == [
        "me 0/3 on multi-0",
        "me 1/3 on multi-0",
        "me 2/3 on multi-1",
        "srun: 2",
        "srun: error: multi-0: task 1: Exited with exit code 1",
        "srun: error: multi-1: task 2: Exited with exit code 2",
    ]
    assert said[1] == ""
