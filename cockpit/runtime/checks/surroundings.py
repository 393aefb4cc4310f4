"""The input of all checks. They read nothing else of the machine, so that a test can simulate any machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from cockpit.errors import RuntimeMissing
from cockpit.formats.mountinfo import network_filesystem
from cockpit.model.node import Node
from cockpit.present.units import counted
from cockpit.runtime.clock import wall_nanos
from cockpit.runtime.containers.shim.cgroups import CONTROLLERS
from cockpit.runtime.findings import Finding, missing, note, ok
from cockpit.runtime.machine import inspect_machine
from cockpit.runtime.probe_command import Outcome, Probe
from cockpit.runtime.socket_folder import trusted_socket_folder
from cockpit.runtime.sysfiles import read_text


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a check knows about the user and the machine."""

    env: Mapping[str, str]
    """The user's environment."""
    uid: int
    socket: Path
    """The socket of the engine that this user would connect to."""
    state_folder: Path
    """The state folder of that engine."""
    system: bool = False
    """Whether that engine is the machine's, whose folders belong to root."""
    slurm: str = ""
    """The file or variable that configures a Slurm cluster on this machine; empty: there is none."""
    probe: Probe
    """Runs a program for its output."""
    root: Path = Path("/")
    """The folder below which the kernel's files and device nodes are read, instead of `/`."""


Check = Callable[[Surroundings], list[Finding]]
"""A check: it returns its findings, which may be none."""


BYTES_PER_GIB = 1 << 30
SCARCE_GIB = 2.0
EMPTY_GIB = 0.1
"""These two are the free space below which doctor warns, and below which no job can be accepted."""


def state_folder(around: Surroundings) -> list[Finding]:
    folder = around.state_folder
    if around.system and around.uid != 0:
        return [ok("state folder", f"{folder}, which only root can read")]
    if kind := network_filesystem(folder):
        advice = "SQLite's locks do not hold there. Set state_folder in config.toml to a folder on a local disk."
        return [missing("state folder", f"{folder} is on a network file system ({kind})", advice)]
    existing = next(above for above in (folder, *folder.parents) if above.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        advice = "No engine can run. Set state_folder in config.toml to a folder of yours, or fix its permissions."
        return [missing("state folder", f"{existing} is not a folder that you can write to", advice)]
    text = str(folder) if existing == folder else f"{folder} (will be made)"
    return [ok("state folder", text), _space(existing)]


def _space(folder: Path) -> Finding:
    stats = os.statvfs(folder)
    # f_bavail: without the blocks that are reserved for root (statvfs(3)).
    gib = stats.f_bavail * stats.f_frsize / BYTES_PER_GIB
    text = f"{gib:.1f} GiB free for the journal and containers"
    # Some file systems, such as btrfs, do not count files, and report 0 of both.
    if gib < EMPTY_GIB or (stats.f_files and not stats.f_favail):
        return missing("disk", text, f"No job can be accepted. Free some space or files on the disk of {folder}.")
    if gib < SCARCE_GIB:
        return note("disk", text, "Held containers occupy disk space: `cockpit holds end` frees it.")
    return ok("disk", text)


def socket_folder(around: Surroundings) -> list[Finding]:
    folder = around.socket.parent
    try:
        owner = 0 if around.system else around.uid
        exists = trusted_socket_folder(around.socket, owner, create=False, shared=around.system)
    except RuntimeMissing as wrong:
        return [
            missing("socket folder", str(wrong), f"No engine can be reached: `rm -r {folder}` as its owner or root.")
        ]
    return [ok("socket folder", str(folder) if exists else f"{folder} (will be made)")]


NANOS_PER_SECOND = 1_000_000_000
EARLIEST_SECONDS = 1_735_689_600
"""2025-01-01 in seconds since 1970. An earlier time means that the clock was never set."""


def python(_around: Surroundings) -> list[Finding]:
    version = f"{platform.python_version()} ({sys.executable})"
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
    text = ", ".join(f"{count} × {model}" for model, count in counts.items())
    return [ok("cards", f"{text}, driver {node.driver_version or 'unknown'}")]


def time_of_day(_around: Surroundings) -> list[Finding]:
    import datetime as dt

    seconds = wall_nanos() // NANOS_PER_SECOND
    shown = f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    if seconds < EARLIEST_SECONDS:
        advice = "Start times and accounting will be wrong. Run `timedatectl set-ntp true` as root."
        return [missing("time", f"{shown}: the clock was never set", advice)]
    return [ok("time", shown)]


CGROUPS = "sys/fs/cgroup"
ADVICE = "A job can use more than it requested. Let root start the engine: `cockpit engine start --system`."


def limits(around: Surroundings) -> list[Finding]:
    """Check what enforces a job's limits on CPUs, memory and processes."""
    mounted = around.root / CGROUPS
    controllers = read_text(mounted / "cgroup.controllers").split()
    return [_limits_v2(mounted, controllers) if controllers else _limits_v1(mounted)]


def _limits_v2(mounted: Path, controllers: list[str]) -> Finding:
    if not _writable(mounted) or not _writable(mounted / "cgroup.subtree_control"):
        return note("limits", f"cgroup v2, but {mounted} may not be written: limits are soft (rlimits)", ADVICE)
    lacking = [name for name in CONTROLLERS if name not in controllers]
    if lacking:
        advice = "Boot the machine with these controllers, or enable them for the container that this system runs in."
        return note("limits", f"cgroup v2 without {', '.join(lacking)}: limits are soft (rlimits)", advice)
    return ok("limits", "cgroup v2: CPUs, memory and processes are enforced")


def _limits_v1(mounted: Path) -> Finding:
    usable = [name for name in CONTROLLERS if _writable(mounted / name)]
    if len(usable) == len(CONTROLLERS):
        return ok("limits", "cgroup v1: CPUs, memory and processes are enforced")
    text = "cgroup v1" if any((mounted / name).is_dir() for name in CONTROLLERS) else "no cgroups"
    lacking = ", ".join(name for name in CONTROLLERS if name not in usable)
    return note("limits", f"{text}, {lacking} may not be written: limits are soft (rlimits)", ADVICE)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK)


PODMAN = "podman"
PROGRAMS = (PODMAN, "docker")
"""The programs that may have an image, in the order in which they are tried."""


def images(around: Surroundings) -> list[Finding]:
    for program in PROGRAMS:
        version = around.probe((program, "--version"))
        if version.ok:
            how = "in containers of its own" if program == PODMAN and around.uid == 0 else "as copies"
            return [ok("images", f"by name from {version.first_line}, {how}, or as dir:PATH and tar:PATH")]
    advice = "An image by its name needs podman or docker: `apt-get install podman` as root."
    return [note("images", "as dir:PATH and tar:PATH; neither podman nor docker is installed", advice)]


_SILENT = "no answer in time"


def slurm(around: Surroundings) -> list[Finding]:
    """Check that `scontrol ping` answers, with `Slurmctld(primary) at host is UP` (scontrol(1))."""
    answer = around.probe(("scontrol", "ping"))
    if answer.ok and " is UP" in answer.text:
        return [ok("Slurm", answer.first_line)]
    if answer.outcome is Outcome.ABSENT:
        result = "scontrol is not installed"
    else:
        result = f"slurmctld does not answer: {answer.first_line if answer.outcome is Outcome.ANSWERED else _SILENT}"
    if around.slurm:
        advice = "Run `scontrol ping`. Commands without -c use this cluster; -c local is your own engine."
        return [missing("Slurm", f"configured by {around.slurm}, but {result}", advice)]
    if answer.outcome is Outcome.ABSENT:
        return [note("Slurm", result, "Slurm clusters are reached from a login node, or over SSH.")]
    return [note("Slurm", f"scontrol is installed, but {result}", "Run `scontrol ping`.")]


def kubernetes(around: Surroundings) -> list[Finding]:
    """Check only whether a kubeconfig exists: doctor does not connect to remote clusters."""
    files = _kubeconfigs(around)
    present = [str(path) for path in files if path.is_file()]
    if present:
        return [ok("Kubernetes", f"kubeconfig {', '.join(present)}; open it with -c")]
    return [note("Kubernetes", f"no kubeconfig at {files[0]}", "Set KUBECONFIG to open a Kubernetes cluster.")]


def _kubeconfigs(around: Surroundings) -> list[Path]:
    listed = [Path(path) for path in around.env.get("KUBECONFIG", "").split(":") if path]
    return listed or [Path(around.env.get("HOME", "/")) / ".kube/config"]


SMALLEST = os.terminal_size((80, 24))


def terminal(around: Surroundings) -> list[Finding]:
    name = around.env.get("TERM", "")
    if name in ("", "dumb"):
        advice = "The screens need a terminal; commands work without one. Set TERM, for example to xterm-256color."
        return [note("terminal", f"TERM is {name or 'not set'}", advice)]
    within = " in tmux" if around.env.get("TMUX") else " in screen" if around.env.get("STY") else ""
    return [ok("terminal", f"{name}{within}"), _colours(around, name), *_size()]


def _colours(around: Surroundings, name: str) -> Finding:
    if around.env.get("COLORTERM", "") in ("truecolor", "24bit"):
        return ok("colours", "16 million")
    if "256" in name or "direct" in name:
        return ok("colours", "256 (set COLORTERM=truecolor if this terminal can do more)")
    return note("colours", f"few, as far as TERM={name} tells", "Set TERM=xterm-256color or COLORTERM=truecolor.")


def _size() -> list[Finding]:
    try:
        size = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)
    except (OSError, ValueError):
        return []
    shown = f"{size.columns} × {size.lines}"
    if size.columns < SMALLEST.columns or size.lines < SMALLEST.lines:
        return [note("size", shown, "The screens need at least 80 × 24: make the window larger.")]
    return [ok("size", shown)]


def locale(around: Surroundings) -> list[Finding]:
    """Check that the locale is UTF-8. The first of three variables that is set decides, locale(7)."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    value = next((around.env[name] for name in names if around.env.get(name)), "")
    if "UTF-8" in value.upper() or "UTF8" in value.upper():
        return [ok("characters", value)]
    return [
        note(
            "characters",
            f"{value or 'no locale'} is not UTF-8",
            "Bars and symbols become ASCII: `export LANG=C.UTF-8`.",
        )
    ]


def tmux(around: Surroundings) -> list[Finding]:
    answer = around.probe(("tmux", "-V"))
    if answer.ok:
        return [ok("tmux", answer.first_line.removeprefix("tmux "))]
    return [note("tmux", "not installed", "Shells cannot open beside the cockpit: `apt-get install tmux`.")]
