"""What a container is to be: everything its shim needs, written down before the shim is spawned."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cockpit.launch.batchscript import LIBRARY, TOOLS, ScriptFiles
from cockpit.launch.network import GATEWAY, PREFIX
from cockpit.launch.plain import needs_container
from cockpit.launch.pools import replica_spec
from cockpit.launch.workspace import shown
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
_PROGRAM = """#!/usr/bin/env python3
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "lib"))
sys.dont_write_bytecode = True
from cockpit.runtime.containers.slurmtools.{name} import main
sys.exit(main(sys.argv[1:]))
"""
_EVERY_IMAGE = "*"


class Mount(msgspec.Struct, frozen=True):
    """A folder of the machine, opened with the submitter's credentials, shown in the container."""

    what: str
    """The spec's field, for messages: `output`, `volumes[0]`."""
    source: str
    target: str
    writable: bool
    create: bool = False
    """Made (as the submitter) where it is missing."""
    copied: bool = False
    """The engine's own copy of it, made with the submitter's rights."""


class ContainerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One replica's container. Paths are absolute; nothing in here changes once it is written."""

    argv: tuple[str, ...]
    hooks: Hooks = Hooks()
    grace_seconds: int = 0
    """So long the script after the command may run."""
    env: dict[str, str]
    """Exactly the command's; but HOME becomes /tmp where the home cannot be shown."""
    kept_env: dict[str, str]
    """Laid over `env` for shells in a kept container whose cards are free: card variables, empty."""
    workdir: str
    hostname: str
    user: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    home_access: HomeAccess
    shared_home: str = ""
    """The folder that is /home; empty: the home alone is shown, where it is."""
    mounts: tuple[Mount, ...]
    image: Mount | None = None
    """The root file system that it begins with; None: the machine's own."""
    podman: str = ""
    """In place of that: the id of an image of which podman makes the container, see `shim.maker`."""
    devices: tuple[str, ...]
    """Device nodes of the cards it was given."""
    network: str = ""
    """The folder of its job's network, see `shim.network`; empty: it shares the machine's."""
    address: str = ""
    """Of its `eth0`."""
    gateway: str = GATEWAY
    prefix: int = PREFIX
    hosts: dict[str, str] = {}
    """Address by host name, of all replicas."""
    relays: dict[int, str] = {}
    """Ports of its own `localhost` that are another replica's, and that one's address."""
    files: dict[str, str] = {}
    """Text that it is given, by path in it."""
    script_files: ScriptFiles | None = None
    """Of a batch script: files of the machine that are its standard streams, see `shim.scriptfiles`."""
    early_signal: EarlySignal | None = None
    """That a batch script gets before its time limit."""
    card_limits: str = ""
    """Said behind how its other limits are enforced."""
    cards: tuple[str, ...] = ()
    """UUIDs of the cards that it has whole, so that what their driver measures is its own doing."""
    cpus: int
    memory_mib: int
    pids: int
    scratch_mib: int
    """Of its own /tmp, /run, /root and /var/tmp together, in memory."""
    cgroup: str
    """Name of its group below `cockpit-cluster/` in each hierarchy; unique on the machine."""
    rootless: bool
    """Made by an ordinary user's engine, in a user namespace."""
    may_be_plain: bool
    """To run as plain processes where this machine refuses its engine the namespaces of a container."""
    filtered: bool = True
    """Whether its programs are refused the system calls of `shim.syscalls`."""
    log_limit_mib: int = USUAL_MIB
    """Of each of its two logs, see `shim.logbounds`."""
    state: str
    """The engine's state folder: never shown, whatever is."""
    socket: str
    """The folder of the engine's socket: likewise."""
    stdout: str
    stderr: str


class EngineFolders(msgspec.Struct, frozen=True):
    """What no container may see of the engine that made it."""

    state: Path
    socket: Path


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the administrator allows every container."""

    pids: int = 4096
    """Processes and threads: room for data loaders, and for libraries that start a thread per core in each of them."""
    scratch_mib: int = 1024
    """Size of its own /tmp, which is held in memory."""
    shared_home: str = ""
    """The folder of this machine that is /home in every container; empty: none."""
    unfiltered_images: tuple[str, ...] = ()
    """Images, as `model.image` writes them, whose jobs may make every system call; `*`: all."""

    log_limit_mib: int = USUAL_MIB
    """What each log of a replica may take of the disk."""

    def filters(self, image: str) -> bool:
        """Whether jobs with this image are refused system calls."""
        return not {image, _EVERY_IMAGE} & set(self.unfiltered_images)


def container_plan(
    effect: StartReplica,
    launch: LaunchPlan,
    engine: EngineFolders,
    bounds: Bounds,
    *,
    rootless: bool,
    may_be_plain: bool = False,
) -> ContainerPlan:
    """A start effect and its launch plan. `rootless`: the engine's user is not root."""
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
        mounts=tuple(Mount(*each) for each in shown(spec)),
        image=_image(spec),
        devices=launch.devices,
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
    """The programs that stand beside a batch script, by their paths in the container."""
    folder = Path(slurmtools.__file__).parent
    package = f"{LIBRARY}/{'/'.join(slurmtools.__name__.split('.'))}"
    parents = slurmtools.__name__.split(".")[:-1]
    found = {f"{LIBRARY}/{'/'.join(parents[: number + 1])}/__init__.py": "" for number in range(len(parents))}
    found |= {f"{package}/{path.name}": path.read_text() for path in sorted(folder.glob("*.py"))}
    return found | {f"{TOOLS}/{name}": _PROGRAM.format(name=name) for name in _PROGRAMS}


def cgroup_name(state: Path, replica: ReplicaId) -> str:
    """Several engines on one machine each count their jobs from 1: the state folder tells them apart."""
    return f"{hashlib.sha256(str(state).encode()).hexdigest()[:8]}.{replica.folder}"


def log_file(state: Path, replica: ReplicaId, stream: str) -> Path:
    """Where a replica's `stdout` or `stderr` is kept; outlives its container."""
    return state / "logs" / str(replica.job) / f"{replica.attempt}.{replica.rank}.{stream}"


def _image(spec: JobSpec) -> Mount | None:
    image = image_of(spec.root_image)
    return None if image.kind is ImageKind.HOST else Mount("image", image.where, "/", writable=False)
