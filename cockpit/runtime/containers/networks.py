"""The folders of the networks that jobs with several replicas have, see `shim.network`. Blocks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cockpit.runtime.containers import agentscript
from cockpit.runtime.containers.shim.agentserver import SHOWN
from cockpit.runtime.containers.shim.nat import CABLE, TABLE, nftables

if TYPE_CHECKING:
    from cockpit.model.ids import ReplicaId

_AGENT: Final = "agent"
_NAMES: Final = "bin"
"""What stands in the place of other systems' launchers, under their names."""
_NFT_SECONDS: Final = 10


def folder_of(state: Path, replica: ReplicaId) -> Path:
    """Of all replicas of the attempt."""
    return state / "networks" / f"{replica.job}.{replica.attempt}"


def lay_out(folder: Path) -> None:
    """Before the first shim; done again, also at the same time, it changes nothing."""
    shown = folder / SHOWN
    while not (shown / _NAMES).is_dir():
        with suppress(FileNotFoundError):  # the folder of all networks was just taken away, being empty
            (shown / _NAMES).mkdir(parents=True, exist_ok=True)
    for each in (shown, shown / _NAMES):
        each.chmod(0o755)
    _lay_down(Path(agentscript.__file__), shown / _AGENT)
    with suppress(FileExistsError):
        (shown / _NAMES / "ssh").symlink_to(f"../{_AGENT}")


def _lay_down(script: Path, there: Path) -> None:
    if not there.exists():
        number, draft = tempfile.mkstemp(dir=there.parent)  # of this replica: others may be at it, too
        with os.fdopen(number, "wb") as file:
            file.write(script.read_bytes())
        Path(draft).chmod(0o755)
        Path(draft).replace(there)


def tidy_up(state: Path) -> None:
    """Delete the folders of attempts without containers; without any network, also the rules that they went out by."""
    networks = state / "networks"
    with suppress(FileNotFoundError):  # it was taken away meanwhile
        _tidy_up(networks, state / "containers")


def _tidy_up(networks: Path, containers: Path) -> None:
    found = list(networks.iterdir())  # first: a container's folder is made before its network's
    alive = {path.name.rpartition(".")[0] for path in containers.iterdir()}
    for folder in found:
        if folder.name not in alive:
            shutil.rmtree(folder, ignore_errors=True)
    if not any(networks.iterdir()) and not any(Path("/sys/class/net").glob(f"{CABLE}*")):
        _forget_rules()
        with suppress(OSError):  # another job has just laid out its own
            networks.rmdir()


def _forget_rules() -> None:
    """Of another engine of root's, which may have a job just now, there would be a cable."""
    if os.geteuid() == 0 and (nft := nftables()):
        command = [nft, "delete", "table", "ip", TABLE]
        subprocess.run(command, check=False, capture_output=True, timeout=_NFT_SECONDS)
