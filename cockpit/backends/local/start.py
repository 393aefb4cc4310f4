"""Connects to an engine, and starts the user's own if it does not run. The engine outlives this process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING

from cockpit.backends.local.channel import Channel
from cockpit.errors import ProtocolMismatch, StoreError, Unreachable
from cockpit.runtime.socket_folder import trusted_socket_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cockpit.config.places import EnginePaths


START_SECONDS = 20.0
STARTS = 3
LOOK_SECONDS = 0.01
LOG = "engine.log"
# EX_IOERR of sysexits.h.
STORE_FAILED = 74
"""Exit code of an engine that ends because of its state folder."""
LAST_WORDS = 4000
"""Characters of the engine's log that are shown when it does not start."""

_NOBODY = (FileNotFoundError, ConnectionRefusedError, ConnectionResetError)


def connect(places: EnginePaths, *, system: bool = False) -> Channel | None:
    """Connect to the user's own or the machine-wide engine at `places`; None if it does not run."""
    owner = 0 if system else os.geteuid()
    if not trusted_socket_folder(places.address, owner, create=False, shared=system):
        return None
    try:
        return Channel.connect(places.address)
    except _NOBODY:
        return None


def start(places: EnginePaths, *, system: bool = False) -> Channel:
    """Start an engine and wait until it answers; if it is killed meanwhile, start it again.

    Raises `Unreachable` with the end of its log when it does not answer, and `StoreError` when its state folder cannot
    be used.
    """
    log = _log_file(places)
    # What the log has before it are the words of earlier engines.
    began = log.stat().st_size if log.exists() else 0
    deadline = time.monotonic() + START_SECONDS
    for _ in range(STARTS):
        pid = _spawn(log, system=system)
        status = None
        while status is None and time.monotonic() < deadline:
            ended, wait_status = os.waitpid(pid, os.WNOHANG)
            channel = _try_connect(places, system=system)
            if channel is not None:
                return channel
            status = wait_status if ended else None
            time.sleep(LOOK_SECONDS)
        if status is None:
            raise Unreachable(f"The engine was started but does not answer after {START_SECONDS:.0f} s; see {log}.")
        # It ended by itself and said why; a second start would end likewise.
        if not os.WIFSIGNALED(status):
            break
    last_words = _last_words(log, began)
    raise StoreError(last_words) if status is not None and _store_failed(status) else Unreachable(last_words)


def _store_failed(status: int) -> bool:
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == STORE_FAILED


def _try_connect(places: EnginePaths, *, system: bool) -> Channel | None:
    """Return the engine's greeting; None also if the engine ends while it greets: its log then says why."""
    try:
        return connect(places, system=system)
    except ProtocolMismatch:
        raise
    except Unreachable:
        return None


def _log_file(places: EnginePaths) -> Path:
    """Create the engine's log, with its folder, and return its path. Raises `StoreError`."""
    try:
        places.state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = places.state_folder / LOG
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(
            f"The engine cannot be started: {places.state_folder}: {error.strerror}. "
            "Set `state_folder` in config.toml (or COCKPIT_STATE_FOLDER) to a folder that you may write."
        ) from error
    return log


def _spawn(log: Path, *, system: bool) -> int:
    """Start the engine in a session of its own, without this terminal, its blocked and its ignored signals, and with
    its output in the log. Returns its pid."""
    # -P: a folder named cockpit where the user stands must not take the place of this package.
    arguments = [sys.executable, "-P", "-m", "cockpit.clusters.engine_process", *(["--system"] if system else [])]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
    ]
    usual = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    return os.posix_spawn(
        sys.executable, arguments, _environment(), file_actions=files, setsid=True, setsigmask=(), setsigdef=usual
    )


def _environment() -> dict[str, str]:
    """Return the environment without variables that would tie the engine to this terminal or session."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TMUX", "SSH_", "TERM"))}


def _last_words(log: Path, began: int) -> str:
    with log.open("rb") as file:
        file.seek(began)
        text = file.read().decode("utf-8", "backslashreplace").strip()
    if text:
        return text.removeprefix("cockpit engine: ")[-LAST_WORDS:]
    # On a disk without a free byte the engine's own sentence about it finds no room in the log either.
    full = (
        f" The disk that holds {log.parent} is full: free some space." if not shutil.disk_usage(log.parent).free else ""
    )
    return f"The engine ended at once; see {log}.{full}"


RESTART_SECONDS = 5.0
STOPPED = "The engine was stopped; `cockpit engine start` starts it, and so does any change."


def reconnect(ways: Sequence[EngineDialer]) -> Channel:
    """Connect by the first way that reaches an engine again; an engine that is being restarted is waited for. Raises
    `Unreachable`."""
    deadline = time.monotonic() + RESTART_SECONDS
    while True:
        for way in ways:
            try:
                return way.reach_again()
            except Unreachable as error:
                last = error
        if time.monotonic() > deadline:
            raise last
        time.sleep(LOOK_SECONDS)


class EngineDialer:
    """Connects to the engine at `places`: the user's own, which is started if needed, or the machine-wide one."""

    def __init__(self, places: EnginePaths, *, system: bool = False) -> None:
        self._places = places
        self._system = system

    def reach(self) -> Channel:
        """Return a connection. A user's own engine is started where it does not run. Raises `Unreachable`."""
        channel = connect(self._places, system=self._system)
        if channel is not None:
            return channel
        if not self._system:
            return start(self._places)
        raise Unreachable("The machine-wide engine does not run; root starts it with `cockpit engine start --system`.")

    def reach_again(self) -> Channel:
        """Connect again after a lost connection. An engine that was stopped in order is not started again.

        It removes its socket then; one that was killed leaves it, and is started again. A socket that only comes while
        we look is another engine's.
        """
        left = self._places.socket.exists()
        channel = connect(self._places, system=self._system)
        if channel is not None:
            return channel
        if not self._system and left and self._places.socket.exists():
            return start(self._places)
        raise Unreachable(STOPPED)
