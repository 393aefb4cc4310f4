"""The texts of the platform's own pages, word for word; only where a page breaks a line is there one blank here."""

from __future__ import annotations

import json
import shlex

import pytest

from cockpit.launch.command import expand
from cockpit.launch.modes import (
    DEEPSPEED_HOSTFILE,
    HOSTFILE,
    MPICH_HOSTFILE,
    ModeSetup,
    Peer,
    Role,
    decides,
    has_agent,
    hostfile,
    mpich_hostfile,
    outfit,
    tf_config,
)
from cockpit.model.image import Mpi
from cockpit.model.spec import Mode, WorkerPool
from tests.builders import a_spec

MPIRUN_OF_ONES_OWN = r"""mpirun -np 16 \
-bind-to none -map-by slot \
-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH \
-x NCCL_SOCKET_IFNAME=^lo,docker0 \
-mca pml ob1 -mca btl ^openib \
-mca btl_tcp_if_exclude lo,docker0 \
python /workspace/algorithm/train.py"""
TORCHRUN = r"""torchrun \
--nnodes ${WORLD_SIZE} \
--nproc_per_node ${SLOTS} \
--node_rank ${RANK} \
--master_addr ${MASTER_ADDR} \
--master_port ${MASTER_PORT} \
/workspace/algorithm/train.py"""
PLAIN = "python /workspace/algorithm/train.py"


def peers(nodes: int, slots: int) -> tuple[Peer, ...]:
    return tuple(Peer(f"server{rank + 1}", slots, Role("worker", rank)) for rank in range(nodes))


def of(mode: Mode, command: str, nodes: int = 2, slots: int = 4, rank: int = 0, mpi: Mpi | None = None) -> ModeSetup:
    return outfit(mode, command, peers(nodes, slots), rank, mpi)


@pytest.mark.req("LA-10", "LA-02")
def test_horovod_finds_the_host_file_of_open_mpi() -> None:
    found = of(Mode.HOROVOD, PLAIN)
    assert found.files[HOSTFILE] == "server1 slots=4\nserver2 slots=4\n"
    assert found.env["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile" == HOSTFILE
    assert found.env["PRTE_MCA_prte_default_hostfile"] == HOSTFILE  # Open MPI 5
    assert hostfile(peers(1, 1)) == "server1 slots=1\n"


@pytest.mark.req("LA-11")
def test_horovod_finds_the_host_file_of_mpich_and_its_interface() -> None:
    found = of(Mode.HOROVOD, PLAIN)
    assert found.files[MPICH_HOSTFILE] == mpich_hostfile(peers(2, 4)) == "server1:4\nserver2:4\n"
    assert found.env["HYDRA_HOST_FILE"] == "/etc/mpi/mpich_hostfile" == MPICH_HOSTFILE
    assert found.env["HYDRA_IFACE"] == "eth0"


@pytest.mark.req("LA-12")
def test_a_horovod_command_is_run_by_mpirun() -> None:
    found = of(Mode.HOROVOD, PLAIN, nodes=4)
    assert found.command == (
        "mpirun --allow-run-as-root -np 16 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH "
        "-mca pml ob1 -mca btl ^openib python /workspace/algorithm/train.py"
    )
    assert expand(found.command, {}) == tuple(shlex.split(found.command))


@pytest.mark.req("LA-12")
@pytest.mark.parametrize(
    "command", [MPIRUN_OF_ONES_OWN, "horovodrun -np 16 python t.py", "bash -c 'mpirun -np 2 x && y'", "mpiexec x"]
)
def test_a_command_with_its_own_launcher_is_not_changed(command: str) -> None:
    found = of(Mode.HOROVOD, command, nodes=4)
    assert (found.command, found.hints) == (command, ())


@pytest.mark.req("LA-12")
def test_the_options_of_mpirun_are_open_mpis() -> None:
    assert of(Mode.HOROVOD, PLAIN, mpi=Mpi.MPICH).command == PLAIN
    assert of(Mode.HOROVOD, PLAIN, mpi=Mpi.OPENMPI).command.startswith("mpirun ")


@pytest.mark.req("LA-12")
@pytest.mark.parametrize("option", ["-H", "-hostfile", "--hostfile"])
def test_a_command_that_names_hosts_gets_a_hint(option: str) -> None:
    found = of(Mode.HOROVOD, f"mpirun {option} server1,server2 -np 8 python t.py")
    assert found.command == f"mpirun {option} server1,server2 -np 8 python t.py"
    assert found.hints == (f"{option} is not needed: the variables name the host file already",)


@pytest.mark.req("LA-12", "LA-40")
@pytest.mark.parametrize("mode", [Mode.HOROVOD, Mode.DEEPSPEED])
def test_only_rank_0_launches_and_connects_to_the_others(mode: Mode) -> None:
    first, second = (of(mode, PLAIN, rank=rank) for rank in (0, 1))
    assert "train.py" in first.command
    assert second.command == "sleep infinity"
    assert first.env["OMPI_MCA_plm_rsh_agent"] == "/run/cockpit-launch/agent"
    assert first.env["PRTE_MCA_plm_ssh_agent"] == "/run/cockpit-launch/agent"  # Open MPI 5
    assert first.files == second.files
    assert "OMPI_MCA_plm_rsh_agent" not in of(mode, PLAIN, nodes=1).env


def with_servers() -> tuple[Peer, ...]:
    return (*peers(2, 1), Peer("server3", 1, Role("ps", 0)))


@pytest.mark.req("LA-20")
def test_tensorflow_with_parameter_servers() -> None:
    worker = {
        "cluster": {"ps": ["server3:2222"], "worker": ["server1:2222", "server2:2222"]},
        "task": {"type": "worker", "index": "1"},
        "environment": "cloud",
    }
    assert json.loads(tf_config(with_servers(), 1)) == worker
    assert json.loads(tf_config(with_servers(), 2)) == worker | {"task": {"type": "ps", "index": "0"}}
    assert outfit(Mode.TENSORFLOW, PLAIN, with_servers(), 1).env["VK_TASK_INDEX"] == "1"


@pytest.mark.req("LA-21")
def test_tensorflow_without_parameter_servers() -> None:
    found = of(Mode.TENSORFLOW, PLAIN, rank=1)
    assert json.loads(found.env["TF_CONFIG"]) == {
        "cluster": {"worker": ["server1:2222", "server2:2222"]},
        "task": {"type": "worker", "index": "1"},
        "environment": "cloud",
    }
    assert found.command == PLAIN


@pytest.mark.req("LA-30")
def test_pytorch_counts_nodes() -> None:
    assert of(Mode.PYTORCH, PLAIN, rank=1).env == {
        "MASTER_ADDR": "server1",
        "MASTER_PORT": "2222",
        "WORLD_SIZE": "2",
        "RANK": "1",
        "SLOTS": "4",
    }


@pytest.mark.req("LA-31")
def test_a_plain_script_is_run_by_pytorchs_launcher() -> None:
    assert of(Mode.PYTORCH, PLAIN).command == (
        "python -m torch.distributed.launch --nproc_per_node=4 --nnodes=2 --node_rank=0 --master_addr=localhost "
        "--master_port=2222 /workspace/algorithm/train.py"
    )
    assert of(Mode.PYTORCH, "\n python3 \\\n train.py --lr $LR", rank=1).command == (
        "python3 -m torch.distributed.launch --nproc_per_node=4 --nnodes=2 --node_rank=1 --master_addr=server1 "
        "--master_port=2222 train.py --lr $LR"
    )


@pytest.mark.req("LA-31")
@pytest.mark.parametrize(
    "command",
    [
        TORCHRUN,
        "python -m torch.distributed.launch --nproc_per_node=4 train.py",
        "bash -c 'python train.py'",
        "/opt/conda/bin/python train.py",
        "python3.9 train.py",
        "pythonic train.py",
    ],
)
def test_any_other_command_is_not_changed(command: str) -> None:
    assert of(Mode.PYTORCH, command).command == command


@pytest.mark.req("LA-31", "LA-01")
def test_torchruns_variables_are_those_of_the_replica() -> None:
    found = of(Mode.PYTORCH, TORCHRUN, rank=1)
    assert expand(found.command, found.env) == (
        *("torchrun", "--nnodes", "2", "--nproc_per_node", "4", "--node_rank", "1"),
        *("--master_addr", "server1", "--master_port", "2222", "/workspace/algorithm/train.py"),
    )


@pytest.mark.req("LA-40")
def test_deepspeed_finds_its_host_file() -> None:
    command = "deepspeed train.py --deepspeed --deepspeed_config ds_config.json"
    found = of(Mode.DEEPSPEED, command)
    assert found.command == command
    assert found.files == {"/job/hostfile": "server1 slots=4\nserver2 slots=4\n"}
    assert DEEPSPEED_HOSTFILE == "/job/hostfile"
    assert found.env.items() >= of(Mode.PYTORCH, command).env.items()


@pytest.mark.req("LA-50")
def test_standalone_changes_nothing() -> None:
    assert outfit(Mode.STANDALONE, PLAIN, peers(1, 4), 0) == ModeSetup(PLAIN) == outfit(None, PLAIN, peers(2, 4), 1)


@pytest.mark.req("LA-30")
def test_other_nodes_reach_pytorchs_master_under_the_name_localhost() -> None:
    assert [of(Mode.PYTORCH, PLAIN, rank=rank).relays for rank in (0, 1)] == [{}, {2222: "server1"}]


@pytest.mark.req("LA-60", "LA-20")
@pytest.mark.parametrize(
    ("fields", "deciding"),
    [
        ({"mode": Mode.TENSORFLOW, "nodes": 2, "parameter_servers": 2}, [True, True, False, False]),
        ({"mode": Mode.TENSORFLOW, "nodes": 3}, [True, True, True]),
        ({"mode": Mode.PYTORCH, "nodes": 2}, [True, True]),
        ({"mode": Mode.HOROVOD, "nodes": 2}, [True, False]),
        ({"mode": Mode.DEEPSPEED, "nodes": 2}, [True, False]),
        ({"mode": Mode.SLURM, "nodes": 2}, [True, False]),
        ({"mode": Mode.WORKER_POOLS, "worker_pools": (WorkerPool(replicas=1),) * 2}, [True, False]),
    ],
)
def test_a_job_lasts_as_long_as_its_workers_or_as_the_replica_that_starts_them(
    fields: dict[str, object], deciding: list[bool]
) -> None:
    spec = a_spec("x", **fields)
    assert [decides(spec, rank) for rank in range(len(deciding))] == deciding


@pytest.mark.req("LA-12", "LA-40")
def test_programs_are_started_in_other_containers_only_by_modes_that_launch_from_the_first() -> None:
    launching = [Mode.HOROVOD, Mode.DEEPSPEED, Mode.SLURM]
    assert [mode for mode in Mode if has_agent(mode, peers(2, 1))] == launching
    assert not any(has_agent(mode, peers(1, 1)) for mode in launching)
    shells = of(Mode.DEEPSPEED, PLAIN).env
    assert (shells["HYDRA_LAUNCHER_EXEC"], shells["PDSH_RCMD_TYPE"]) == ("/run/cockpit-launch/agent", "ssh")


LAUNCHED = (Peer("launcher", 1, Role("launcher", 0)), *peers(2, 4))


@pytest.mark.req("EL-06", "LA-12")
@pytest.mark.parametrize("command", ["horovodrun -np 8 python t.py", "mpirun -H a python t.py"])
def test_a_launcher_runs_its_command_as_it_is_and_lists_only_the_workers(command: str) -> None:
    found = outfit(Mode.HOROVOD, command, LAUNCHED, 0)
    assert (found.command, found.hints) == (command, ())
    assert found.files[HOSTFILE] == "server1 slots=4\nserver2 slots=4\n"
    assert outfit(Mode.HOROVOD, command, LAUNCHED, 1).command == "sleep infinity"


@pytest.mark.req("EL-06")
def test_a_command_that_starts_no_workers_from_the_launcher_gets_a_hint() -> None:
    (hint,) = outfit(Mode.HOROVOD, PLAIN, LAUNCHED, 0).hints
    assert "it runs in the launcher alone; horovodrun --host-discovery-script" in hint


@pytest.mark.req("LA-71")
def test_a_slurm_job_has_the_variables_of_sbatch_and_launchers_connect_through_the_agent() -> None:
    first, second = (of(Mode.SLURM, PLAIN, rank=rank) for rank in (0, 1))
    assert [each.command for each in (first, second)] == [PLAIN, "sleep infinity"]
    assert [each.env["SLURM_NODEID"] for each in (first, second)] == ["0", "1"]
    assert first.env["SLURM_JOB_NODELIST"] == "server1,server2"
    assert first.env["SLURM_JOB_NUM_NODES"] == first.env["SLURM_NNODES"] == "2"
    assert (first.env["OMPI_MCA_plm"], first.env["PRTE_MCA_plm"], first.env["HYDRA_LAUNCHER"]) == ("rsh", "ssh", "ssh")
    assert first.files[HOSTFILE] == "server1 slots=4\nserver2 slots=4\n"


@pytest.mark.req("LA-71")
def test_a_slurm_job_of_one_node_has_no_remote_shell() -> None:
    alone = of(Mode.SLURM, PLAIN, nodes=1)
    assert alone.command == PLAIN
    assert {name for name in alone.env if not name.startswith("SLURM_")} == set()
    assert alone.files == {}
