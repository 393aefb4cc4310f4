from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.mounts import mounts
from tests.runtime.containers.house import open_house
from tests.runtime.containers.store import import_trainer, own_store
from tests.runtime.host_world import eventually

IS_ROOT = os.geteuid() == 0


def machine_facts(folder: str) -> dict[str, object]:
    """What containers must leave as it was."""
    return {
        "mounts": mounts(),
        "processes": [line for line in _command_lines() if folder in line],
        "groups": sorted(str(path) for path in Path("/sys/fs/cgroup").glob("*/cockpit-cluster/*") if path.is_dir()),
    }


def _command_lines() -> list[str]:
    lines = []
    for process in Path("/proc").glob("[0-9]*"):  # not `*/cmdline`: glob fails for a process that ends meanwhile
        try:
            lines.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return lines


@pytest.fixture
async def house():
    """An engine's house; afterwards nothing is left of it: no process, mount or cgroup."""
    before = machine_facts("cockpit-house-")["mounts"]
    async with open_house() as opened:
        yield opened
    folder = str(opened.folder)
    await eventually(lambda: machine_facts(folder)["processes"] == [])  # whoever was in a container is just leaving
    after = machine_facts(folder)
    assert after["mounts"] == before
    assert not [path for path in after["groups"] if _is_of(path, opened)]


def _is_of(path: str, opened) -> bool:
    from cockpit.model.ids import JobId, ReplicaId
    from cockpit.runtime.containers.plan import cgroup_name

    key = cgroup_name(opened.state, ReplicaId(JobId(1), 1, 0)).split(".")[0]
    return Path(path).name.startswith(key)


@pytest.fixture(scope="module")
def trainer():
    """The name of the one image that podman has here."""
    with TemporaryDirectory(prefix="cockpit-store-", dir="/tmp") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_STORAGE_CONF", str(own_store(Path(folder))))
        yield import_trainer(Path(folder))


@pytest.fixture(scope="session")
def ann():
    """An ordinary user of this machine, while root runs the tests; the runner itself otherwise."""
    if not IS_ROOT:
        yield None
        return
    name = f"cockpit-t{os.getpid()}"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    yield name
    subprocess.run(["userdel", "--remove", name], check=True, stderr=subprocess.DEVNULL)
