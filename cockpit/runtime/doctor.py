"""Run the checks of `cockpit doctor`: what this machine has, what is missing, its effect, and how to fix it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cockpit.runtime.checks import containers, surroundings
from cockpit.runtime.checks.surroundings import Check, Surroundings
from cockpit.runtime.findings import Finding, note
from cockpit.runtime.probe_command import Probe, printable, probe_command

CHECKS: tuple[Check, ...] = (
    surroundings.python,
    surroundings.machine,
    containers.bubblewrap,
    containers.namespaces,
    containers.overlay,
    containers.outward,
    surroundings.images,
    surroundings.limits,
    surroundings.state_folder,
    surroundings.socket_folder,
    surroundings.slurm,
    surroundings.kubernetes,
    surroundings.terminal,
    surroundings.locale,
    surroundings.tmux,
    surroundings.time_of_day,
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
    """Run all checks and return their findings, in the order in which they are shown.

    Never raises. Each program that is run has a time limit. `socket` and `state_folder` belong to the engine that this
    user would connect to, with `system` the machine's engine. `env` is the user's environment. `slurm` names the file
    or variable that configures a Slurm cluster on this machine; empty: there is none.
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
    return [finding for check in CHECKS for finding in _run_check(check, around)]


def _run_check(check: Check, around: Surroundings) -> list[Finding]:
    try:
        return check(around)
    except Exception as error:  # noqa: BLE001 - one failing check must not hide the findings of the others
        subject = check.__name__.replace("_", " ")
        return [note(subject, f"could not be checked: {printable(f'{type(error).__name__}: {error}', 200)}")]
