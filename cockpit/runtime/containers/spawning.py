"""Spawn shims. All functions block for some milliseconds, and are called from threads."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cockpit.runtime import faults
from cockpit.runtime.containers import networks
from cockpit.runtime.containers.shim import boot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.runtime.containers.plan import ContainerPlan
    from cockpit.runtime.containers.shim.attempt import Attempt

_SHIM_SECONDS = 30
"""Time limit of a shim, which normally takes some tens of milliseconds."""
_GONE_SECONDS = 2
"""Longest wait for the processes of a dead shim to end."""
_BEGUN = ("beginning.json", "started.json", "exit.json")
_READY_SECONDS = 10
"""Longest wait for a holder's records."""
_LAUNCHED_OR_OTHER = (0, 3)
"""hold.LAUNCHED, hold.NOTHING_TO_DO"""
_COMMIT_SECONDS = 1900
"""Time limit for podman to commit the files of a held container to an image."""
_REFUSED = 4
"""hold.REFUSED"""


_INHERITED = ("PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CONTAINERS_STORAGE_CONF")
"""The variables by which podman and docker find their images."""


class SpawnError(Exception):
    """No holder was started; the text says why."""


class ShimDied(SpawnError):
    """The shim died before its holder could start the command, and no process of it is left."""


def shim_command(python: str, verb: str, *arguments: str) -> list[str]:
    """Return the command of a shim program. Python runs isolated from environment variables and site packages."""
    return [python, "-I", "-S", boot.__file__, verb, *arguments]


def shim_environment() -> dict[str, str]:
    """Return the part of the engine's environment that its shims inherit."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


class Shims:
    """Starts shims, and keeps one waiting, since starting Python takes longer than making a container.

    A waiting shim ends with the engine, because its standard input is then closed.
    """

    def __init__(self, python: str) -> None:
        self._python = python
        self._ready: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def run(self, order: str) -> int:
        """Give a shim its order (see `shim.hold`), and return its exit code; its holder then continues by itself."""
        # The lock covers the exchange alone: several containers are started at once, in several threads.
        with self._lock:
            shim, self._ready = self._ready, None
        if shim is None or shim.poll() is not None:
            shim = self._start()
        try:
            # Its standard output is not a pipe that the holder would inherit, so this ends with the shim alone.
            shim.communicate(order.encode(), timeout=_SHIM_SECONDS)
        except subprocess.TimeoutExpired:
            shim.kill()
            shim.wait()
        return shim.returncode

    def prepare(self) -> None:
        """Start a shim that waits for the next order, unless one is waiting."""
        with self._lock:
            if self._ready is None:
                self._ready = self._start()

    def close(self) -> None:
        """End the waiting shim."""
        with self._lock:
            shim, self._ready = self._ready, None
        # At the end of its input without an order, a shim ends.
        if shim is not None:
            shim.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            shim_command(self._python, "hold"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # a signal for the engine's terminal must not reach it, and no folder is kept busy
            start_new_session=True,
            cwd="/",
            env=shim_environment(),
        )


def spawn(attempt: Attempt, plan: ContainerPlan, shims: Shims) -> None:
    """Write the plan to disk, then run the attempt's shim until its holder, or that of an earlier shim, is running.

    Raises SpawnError or OSError; then the command has not run.
    """
    Path(attempt.path).mkdir(parents=True, exist_ok=True, mode=0o700)
    Path(plan.stdout).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Before the shim, which locks and uses a file in it.
    if plan.network:
        networks.lay_out(Path(plan.network))
    # A repeated start keeps the first plan: a shim of an earlier engine may be working by it.
    if attempt.read("plan.json") is None:
        attempt.write_bytes("plan.json", msgspec.json.encode(plan))
    faults.point("planned", attempt.name)
    _run(attempt, shims, [], ready=("shim.json", "exit.json"))


def spawn_again(attempt: Attempt, shims: Shims) -> None:
    """Start a new holder for a held container whose holder has died. Raises SpawnError or OSError."""
    was_plain = (attempt.read("shim.json") or {}).get("plain", False)
    seconds = _COMMIT_SECONDS if attempt.plan().get("podman") else _READY_SECONDS
    _run(attempt, shims, ["again", "plain"] if was_plain else ["again"], ready=("started.json",), seconds=seconds)


def forget(attempt: Attempt, python: str) -> None:
    """Let podman remove its container and image of the attempt, whose holder must be dead.

    An administrator can find what podman fails to remove: its name and label contain the attempt.
    """
    if (attempt.read("plan.json") or {}).get("podman"):
        command = shim_command(python, "forget", attempt.path)
        subprocess.run(command, env=shim_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _run(
    attempt: Attempt, shims: Shims, modes: Sequence[str], *, ready: Sequence[str], seconds: float = _READY_SECONDS
) -> None:
    code = shims.run("\n".join([attempt.path, *modes]))
    # The refusal was recorded nowhere and nothing was begun, so the same attempt may be tried the other way.
    if code == _REFUSED:
        code = shims.run("\n".join([attempt.path, *modes, "plain"]))
    # In this order: while a process of the shim lives, the command may still begin after the records were read.
    if code not in _LAUNCHED_OR_OTHER and _is_gone(attempt) and not any(attempt.read(name) for name in _BEGUN):
        raise ShimDied(f"the container's shim died before the command began: {_last_line(attempt, code)}")
    # A holder that outlives its shim was released by it, and runs the command.
    if not _appears(attempt, ready, seconds):
        raise SpawnError(f"the container's shim failed: {_last_line(attempt, code)}")


def _is_gone(attempt: Attempt) -> bool:
    """Return whether all processes that the shim forked are dead. A holder waiting for its shim ends when that dies."""
    deadline = time.monotonic() + _GONE_SECONDS
    while attempt.is_locked():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _appears(attempt: Attempt, names: Sequence[str], seconds: float) -> bool:
    """Wait until one of the records exists, as long as a shim (perhaps of an earlier engine) holds the lock."""
    deadline = time.monotonic() + seconds
    while not any(attempt.read(name) for name in names):
        if not attempt.is_locked() or time.monotonic() > deadline:
            # Looked at once more: the record may have been written, and the lock released, since the line above.
            return any(attempt.read(name) for name in names)
        time.sleep(0.005)
    return True


def _last_line(attempt: Attempt, code: int) -> str:
    """Return the last line that the shim wrote; without one, how the shim's process ended (as Popen.returncode)."""
    log = Path(attempt.file("shim.log"))
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
    return lines[-1] if lines else f"{ended}, without a message"
