"""The folders of multi-replica jobs' networks, see `shim.network`. All functions block."""

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
from cockpit.runtime.containers.shim.nat import TABLE, VETH, nftables

if TYPE_CHECKING:
    from cockpit.model.ids import ReplicaId

_AGENT: Final = "agent"
_NAMES: Final = "bin"
"""The folder with replacements for other launchers' programs (`ssh`), under their names."""
_NFT_SECONDS: Final = 10
"""Time limit of nft, which normally takes milliseconds."""


def folder_of(state: Path, replica: ReplicaId) -> Path:
    """Return the folder of the network that all replicas of the attempt share."""
    return state / "networks" / f"{replica.job}.{replica.attempt}"


def lay_out(folder: Path) -> None:
    """Create a network's folder, before the first shim. Several replicas may do so at the same time."""
    shown = folder / SHOWN
    while not (shown / _NAMES).is_dir():
        with suppress(FileNotFoundError):  # `tidy_up` has just removed the parent folder, because it was empty
            (shown / _NAMES).mkdir(parents=True, exist_ok=True)
    for public in (shown, shown / _NAMES):
        public.chmod(0o755)
    _install(Path(agentscript.__file__), shown / _AGENT)
    with suppress(FileExistsError):
        (shown / _NAMES / "ssh").symlink_to(f"../{_AGENT}")


def _install(script: Path, target: Path) -> None:
    if not target.exists():
        # The rename below replaces a file that another replica has put there meanwhile by an equal one.
        number, draft = tempfile.mkstemp(dir=target.parent)  # a name of its own: other replicas may do the same now
        with os.fdopen(number, "wb") as file:
            file.write(script.read_bytes())
        Path(draft).chmod(0o755)
        Path(draft).replace(target)


def tidy_up(state: Path) -> None:
    """Delete the network folders of attempts without containers, and with the last network the NAT rules."""
    networks = state / "networks"
    with suppress(FileNotFoundError):  # another thread has removed it meanwhile
        _tidy_up(networks, state / "containers")


def _tidy_up(networks: Path, containers: Path) -> None:
    # Listed before the containers: a container's folder is made before its network's, so none is deleted too early.
    folders = list(networks.iterdir())
    alive = {path.name.rpartition(".")[0] for path in containers.iterdir()}
    for folder in folders:
        if folder.name not in alive:
            shutil.rmtree(folder, ignore_errors=True)
    if not any(networks.iterdir()) and not any(Path("/sys/class/net").glob(f"{VETH}*")):
        _forget_rules()
        with suppress(OSError):  # another job has just created its folder
            networks.rmdir()


def _forget_rules() -> None:
    """Delete the NAT rules. The caller has checked that no veth pair exists, so no other engine of root uses them."""
    if os.geteuid() == 0 and (nft := nftables()):
        command = [nft, "delete", "table", "ip", TABLE]
        subprocess.run(command, check=False, capture_output=True, timeout=_NFT_SECONDS)
