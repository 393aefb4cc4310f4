"""Adds what a distributed mode needs to a replica: variables, files, and a launcher before its command.

Sources: the platform's "运行指令说明" and "分布式模式说明" for Horovod, TensorFlow, PyTorch and DeepSpeed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from cockpit.launch.command import STAYS_OPEN, words_of
from cockpit.launch.torchlines import torch_command
from cockpit.model.image import Mpi
from cockpit.model.spec import JobSpec, Mode

PORT: Final = 2222
"""The port of PyTorch's master and of every TensorFlow server."""
HOSTFILE: Final = "/etc/mpi/hostfile"
MPICH_HOSTFILE: Final = "/etc/mpi/mpich_hostfile"
DEEPSPEED_HOSTFILE: Final = "/job/hostfile"
INTERFACE: Final = "eth0"
AGENT: Final = "/run/cockpit-launch/agent"
"""Starts a program in another container of the same job, as a remote shell does."""
AGENT_FOLDER: Final = "/run/cockpit-launch/bin"
"""The folder with the agent under the name `ssh`, for launchers that cannot be given another program."""
LAUNCHER_ROLE: Final = "launcher"
"""The role of a replica that starts the others' processes and none of its own."""
LAUNCHED_BY_FIRST: Final = frozenset({Mode.HOROVOD, Mode.DEEPSPEED, Mode.SLURM})
"""Modes whose command runs once, on rank 0, and starts the processes of all."""

_MPI_LAUNCHERS: Final = ("mpirun", "mpiexec", "horovodrun")
_HOST_OPTIONS: Final = frozenset({"-H", "-host", "--host", "-hostfile", "--hostfile", "-machinefile", "--machinefile"})


class Role(msgspec.Struct, frozen=True):
    """The role of a replica among the others."""

    word: str
    """The role as TensorFlow calls it: `worker`, `ps`."""
    index: int
    """Among those of the word, from 0."""


class Peer(msgspec.Struct, frozen=True):
    """One replica as all others know it."""

    host: str
    slots: int
    """The number of its cards; 1 without any."""
    role: Role


class ModeSetup(msgspec.Struct, frozen=True):
    """The additions of a mode to one replica."""

    command: str
    """The command before its expansion."""
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Text by path in the container."""
    relays: dict[int, str] = {}
    """Ports of its own `localhost` that are another host's."""
    hints: tuple[str, ...] = ()
    """Hints for a user who looks at the launch beforehand."""


def outfit(mode: Mode | None, command: str, peers: Sequence[Peer], rank: int, mpi: Mpi | None = None) -> ModeSetup:
    """Return the additions for the replica `rank` of `peers`, which are in the order of their ranks. `mpi`: the
    image's; None: not known, treated as Open MPI."""
    match mode:
        case Mode.HOROVOD:
            return _horovod(command, peers, rank, mpi)
        case Mode.TENSORFLOW:
            return ModeSetup(command, _tensorflow(peers, rank))
        case Mode.PYTORCH:
            return _torch_outfit(command, peers, rank)
        case Mode.DEEPSPEED:
            return _deepspeed(command, peers, rank)
        case Mode.SLURM:
            return _slurm(command, peers, rank)
        case Mode.STANDALONE | Mode.WORKER_POOLS | None:
            return ModeSetup(command)


def decides(spec: JobSpec, rank: int) -> bool:
    """Return whether the job lasts as long as this replica: other replicas only serve the first one, or the workers."""
    if spec.parameter_servers:
        return rank < spec.nodes
    # Where the first replica starts the programs of all others, those only keep their containers open and never end.
    return rank == 0 or (spec.mode not in LAUNCHED_BY_FIRST and not spec.worker_pools)


def has_agent(mode: Mode | None, peers: Sequence[Peer]) -> bool:
    """Return whether rank 0 starts programs in other containers of its job."""
    return mode in LAUNCHED_BY_FIRST and len(peers) > 1


def hostfile(peers: Sequence[Peer]) -> str:
    """Return the host file that Open MPI and DeepSpeed read."""
    return "".join(f"{peer.host} slots={peer.slots}\n" for peer in peers)


def mpich_hostfile(peers: Sequence[Peer]) -> str:
    return "".join(f"{peer.host}:{peer.slots}\n" for peer in peers)


def torch_environment(peers: Sequence[Peer], rank: int) -> dict[str, str]:
    """Return the variables of PyTorch's launchers.

    They count nodes, not processes: torchrun and `torch.distributed.launch` compute the latter.
    """
    return {
        "MASTER_ADDR": peers[0].host,
        "MASTER_PORT": str(PORT),
        "WORLD_SIZE": str(len(peers)),
        "RANK": str(rank),
        "SLOTS": str(peers[rank].slots),
    }


def tf_config(peers: Sequence[Peer], rank: int) -> str:
    """Return TensorFlow's cluster specification; the index is a string, as the platform writes it."""
    cluster: dict[str, list[str]] = {}
    for peer in peers:
        # In the order of the ranks, so that each address is at the index that its replica has as its role.
        cluster.setdefault(peer.role.word, []).append(f"{peer.host}:{PORT}")
    own = peers[rank].role
    return json.dumps(tf_values(cluster, own.word, str(own.index)))


def tf_values(cluster: Mapping[str, Any], word: str, index: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return `TF_CONFIG` of one of them. `cluster`: the addresses of each role."""
    return {
        "cluster": dict(sorted(cluster.items())),
        "task": {"type": word, "index": index},
        "environment": "cloud",
    }


def _tensorflow(peers: Sequence[Peer], rank: int) -> dict[str, str]:
    return {"TF_CONFIG": tf_config(peers, rank), "VK_TASK_INDEX": str(peers[rank].role.index)}


def _horovod(command: str, peers: Sequence[Peer], rank: int, mpi: Mpi | None) -> ModeSetup:
    """Return the setup of Horovod: rank 0 starts the processes of all workers, which wait for that."""
    workers = [each for each in peers if each.role.word != LAUNCHER_ROLE]
    env, files = _mpi_environment(Mode.HOROVOD, peers), _mpi_files(workers)
    # The launcher on rank 0 starts their processes through the agent.
    if rank > 0:
        return ModeSetup(STAYS_OPEN, env, files)
    # There is a launcher: its command starts the workers itself, as arena's etjob does, and is not changed.
    if len(workers) < len(peers):
        return ModeSetup(command, env, files, hints=tuple(_launcher_hints(command)))
    # The options below are those of Open MPI; MPICH's mpirun refuses them.
    launched = command if mpi is Mpi.MPICH else mpi_command(command, str(sum(peer.slots for peer in peers)))
    return ModeSetup(launched, env, files, hints=tuple(_mpi_hints(command)))


def _launcher_hints(command: str) -> list[str]:
    """Return hints for a launcher whose command starts no workers: it runs unchanged, and must start them itself."""
    if any(launcher in command for launcher in _MPI_LAUNCHERS):
        return []
    starts = "horovodrun --host-discovery-script /etc/edl/discover_hosts.sh"
    return [f"it runs in the launcher alone; {starts} starts others"]


def _slurm(command: str, peers: Sequence[Peer], rank: int) -> ModeSetup:
    """Return the setup with sbatch(1)'s variables, for one task on each node where the script does not say
    otherwise."""
    env = {
        "SLURM_JOB_NODELIST": ",".join(peer.host for peer in peers),
        "SLURM_JOB_NUM_NODES": str(len(peers)),
        "SLURM_NNODES": str(len(peers)),
        "SLURM_NODEID": str(rank),
    }
    if len(peers) == 1:
        return ModeSetup(command, env)
    # By Slurm's variables MPI launchers would take `srun` for their remote shell, with options of its own plug-ins.
    # Open MPI 5 has another launcher, PRRTE, with variables and a name of its own for the remote shell.
    launchers = {
        "OMPI_MCA_plm": "rsh",
        "PRTE_MCA_plm": "ssh",
        "HYDRA_LAUNCHER": "ssh",
        **_mpi_environment(Mode.SLURM, peers),
    }
    return ModeSetup(STAYS_OPEN if rank else command, {**launchers, **env}, _mpi_files(peers))


def _mpi_environment(mode: Mode, peers: Sequence[Peer]) -> dict[str, str]:
    """Return the variables by which each MPI learns of the hosts and of the remote shell."""
    return {
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        # Open MPI 4, Open MPI 5 (PRRTE) and MPICH (Hydra) each read variables of their own.
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "HYDRA_HOST_FILE": MPICH_HOSTFILE,
        "HYDRA_IFACE": INTERFACE,
        **_remote_shell(mode, peers),
    }


def _mpi_files(peers: Sequence[Peer]) -> dict[str, str]:
    return {HOSTFILE: hostfile(peers), MPICH_HOSTFILE: mpich_hostfile(peers)}


def mpi_command(command: str, processes: str) -> str:
    """Return the command under Open MPI's mpirun, whose options MPICH does not know.

    A command with a launcher stays as it is.
    """
    if any(launcher in command for launcher in _MPI_LAUNCHERS):
        return command
    return (
        f"mpirun --allow-run-as-root -np {processes} -bind-to none -map-by slot "
        # ^openib leaves out Open MPI's old InfiniBand transport.
        "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib "
        f"{command.strip()}"
    )


def _mpi_hints(command: str) -> list[str]:
    if "mpirun" not in command:
        return []
    needless = [word for word in words_of(command) if word in _HOST_OPTIONS]
    return [f"{word} is not needed: the variables name the host file already" for word in needless]


def _torch_outfit(command: str, peers: Sequence[Peer], rank: int) -> ModeSetup:
    """Compose torchrun's command.

    Since PyTorch 1.9 the first node's launcher passes its own name of the master to all others; the relays make that
    name reachable.
    """
    launched = torch_command(
        command,
        slots=str(peers[rank].slots),
        nodes=str(len(peers)),
        rank=str(rank),
        master=peers[0].host if rank else "localhost",
        port=str(PORT),
    )
    return ModeSetup(launched, torch_environment(peers, rank), relays={PORT: peers[0].host} if rank else {})


def _deepspeed(command: str, peers: Sequence[Peer], rank: int) -> ModeSetup:
    """Compose DeepSpeed's command.

    Its launcher finds the host file by itself, and starts the others' processes through a remote shell.
    """
    env = {**torch_environment(peers, rank), **_remote_shell(Mode.DEEPSPEED, peers)}
    return ModeSetup(STAYS_OPEN if rank else command, env, {DEEPSPEED_HOSTFILE: hostfile(peers)})


def _remote_shell(mode: Mode, peers: Sequence[Peer]) -> dict[str, str]:
    """Return the variables by which launchers use the agent as remote shell, since no container runs an SSH server."""
    if not has_agent(mode, peers):
        return {}
    open_mpi = {"OMPI_MCA_plm_rsh_agent": AGENT, "PRTE_MCA_plm_ssh_agent": AGENT}
    # pdsh is what DeepSpeed's launcher calls; its ssh module finds the agent as `ssh` on PATH.
    return {**open_mpi, "HYDRA_LAUNCHER_EXEC": AGENT, "PDSH_RCMD_TYPE": "ssh"}
