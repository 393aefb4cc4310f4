"""Every distributed mode's script on a real cluster: its variables are filled in there, and its processes meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.model.asking import LogRequest
from cockpit.model.job import JobState
from cockpit.model.spec import Mode, NodeSpec, Sweep, WorkerPool
from tests.builders import a_spec
from tests.e2e.test_distributed import PATH, TEES, needs_mpi
from tests.e2e.training import PAIRS, TORCH
from tests.real.slurm.real_cluster import ADA
from tests.torch_launcher import needs_torch, require_launcher

if TYPE_CHECKING:
    from cockpit.backends.slurm.backend import SlurmBackend
    from cockpit.model.job import Job
    from tests.real.slurm.real_cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
SMALL = NodeSpec(memory_mib=200)


async def ran(cluster: RealCluster, ada: SlurmBackend, script: str, **fields: object) -> tuple[Job, list[str]]:
    """A job that has ended, and what it wrote."""
    home = cluster.home(ADA)
    (home / "train.py").write_text(script)
    spec = replace(
        a_spec("train"),
        command=f"python3 {home}/train.py",
        output=str(home),
        time_limit_seconds=600,
        account="vision",
        nodes=2,
        specs=(SMALL,),
        env={"PATH": PATH},
    )
    (job,) = await ada.submit([replace(spec, **fields)])
    ended = await ada.wait(job, timeout_seconds=120)
    assert ended is not None
    wrote = (await ada.logs(LogRequest(job=job, limit=1 << 20))).data.decode().splitlines()
    return ended, wrote


@needs_mpi
@pytest.mark.req("SL-20", "LA-12")
async def test_mpirun_starts_its_processes_on_the_nodes_of_the_job(emptied: RealCluster, ada: SlurmBackend) -> None:
    script = "import os; print('rank', os.environ['OMPI_COMM_WORLD_RANK'], 'on', os.environ['SLURMD_NODENAME'])"
    job, wrote = await ran(emptied, ada, script, mode=Mode.HOROVOD, node_names=("n1", "n2"))
    assert job.state is JobState.SUCCEEDED, wrote
    assert sorted(each for each in wrote if each.startswith("rank")) == ["rank 0 on n1", "rank 1 on n2"]
    assert not list(emptied.home(ADA).glob(f".cockpit-{job.id}"))


@needs_torch
@pytest.mark.req("SL-20", "LA-31")
@pytest.mark.parametrize(
    "command",
    [
        "python3 {home}/train.py",
        (
            "torchrun --nnodes ${{WORLD_SIZE}} --nproc_per_node ${{SLOTS}} --node_rank ${{RANK}} "
            "--master_addr ${{MASTER_ADDR}} --master_port ${{MASTER_PORT}} {home}/train.py"
        ),
    ],
    ids=["plain", "torchrun"],
)
async def test_pytorch_reduces_over_two_nodes(emptied: RealCluster, ada: SlurmBackend, command: str) -> None:
    require_launcher()
    given = command.format(home=emptied.home(ADA))
    job, wrote = await ran(emptied, ada, TORCH, mode=Mode.PYTORCH, command=given, env=TEES)
    assert job.state is JobState.SUCCEEDED, wrote
    assert sorted(each[each.index("rank") :] for each in wrote if "total" in each) == [
        "rank 0 of 2 total 3",
        "rank 1 of 2 total 3",
    ]


@pytest.mark.req("SL-20", "LA-20")
@pytest.mark.parametrize("servers", [0, 1])
async def test_tensorflows_replicas_connect_to_each_other(
    emptied: RealCluster, ada: SlurmBackend, servers: int
) -> None:
    job, wrote = await ran(emptied, ada, PAIRS, mode=Mode.TENSORFLOW, parameter_servers=servers)
    assert job.state is JobState.SUCCEEDED, wrote
    assert len([each for each in wrote if each.startswith("at ")]) >= 2
    assert all(len(each.split()) == 3 + 2 + servers for each in wrote if each.startswith("at "))


@pytest.mark.req("SL-20", "LA-61")
async def test_worker_pools_have_nodes_of_their_own_sizes(emptied: RealCluster, ada: SlurmBackend) -> None:
    pools = (WorkerPool(replicas=1, spec=SMALL), WorkerPool(replicas=2, spec=NodeSpec(cpus=2, memory_mib=100)))
    fields = {"mode": Mode.WORKER_POOLS, "worker_pools": pools, "nodes": 1}
    job, wrote = await ran(emptied, ada, PAIRS, **fields)
    assert job.state is JobState.SUCCEEDED, wrote
    assert any(len(each.split()) == 6 for each in wrote if each.startswith("at "))


@pytest.mark.req("SL-20", "LA-40")
async def test_deepspeeds_launcher_connects_to_the_nodes_of_its_host_file(
    emptied: RealCluster, ada: SlurmBackend
) -> None:
    command = f'python3 {emptied.home(ADA)}/train.py --hostfile "$COCKPIT_FILES/hostfile"'
    script = PAIRS.replace('host + ":2300"', '"localhost:" + str(2300 + int(host[1:]))')
    job, wrote = await ran(emptied, ada, script, mode=Mode.DEEPSPEED, command=command)
    assert job.state is JobState.SUCCEEDED, wrote
    assert len([each for each in wrote if each.startswith("at ")]) == 2


@pytest.mark.req("SL-20", "LA-63")
async def test_the_trials_of_a_sweep_are_tasks_of_an_array(emptied: RealCluster, ada: SlurmBackend) -> None:
    sweep = Sweep(parameters={"lr": ("0.1", "it's")})
    script = "import os, sys; print(os.environ['COCKPIT_TRIAL'], sys.argv[1:])"
    job, wrote = await ran(emptied, ada, script, sweep=sweep, nodes=1)
    assert job.state is JobState.SUCCEEDED, wrote
    assert wrote == ["1 ['--lr=0.1']"]
