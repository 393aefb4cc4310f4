"""What a chaos run has left on the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.model.ids import JobId, ReplicaId
from cockpit.runtime.containers.plan import cgroup_name
from cockpit.runtime.containers.shim import cgroups
from tests.e2e.aftermath import engine_process, state_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.chaos.machine import Machine
    from tests.e2e.cockpit_user import CockpitUser


def leftovers(machine: Machine, interfaces: list[str]) -> Iterator[str]:
    state = state_folder(machine.user)
    yield from (f"{left} is left" for left in folders_left(machine.user))
    yield from (f"the cgroup {path} is left" for path in sorted(_groups(state)))
    held = machine.user.rows("holds")
    yield from (f"a held container is left, of job {row['id']}" for row in held)
    yield from (f"the interface {name} is left" for name in machine.interfaces() if name not in interfaces)
    yield from (f"the process {words} is left" for words in processes(machine.user))


def folders_left(user: CockpitUser) -> Iterator[str]:
    """The folders of containers and networks."""
    for name in ("containers", "networks", "trash"):
        yield from (f"{name}/{path.name}" for path in sorted((state_folder(user) / name).glob("*")))


def _groups(state: Path) -> set[str]:
    """The cgroups of the engine with this state folder."""
    mine = cgroup_name(state, ReplicaId(JobId(1), 1, 0)).partition(".")[0]
    folders = [*cgroups.folders_v1(f"{mine}.*"), *cgroups.folders_v2(f"{mine}.*")]
    return {str(path) for folder in folders for path in Path(cgroups.MOUNT).glob(folder) if path.is_dir()}


def processes(user: CockpitUser) -> list[str]:
    """The processes of this run but for its engine and for this one."""
    engine, folder, found = engine_process(user), os.fsencode(user.folder), []
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) in {engine, os.getpid()}:
            continue
        try:
            words, env = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        if _parent(entry) == engine and words.endswith(b"hold\0"):  # prepared for the next container
            continue
        if folder in words or folder in env:
            found.append(f"{entry.name} {words.replace(bytes(1), b' ').decode()}")
    return found


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
