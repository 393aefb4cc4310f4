"""Spawns shims: everything here blocks for some milliseconds and is called from a thread."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cockpit.runtime import faults
from cockpit.runtime.containers.shim import boot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.runtime.containers.plan import ContainerPlan
    from cockpit.runtime.containers.shim.attempt import Attempt

_SHIM_SECONDS = 30
_READY_SECONDS = 10
_LAUNCHED_OR_OTHER = (0, 3)
"""hold.LAUNCHED, hold.NOTHING_TO_DO"""


class SpawnError(Exception):
    """No holder came to be; the text says why."""


def shim_command(python: str, verb: str, *arguments: str) -> list[str]:
    """The isolated interpreter, so that neither environment nor site packages decide what runs."""
    return [python, "-I", "-S", boot.__file__, verb, *arguments]


def spawn(attempt: Attempt, plan: ContainerPlan, python: str) -> None:
    """Write the plan down, then run the attempt's shim until its holder goes on by itself (or another's does).

    Raises SpawnError or OSError; then the command has not run.
    """
    folder = Path(attempt.path)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    Path(plan.stdout).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if attempt.read("plan.json") is None:
        attempt.write_bytes("plan.json", msgspec.json.encode(plan))
    faults.point("planned", attempt.name)
    _run_shim(attempt, python, ready=("shim.json", "exit.json"))


def spawn_again(attempt: Attempt, python: str) -> None:
    """A new holder for a kept container whose holder is gone. Raises SpawnError or OSError."""
    _run_shim(attempt, python, "again", ready=("started.json",))


def _run_shim(attempt: Attempt, python: str, *mode: str, ready: Sequence[str]) -> None:
    with Path(attempt.file("shim.log")).open("ab") as log:
        done = subprocess.run(
            shim_command(python, "hold", attempt.path, *mode),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
            timeout=_SHIM_SECONDS,
            check=False,
            env={},
        )
    if done.returncode not in _LAUNCHED_OR_OTHER or not _appears(attempt, ready):
        raise SpawnError(f"the container's shim failed: {_last_line(attempt)}")


def _appears(attempt: Attempt, names: Sequence[str]) -> bool:
    """Whoever holds the lock, this shim or that of an engine that was killed, may be about to write."""
    deadline = time.monotonic() + _READY_SECONDS
    while not any(attempt.read(name) for name in names):
        if not attempt.is_locked() or time.monotonic() > deadline:
            return any(attempt.read(name) for name in names)
        time.sleep(0.005)
    return True


def _last_line(attempt: Attempt) -> str:
    lines = Path(attempt.file("shim.log")).read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it ended without a word"
