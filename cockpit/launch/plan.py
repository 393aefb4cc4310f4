"""Computes the launch plan of one replica: program, environment, cards, folders, files.

The plan is computed before anything is started, from the job and its placement alone, in these steps:

1. Reduce the spec to this replica's (`replica_spec`: worker pools and launchers differ) and list all replicas.
2. Let the job's mode (PyTorch, MPI, Slurm …) make the command and its variables (`outfit`).
3. Lay the environments over each other. Later ones win: the login's, the job's own, the mode's, Slurm's, cockpit's
   variables about job, array, resume and elasticity, and last the card variables, which a job must not change.
4. Expand the variables of the command, unless the replica runs a batch script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.launch.batchscript import (
    JOB_RECORD,
    SCRIPT,
    TOOLS,
    UNKNOWN_FACTS,
    JobFacts,
    Run,
    ScriptFiles,
    job_record,
    script_argv,
    script_files,
    slurm_environment,
    tasks_on_nodes,
)
from cockpit.launch.cards import card_devices, card_environment, no_cards_environment, share_limits, slots, whole_cards
from cockpit.launch.checks import warnings
from cockpit.launch.command import STAYS_OPEN, expand, unset_names
from cockpit.launch.modes import AGENT_FOLDER, LAUNCHER_ROLE, Peer, Role, has_agent, outfit
from cockpit.launch.pools import pool_environment, pool_hints, pool_roles, replica_spec
from cockpit.launch.sweeps import trial_number
from cockpit.launch.workspace import ALGORITHM, OUTPUTS, WORKSPACE
from cockpit.launch.world import DISCOVERY, DISCOVERY_SCRIPT, LIBRARY, PULSE_PATH, SOCKET_PATH, host_of, hosts
from cockpit.launch.world import PATH as WORKERS_FILE
from cockpit.model.ids import ReplicaId
from cockpit.model.image import HOST
from cockpit.model.job import ArrayTask, Submitter
from cockpit.model.machinetypes import bandwidth_gbps
from cockpit.model.node import Allocation, Node, Placement
from cockpit.model.resilience import Resume
from cockpit.model.rules.pools import REDUCTION_SERVER, SERVERS
from cockpit.model.spec import WHOLE_CARD, HomeAccess, JobSpec, Mode
from cockpit.model.text import visible

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec, WorkerPool


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The start of one replica; all paths are those in the container."""

    command: str
    """The command that the job's mode makes, before its variables are expanded."""
    argv: tuple[str, ...]
    """The program and its arguments, expanded; at least one."""
    env: dict[str, str]
    """The whole environment; nothing is inherited."""
    kept_env: dict[str, str]
    """Variables that replace those of `env` in shells of the held container once its cards are free: no cards."""
    devices: tuple[str, ...]
    """Device nodes of its cards."""
    card_limits: str = ""
    """How its shares of cards are enforced, as a text for users; empty where it has none."""
    measured_cards: tuple[str, ...] = ()
    """UUIDs of the whole cards that the replica has, by which the driver reports their use."""
    workdir: str
    hostname: str
    hosts: dict[str, str] = {}
    """Addresses of all replicas by host name; empty for a single replica."""
    relays: dict[int, str] = {}
    """Addresses of other replicas to which ports of this replica's `localhost` are forwarded, by port."""
    files: dict[str, str] = {}
    """Text files that are created in the container, by path."""
    hints: tuple[str, ...] = ()
    """Sentences about the command for the user."""
    script_files: ScriptFiles | None = None
    """Files of the machine for its standard streams, opened with the submitter's rights; None: only cockpit's logs."""


def launch_plan(  # noqa: PLR0913, PLR0917 - each is another part of what is known
    spec: JobSpec,
    submitter: Submitter,
    node: Node,
    allocation: Allocation,
    placement: Placement,
    replica: ReplicaId,
    array: ArrayTask | None = None,
    facts: JobFacts = UNKNOWN_FACTS,
) -> LaunchPlan:
    """Return the launch plan of one replica.

    `node`: the node of its `allocation`. `placement`: the allocations of all replicas, by rank. `array`: the array
    task that the job is. `facts`: further facts for Slurm's variables. Raises `SpecErrors` when the arithmetic in the
    command fails with the replica's environment.
    """
    job_spec = spec  # of the whole job, for warnings about it
    # Step 1. The index among the present replicas, which differs from the rank once an elastic job has shrunk.
    own = [part.rank for part in placement].index(replica.rank)
    peers = peers_of(spec, placement)
    trial = trial_number(array.index) if spec.sweep is not None and array is not None else ""
    of_pools = pool_environment(spec, peers, own, job=str(replica.job), trial=trial) if spec.worker_pools else {}
    # After `pool_environment`, which describes all pools.
    spec = replica_spec(spec, own)
    launches = spec.has_launcher and own == 0
    mpi = node.mpi if spec.image == HOST else spec.image_mpi
    under_slurm = spec.mode is Mode.SLURM
    runs_script = under_slurm and spec.script is not None and own == 0
    # Step 2
    mode = outfit(spec.mode, spec.command or STAYS_OPEN, _with_tasks(spec, peers), own, mpi)
    names = [peer.host for peer in peers]
    run = Run(submitter, placement, replica, names, facts)
    streams = script_files(spec, submitter, names[own], replica, array) if runs_script else None
    # Step 3
    env = {
        **_base_environment(spec, submitter),
        # slurmstepd sets it where the job does not.
        **({"TMPDIR": "/tmp"} if under_slurm else {}),  # noqa: S108 - the container's own
        **spec.env,
        **mode.env,
        **(slurm_environment(spec, run) if under_slurm else {}),
        **of_pools,
        **({"COCKPIT_TRIAL": trial} if trial else {}),
        **_job_environment(spec, allocation, placement, replica),
        **(_array_environment(array) if array is not None else {}),
        **(_resume_environment(spec.resume, replica) if spec.resume is not None else {}),
        **(_elastic_environment(spec, replica) if spec.elastic is not None else {}),
        **(_launcher_environment(spec, peers) if launches else {}),
        **card_environment(node, allocation.slices),
    }
    # Last, so that a job's own modules are found first.
    env["PYTHONPATH"] = ":".join(filter(None, (env.get("PYTHONPATH", ""), LIBRARY)))
    addresses = hosts(spec, placement)
    files = dict(mode.files)
    if under_slurm:
        # First, in front of a real srun that the image may have.
        env["PATH"] = f"{TOOLS}:{env['PATH']}"
        files[JOB_RECORD] = job_record(spec, run, streams, array)
    if has_agent(spec.mode, peers):
        env["PATH"] = f"{AGENT_FOLDER}:{env['PATH']}"
    if runs_script:
        assert spec.script is not None
        files[SCRIPT] = spec.script.text
    return LaunchPlan(
        command=mode.command,
        # Step 4
        argv=script_argv(spec.script) if runs_script and spec.script is not None else expand(mode.command, env),
        env=env,
        kept_env=no_cards_environment() if allocation.slices else {},
        devices=card_devices(node, allocation.slices),
        card_limits=share_limits(node, allocation.slices),
        measured_cards=whole_cards(node, allocation.slices),
        workdir=_work_folder(spec),
        hostname=host_of(spec, replica.rank),
        hosts=addresses,
        relays={port: addresses[host] for port, host in mode.relays.items()},
        files={**files, DISCOVERY: DISCOVERY_SCRIPT} if launches else files,
        hints=(
            *mode.hints,
            *([] if runs_script else _unset_hints(mode.command, env)),
            *((*warnings(job_spec), *pool_hints(job_spec), *advice(job_spec)) if own == 0 else ()),
        ),
        script_files=streams,
    )


def _work_folder(spec: JobSpec) -> str:
    if spec.script is not None:
        return spec.script.work_dir
    return ALGORITHM if spec.algorithm else WORKSPACE


def _with_tasks(spec: JobSpec, peers: tuple[Peer, ...]) -> tuple[Peer, ...]:
    """Return the replicas with as many MPI slots as Slurm tasks, if a batch script asked for tasks."""
    if spec.mode is not Mode.SLURM or not {"SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"} & spec.env.keys():
        return peers
    tasks = tasks_on_nodes(spec.env, len(peers))
    return tuple(Peer(peer.host, count, peer.role) for peer, count in zip(peers, tasks, strict=True))


def _unset_hints(command: str, env: dict[str, str]) -> list[str]:
    return [
        f"{visible(name, 200)} is not set for this replica; the program gets it as written"
        for name in unset_names(command, env)
    ]


def peers_of(spec: JobSpec, placement: Placement) -> tuple[Peer, ...]:
    """Return host name, slots and role of all replicas, by rank."""
    roles = _roles(spec, len(placement))
    return tuple(
        Peer(host_of(spec, part.rank), slots(part.slices), role) for part, role in zip(placement, roles, strict=False)
    )


def _roles(spec: JobSpec, count: int) -> list[Role]:
    if spec.worker_pools:
        return pool_roles(spec.worker_pools)
    if spec.has_launcher:
        return [Role(LAUNCHER_ROLE, 0), *(Role("worker", index) for index in range(count - 1))]
    workers = count - spec.parameter_servers
    return [Role("worker", rank) if rank < workers else Role("ps", rank - workers) for rank in range(count)]


def _base_environment(spec: JobSpec, submitter: Submitter) -> dict[str, str]:
    """Return the variables that a login sets. HOME of a job without home folder is its own, writable /tmp."""
    return {
        "PATH": _PATH,
        "HOME": "/tmp" if spec.home is HomeAccess.NONE else submitter.home,  # noqa: S108 the container's own /tmp
        "USER": submitter.name,
        "LOGNAME": submitter.name,
        # An image need not have any other locale.
        "LANG": "C.UTF-8",
    }


def _job_environment(spec: JobSpec, allocation: Allocation, placement: Placement, replica: ReplicaId) -> dict[str, str]:
    """Return the variables that identify the replica; the job's own `env` cannot change them."""
    return {
        "COCKPIT_JOB_ID": str(replica.job),
        "COCKPIT_JOB_NAME": spec.name,
        "COCKPIT_ATTEMPT": str(replica.attempt),
        "COCKPIT_REPLICA": str(replica.rank),
        "COCKPIT_REPLICAS": str(len(placement)),
        "COCKPIT_NODE": allocation.node,
        "COCKPIT_NODES": ",".join(part.node for part in placement),
        "COCKPIT_CPUS": str(allocation.cpus),
        "COCKPIT_MEMORY_MIB": str(allocation.memory_mib),
        "COCKPIT_SLOTS": str(slots(allocation.slices)),
        "COCKPIT_WORKSPACE": WORKSPACE,
        "COCKPIT_OUTPUTS": OUTPUTS,
    }


def _resume_environment(resume: Resume, replica: ReplicaId) -> dict[str, str]:
    """Return the variables for resuming: the number of earlier attempts, and the folder of their checkpoints."""
    return {
        "COCKPIT_RESUME": str(replica.attempt - 1),
        "COCKPIT_MAX_RESUMES": str(resume.max_resumes),
        "COCKPIT_GRACE_SECONDS": str(resume.grace_seconds),
        "COCKPIT_CHECKPOINTS": OUTPUTS,
    }


def _elastic_environment(spec: JobSpec, replica: ReplicaId) -> dict[str, str]:
    """Return the variables of an elastic job: its sizes, the file with its present workers, its checkpoints."""
    return {
        "COCKPIT_RESUME": str(replica.attempt - 1),
        "COCKPIT_CHECKPOINTS": OUTPUTS,
        "COCKPIT_MIN_WORKERS": str(spec.least_nodes),
        "COCKPIT_MAX_WORKERS": str(spec.most_nodes),
        "COCKPIT_WORKERS_FILE": WORKERS_FILE,
        "COCKPIT_WORKERS_SOCKET": SOCKET_PATH,
        "COCKPIT_PULSE_FILE": PULSE_PATH,
    }


def _launcher_environment(spec: JobSpec, peers: Sequence[Peer]) -> dict[str, str]:
    """Return the launcher's variables under arena's names: `horovodrun -np $((${workers}*${gpus})) …`."""
    assert spec.elastic is not None
    return {
        "workers": str(spec.elastic.workers),
        "gpus": str(peers[-1].slots),
        "minWorkers": str(spec.elastic.min_workers),
        "maxWorkers": str(spec.elastic.max_workers),
    }


def _array_environment(task: ArrayTask) -> dict[str, str]:
    """Return Slurm's variables of an array task."""
    return {
        "SLURM_ARRAY_JOB_ID": str(task.array),
        "SLURM_ARRAY_TASK_ID": str(task.index),
        "SLURM_ARRAY_TASK_COUNT": str(task.count),
        "SLURM_ARRAY_TASK_MIN": str(task.first),
        "SLURM_ARRAY_TASK_MAX": str(task.last),
        "SLURM_ARRAY_TASK_STEP": str(_step(task)),
    }


def _step(task: ArrayTask) -> int:
    """Return the distance between the indices of an array; 1 if they are not evenly spaced."""
    step, rest = divmod(task.last - task.first, max(1, task.count - 1))
    return step if step and not rest else 1


REDUCER: Final = "n1-highcpu-16"
"""The machine type for reducers: much bandwidth for its price."""
IMAGES: Final = tuple(f"{place}-docker.pkg.dev{REDUCTION_SERVER}latest" for place in ("us", "europe", "asia"))
FUSION_VARIABLE: Final = "HOROVOD_FUSION_THRESHOLD"
FUSION_BYTES: Final = 128 * 1024 * 1024
BUCKET_MB: Final = 64
_LEAST_CPUS, _LEAST_GBPS = 16, 32


def reducers(workers: int, gbps: int, reducer_gbps: int) -> int:
    """Return the number of reducers that can carry what the workers send."""
    return -(-workers * gbps // reducer_gbps)


def bandwidth(pool: WorkerPool) -> int:
    """Return the bandwidth of one replica to other machines in Gbps; 0: not known."""
    model = pool.spec.card_models[0] if pool.spec.card_models else ""
    return pool.bandwidth_gbps or bandwidth_gbps(pool.machine_type, pool.spec.card_milli // WHOLE_CARD, model)


def advice(spec: JobSpec) -> Iterator[str]:
    """Return advice as sentences; none where pools do not train on cards, or their bandwidth is unknown."""
    training = [pool for pool in spec.worker_pools[:SERVERS] if pool.replicas]
    if not all(pool.spec.card_milli and bandwidth(pool) for pool in training):
        return
    total = sum(pool.replicas * bandwidth(pool) for pool in training)
    servers = spec.worker_pools[SERVERS] if len(spec.worker_pools) > SERVERS else None
    if servers is not None and REDUCTION_SERVER in servers.image:
        yield from _about_servers(servers, total)
        yield from _about_messages(spec)
    elif (servers is None or not servers.replicas) and sum(pool.replicas for pool in training) > 1:
        wanted = reducers(1, total, bandwidth_gbps(REDUCER))
        yield (
            f"{wanted} reduction servers of {REDUCER} would carry the {total} Gbps of its workers: as the third pool, "
            f"with one of the images {', '.join(IMAGES)}"
        )


def _about_servers(servers: WorkerPool, total: int) -> Iterator[str]:
    each = bandwidth(servers)
    if each and servers.replicas * each < total:
        carried, wanted = servers.replicas * each, reducers(1, total, each)
        yield f"its {servers.replicas} reduction servers carry {carried} of {total} Gbps; {wanted} would"
    if servers.spec.cpus < _LEAST_CPUS or (each and each < _LEAST_GBPS):
        yield f"a reduction server does best with {_LEAST_CPUS} CPUs and {_LEAST_GBPS} Gbps, as {REDUCER} has"


def _about_messages(spec: JobSpec) -> Iterator[str]:
    """Yield advice for jobs with reduction servers."""
    yield (
        "reduction servers need TensorFlow 2.3, PyTorch 1.4, or NCCL 2.7 with google-reduction-server in the images of "
        "the first two pools"
    )
    given = spec.env.get(FUSION_VARIABLE, "")
    if "horovod" in spec.command.lower() and not (given.isdigit() and int(given) >= FUSION_BYTES):
        yield f"large messages suit them: set {FUSION_VARIABLE} to {FUSION_BYTES} or more"
    yield f"large messages suit them: PyTorch's DistributedDataParallel takes bucket_cap_mb={BUCKET_MB}"
