"""`cockpit doctor`: what this machine has, what is missing, what cockpit lacks without it, and what mends it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cockpit.runtime.checks import containers, folders, hardware, images, limits, schedulers, terminal
from cockpit.runtime.checks.surroundings import Check, Surroundings
from cockpit.runtime.findings import Finding, note
from cockpit.runtime.probe_command import Probe, printable, probe_command

CHECKS: tuple[Check, ...] = (
    hardware.python,
    hardware.machine,
    containers.bubblewrap,
    containers.namespaces,
    containers.overlay,
    containers.outward,
    images.images,
    limits.limits,
    folders.state_folder,
    folders.socket_folder,
    schedulers.slurm,
    schedulers.kubernetes,
    terminal.terminal,
    terminal.locale,
    terminal.tmux,
    hardware.time_of_day,
)


def findings(
    *,
    socket: Path,
    state_folder: Path,
    env: Mapping[str, str],
    uid: int | None = None,
    probe: Probe = probe_command,
    system: bool = False,
    slurm: str = "",
) -> list[Finding]:
    """Everything, in the order of a first reading.

    Never raises; every program asked is given its time limit once. `socket` and `state_folder` are the engine's that
    this user would talk to, the machine's with `system`; `env` is the environment the user sits in; `slurm` says what
    configures a Slurm cluster here, empty where nothing does.
    """
    around = Surroundings(
        env=env,
        uid=os.getuid() if uid is None else uid,
        socket=socket,
        state_folder=state_folder,
        system=system,
        slurm=slurm,
        probe=probe,
    )
    return [finding for check in CHECKS for finding in _survived(check, around)]


def _survived(check: Check, around: Surroundings) -> list[Finding]:
    try:
        return check(around)
    except Exception as error:  # noqa: BLE001 - a doctor that falls ill tells less than one that says where
        subject = check.__name__.replace("_", " ")
        return [note(subject, f"could not be looked at: {printable(f'{type(error).__name__}: {error}', 200)}")]
