"""Check Python, the machine's size, its cards, and the clock."""

from __future__ import annotations

import platform
import sys

from cockpit.model.node import Node
from cockpit.present.units import counted
from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.clock import wall_nanos
from cockpit.runtime.findings import Finding, missing, note, ok
from cockpit.runtime.machine import inspect_machine

OLDEST_PYTHON = (3, 11)
NANOS_PER_SECOND = 1_000_000_000
EARLIEST_SECONDS = 1_735_689_600
"""2025-01-01 in seconds since 1970. An earlier time means that the clock was never set."""


def python(_around: Surroundings) -> list[Finding]:
    version = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < OLDEST_PYTHON:
        return [missing("Python", version, "cockpit needs 3.11 or newer: run `apt-get install python3` on Debian 12.")]
    return [ok("Python", version)]


def machine(around: Surroundings) -> list[Finding]:
    """Check the node as the engine would see it, its cards, and the vendors' tools."""
    inspection = inspect_machine(around.root, around.probe)
    node = inspection.node
    size = f"{counted(node.cpus, 'CPU')}, {node.memory_mib / 1024:.1f} GiB, {node.os}, Linux {node.kernel}"
    return [ok("machine", size), *_cards(node), *inspection.findings]


def _cards(node: Node) -> list[Finding]:
    if not node.cards:
        advice = "To try cockpit with cards, declare some in cluster.toml (docs/configuration.md)."
        return [note("cards", "none found (NVIDIA, AMD, Ascend, Cambricon)", advice)]
    counts: dict[str, int] = {}
    for card in node.cards:
        counts[card.model] = counts.get(card.model, 0) + 1
    found = ", ".join(f"{count} × {model}" for model, count in counts.items())
    return [ok("cards", f"{found}, driver {node.driver_version or 'unknown'}")]


def time_of_day(_around: Surroundings) -> list[Finding]:
    import datetime as dt

    seconds = wall_nanos() // NANOS_PER_SECOND
    shown = f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    if seconds < EARLIEST_SECONDS:
        advice = "Start times and accounting will be wrong. Run `timedatectl set-ntp true` as root."
        return [missing("time", f"{shown}: the clock was never set", advice)]
    return [ok("time", shown)]
