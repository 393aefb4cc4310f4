"""Describe this machine as a node; it is the embedded cluster's only node unless cluster.toml declares others.

Also determine which MPI a root file system has, since a node names it.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from pathlib import Path
from typing import Final

import msgspec

from cockpit.model.ids import NodeName
from cockpit.model.image import Mpi
from cockpit.model.node import Card, Node
from cockpit.runtime.allowance import usable_cpus, usable_memory_mib
from cockpit.runtime.cards import ascend, cambricon, nvidia, rocm
from cockpit.runtime.findings import DetectedCards, Finding
from cockpit.runtime.probe_command import Probe, printable, probe_command
from cockpit.runtime.sysfiles import read_text

VENDORS = (nvidia, rocm, ascend, cambricon)


class Inspection(msgspec.Struct, frozen=True):
    """The machine's node, and problems noticed during the inspection (a vendor's tool that hangs, a broken card)."""

    node: Node
    findings: tuple[Finding, ...]


def probe_machine(root: Path = Path("/")) -> Node:
    """Return the machine as one node. Never raises; takes as long as the vendors' tools do, at most their time
    limits."""
    return inspect_machine(root).node


def inspect_machine(root: Path = Path("/"), probe_command: Probe = probe_command) -> Inspection:
    """Inspect the machine. `root` replaces `/` in tests; `probe_command` runs the vendors' tools."""
    vendors = [module.probe(root, probe_command) for module in VENDORS]
    system = os.uname()
    node = Node(
        name=NodeName(printable(system.nodename.partition(".")[0]) or "localhost"),
        cpus=usable_cpus(root),
        memory_mib=usable_memory_mib(root),
        cards=_number_cards(vendors),
        os=os_name(read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release")),
        kernel=printable(system.release),
        driver_version=next((vendor.driver_version for vendor in vendors if vendor.driver_version), ""),
        mpi=detect_mpi(root),
    )
    return Inspection(node, tuple(finding for vendor in vendors for finding in vendor.findings))


def _number_cards(vendors: list[DetectedCards]) -> tuple[Card, ...]:
    """Join the cards of all vendors, and number them from 0."""
    cards = [card for vendor in vendors for card in vendor.cards]
    return tuple(msgspec.structs.replace(card, index=index) for index, card in enumerate(cards))


def os_name(os_release: str) -> str:
    """Return `Debian GNU/Linux 12 (bookworm)` from the text of /etc/os-release (os-release(5)); `Linux` when it says
    none."""
    for line in os_release.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "PRETTY_NAME":
            return printable(_unquote(value)) or "Linux"
    return "Linux"


def _unquote(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value


_MPIRUN_PLACES: Final = ("usr/local/bin/mpirun", "usr/bin/mpirun", "bin/mpirun")
_MPI_PROGRAMS: Final = {Mpi.OPENMPI: ("openmpi", "orterun", "prterun"), Mpi.MPICH: ("mpich", "hydra")}
"""Open MPI's mpirun is a link to orterun, since 5.0 to prterun; MPICH's to mpiexec.hydra. Debian appends a suffix."""
_MOST_LINKS: Final = 10
"""Most links in a chain, which may lead back to itself."""


def detect_mpi(root: Path) -> Mpi | None:
    """Return which MPI a root file system has, by the target of its `mpirun` link; None if there is none, or an unknown
    one. No program is run."""
    for place in _MPIRUN_PLACES:
        names = " ".join(_link_targets(root, place))
        for mpi, programs in _MPI_PROGRAMS.items():
            if any(program in names for program in programs):
                return mpi
    return None


def _link_targets(root: Path, place: str) -> list[str]:
    """Return the targets of a chain of links, one by one, within the root."""
    names: list[str] = []
    while (root / place).is_symlink() and len(names) < _MOST_LINKS:
        target = str((root / place).readlink())
        # Taken within the root: an absolute target is a path of the image, not of this machine.
        place = posixpath.normpath(posixpath.join("/", posixpath.dirname(place), target)).lstrip("/")
        names.append(place)
    return names
