"""The plan of one container: everything that its shim needs to know, written to disk before the shim is spawned."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cockpit.launch.batchscript import LIBRARY, TOOLS, ScriptFiles
from cockpit.launch.checks import needs_container
from cockpit.launch.pools import replica_spec
from cockpit.launch.workspace import mounted_folders
from cockpit.launch.world import GATEWAY, PREFIX
from cockpit.model.batchscript import EarlySignal
from cockpit.model.ids import ReplicaId
from cockpit.model.image import ImageKind, image_of
from cockpit.model.spec import HomeAccess, Hooks, Mode
from cockpit.runtime.containers import slurmtools
from cockpit.runtime.containers.networks import folder_of
from cockpit.runtime.containers.shim.logbounds import USUAL_MIB

if TYPE_CHECKING:
    from cockpit.engine.effects import StartReplica
    from cockpit.launch.plan import LaunchPlan
    from cockpit.model.spec import JobSpec


_PROGRAMS = ("srun", "scontrol")
# Without caches (`dont_write_bytecode`): the folder is mounted read-only.
_PROGRAM = """#!/usr/bin/env python3
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib"))
sys.dont_write_bytecode = True
from cockpit.runtime.containers.slurmtools.{name} import main
sys.exit(main(sys.argv[1:]))
"""
_EVERY_IMAGE = "*"


class Mount(msgspec.Struct, frozen=True):
    """A folder of the machine that is mounted in the container, opened with the submitter's credentials."""

    what: str
    """The field of the spec, for error messages: `output`, `volumes[0]`."""
    source: str
    target: str
    writable: bool
    create: bool = False
    """Whether it is created, as the submitter, if it is missing."""
    copied: bool = False
    """Whether `source` is the engine's own copy, which was made with the submitter's rights."""


class ContainerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One replica's container. Paths are absolute. The plan never changes once it is written."""

    argv: tuple[str, ...]
    hooks: Hooks = Hooks()
    grace_seconds: int = 0
    """Longest run time of the script after the command."""
    env: dict[str, str]
    """The complete environment of the command, except that HOME becomes /tmp if the home cannot be mounted."""
    kept_env: dict[str, str]
    """Variables that replace those of `env` for shells in a held container without its cards: empty card variables."""
    workdir: str
    hostname: str
    user: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    home_access: HomeAccess
    shared_home: str = ""
    """The machine's folder that becomes /home; empty: only the user's home is mounted, at its own path."""
    mounts: tuple[Mount, ...]
    image: Mount | None = None
    """The image's root file system; None: the machine's own root is used."""
    podman: str = ""
    """Instead of `image`: the id of an image from which podman makes the container, see `shim.maker`."""
    devices: tuple[str, ...]
    """Device nodes of the allocated cards."""
    network: str = ""
    """The folder of the job's network, see `shim.network`; empty: the container shares the machine's network."""
    address: str = ""
    """IPv4 address of the container's `eth0`."""
    gateway: str = GATEWAY
    prefix: int = PREFIX
    hosts: dict[str, str] = {}
    """The address of each replica, by host name."""
    relays: dict[int, str] = {}
    """Forwarded ports of the container's `localhost`, each with the address of the replica it is forwarded to."""
    files: dict[str, str] = {}
    """Texts of files that are mounted read-only, by path in the container."""
    script_files: ScriptFiles | None = None
    """The machine's files that are a batch script's standard streams, see `shim.scriptfiles`."""
    early_signal: EarlySignal | None = None
    """The signal that a batch script gets before its time limit."""
    card_limits: str = ""
    """Sentence on how shares of cards are enforced, added to the sentence on the other limits."""
    cards: tuple[str, ...] = ()
    """UUIDs of the cards that are allocated whole, whose driver therefore measures only this container."""
    cpus: int
    memory_mib: int
    pids: int
    scratch_mib: int
    """Size of the container's own /tmp, /run, /root and /var/tmp together, which are in memory."""
    cgroup: str
    """Name of the container's cgroup below `cockpit-cluster/` in each hierarchy; unique on the machine."""
    rootless: bool
    """Whether the engine runs as an ordinary user and makes containers in a user namespace."""
    may_be_plain: bool
    """Whether the job may run as plain processes if this machine refuses the namespaces of a container."""
    filtered: bool = True
    """Whether the system calls listed in `shim.syscalls` are refused."""
    log_limit_mib: int = USUAL_MIB
    """Largest size of each of the two logs, see `shim.logbounds`."""
    state: str
    """The engine's state folder, which the container never sees."""
    socket: str
    """The folder of the engine's socket, which the container never sees."""
    stdout: str
    stderr: str


class EngineFolders(msgspec.Struct, frozen=True):
    """The engine's folders that no container may see."""

    state: Path
    socket: Path


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The administrator's limits on every container."""

    pids: int
    """Most processes and threads. Data loaders whose libraries start a thread per core need many."""
    scratch_mib: int
    """Size of the container's own /tmp, which is in memory."""
    shared_home: str = ""
    """The folder of this machine that becomes /home in every container; empty: none."""
    unfiltered_images: tuple[str, ...] = ()
    """Images, as `model.image` writes them, whose jobs may make every system call; `*`: all."""

    log_limit_mib: int = USUAL_MIB
    """Largest size of each log of a replica."""

    def filters(self, image: str) -> bool:
        """Return whether jobs with this image are refused system calls."""
        return not {image, _EVERY_IMAGE} & set(self.unfiltered_images)


def container_plan(
    effect: StartReplica,
    launch: LaunchPlan,
    engine: EngineFolders,
    bounds: Bounds,
    *,
    rootless: bool,
    may_be_plain: bool,
) -> ContainerPlan:
    """Make the container plan of a start effect and its launch plan. `rootless`: the engine's user is not root."""
    submitter, replica, state = effect.submitter, effect.replica, engine.state
    spec = replica_spec(effect.spec, replica.rank)
    return ContainerPlan(
        argv=launch.argv,
        hooks=spec.hooks,
        grace_seconds=spec.end_grace_seconds,
        env=launch.env,
        kept_env=launch.kept_env,
        workdir=launch.workdir,
        hostname=launch.hostname,
        user=submitter.name,
        uid=submitter.uid,
        gid=submitter.gid,
        groups=submitter.groups,
        home=submitter.home,
        home_access=spec.home,
        shared_home=bounds.shared_home,
        mounts=tuple(Mount(*each) for each in mounted_folders(spec)),
        image=_image(spec),
        devices=launch.devices,
        # A job of one replica needs no network of its own, and keeps the machine's.
        network=str(folder_of(state, replica)) if launch.hosts else "",
        address=launch.hosts.get(launch.hostname, ""),
        hosts=launch.hosts,
        relays=launch.relays,
        files={**launch.files, **(_slurm_tools() if spec.mode is Mode.SLURM else {})},
        script_files=launch.script_files,
        early_signal=spec.script.early_signal if spec.script is not None else None,
        card_limits=launch.card_limits,
        cards=launch.measured_cards,
        cpus=effect.allocation.cpus,
        memory_mib=effect.allocation.memory_mib,
        pids=bounds.pids,
        scratch_mib=bounds.scratch_mib,
        cgroup=cgroup_name(state, replica),
        rootless=rootless,
        # Needing a container is asked of the whole job, since its replicas run either all in containers or all without.
        may_be_plain=may_be_plain and not needs_container(effect.spec),
        log_limit_mib=bounds.log_limit_mib,
        filtered=bounds.filters(spec.root_image),
        state=str(state),
        socket=str(engine.socket),
        stdout=str(log_file(state, replica, "stdout")),
        stderr=str(log_file(state, replica, "stderr")),
    )


@cache
def _slurm_tools() -> dict[str, str]:
    """Return the texts of the `srun` and `scontrol` programs for batch scripts, by path in the container."""
    folder = Path(slurmtools.__file__).parent
    package = f"{LIBRARY}/{'/'.join(slurmtools.__name__.split('.'))}"
    parents = slurmtools.__name__.split(".")[:-1]
    # Empty: the packages of the same names could import modules that the container does not have.
    files = {f"{LIBRARY}/{'/'.join(parents[: number + 1])}/__init__.py": "" for number in range(len(parents))}
    files |= {f"{package}/{path.name}": path.read_text() for path in sorted(folder.glob("*.py"))}
    return files | {f"{TOOLS}/{name}": _PROGRAM.format(name=name) for name in _PROGRAMS}


def cgroup_name(state: Path, replica: ReplicaId) -> str:
    """Return the cgroup's name. It contains a hash of the state folder, since every engine counts its jobs from 1."""
    return f"{hashlib.sha256(str(state).encode()).hexdigest()[:8]}.{replica.folder}"


def log_file(state: Path, replica: ReplicaId, stream: str) -> Path:
    """Return the path of a replica's `stdout` or `stderr` log, which outlives its container."""
    return state / "logs" / str(replica.job) / f"{replica.attempt}.{replica.rank}.{stream}"


def _image(spec: JobSpec) -> Mount | None:
    image = image_of(spec.root_image)
    return None if image.kind is ImageKind.HOST else Mount("image", image.where, "/", writable=False)
