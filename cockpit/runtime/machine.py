"""Describe this machine as a node; it is the embedded cluster's only node unless cluster.toml declares others."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import msgspec

from cockpit.model.ids import NodeName
from cockpit.model.node import Card, Node
from cockpit.runtime.allowance import usable_cpus, usable_memory_mib
from cockpit.runtime.cards import ascend, cambricon, nvidia, rocm
from cockpit.runtime.findings import DetectedCards, Finding
from cockpit.runtime.mpi import detect_mpi
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
