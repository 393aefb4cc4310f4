"""The embedded engine as a process: status, start, stop, restart. Works on an engine that answers, hangs or is gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from typing import TYPE_CHECKING

from cockpit import __version__
from cockpit.backends.drive import drive
from cockpit.backends.local.backend import LocalBackend
from cockpit.backends.local.start import connect, start
from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.view import EngineStatus
from cockpit.protocol.frames import MAJOR, MINOR

if TYPE_CHECKING:
    from cockpit.backends.local.channel import Channel
    from cockpit.config.places import EnginePaths
    from cockpit.model.view import HoldRow

TERM_SECONDS = 15.0
LOOK_SECONDS = 0.02
LOCK = "engine.lock"


class LocalEngineControl:
    """Controls the engine at `places`; `system` when that is the machine-wide one."""

    def __init__(self, places: EnginePaths, *, system: bool) -> None:
        self._places = places
        self._system = system

    def status(self) -> EngineStatus:
        """Return the engine's status without starting it. An engine that hangs counts as running, with a sentence in
        `trouble`."""
        try:
            channel = connect(self._places, system=self._system)
        except Unreachable as error:
            return self._status_without_engine(self._holder(), str(error))
        if channel is None:
            return self._status_without_engine(None)
        return self._ask(channel)

    def start(self) -> EngineStatus:
        """Start it unless it runs."""
        if self._system and os.geteuid() != 0:
            raise RequestRefused(Refusal(RefusalKind.DENIED, "A machine-wide engine is started by root: use sudo."))
        channel = connect(self._places, system=self._system) or start(self._places, system=self._system)
        return self._ask(channel)

    def take_over(self) -> None:
        """Start it if it was stopped and its containers are still there: nothing else can end them."""
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if any((self._places.state_folder / "containers").iterdir()) and self._find_pid() is None:
                self.start()

    def holds(self) -> list[HoldRow]:
        """Return the held containers, where an engine runs and answers; else none."""
        try:
            channel = connect(self._places, system=self._system)
        except CockpitError:
            return []
        if channel is None:
            return []
        with contextlib.closing(channel):
            return drive(LocalBackend(lambda: channel).holds())

    def stop(self, *, jobs: bool, holds: bool = False) -> None:
        """End the engine, if it runs. Jobs and held containers stay, unless they are to be ended first."""
        if (jobs or holds) and (channel := connect(self._places, system=self._system)) is not None:
            drive(LocalBackend(lambda: channel).stop(jobs=jobs, holds=holds))
        elif (pid := self._find_pid()) is not None:
            with contextlib.suppress(ProcessLookupError):
                # A process that was stopped (SIGSTOP) would get SIGTERM only when it continues.
                self._signal(pid, signal.SIGCONT)
                self._signal(pid, signal.SIGTERM)
        if not self._gone_within(TERM_SECONDS):
            self._kill()

    def restart(self) -> EngineStatus:
        """Stop the engine, whatever its state, and start it again; no job ends."""
        self.stop(jobs=False)
        return self.start()

    def _ask(self, channel: Channel) -> EngineStatus:
        backend = LocalBackend(lambda: channel)
        try:
            return drive(backend.status())
        finally:
            channel.close()

    def _status_without_engine(self, pid: int | None, trouble: str = "") -> EngineStatus:
        """Return the status when no engine answers. `pid`: of one that runs but does not answer."""
        return EngineStatus(
            running=pid is not None,
            pid=pid,
            socket=str(self._places.socket),
            state_folder=str(self._places.state_folder),
            version=__version__,
            protocol=f"{MAJOR}.{MINOR}",
            system=self._system,
            started_at=None,
            jobs=0,
            trouble=(trouble,) if trouble else (),
        )

    def _find_pid(self) -> int | None:
        """Return the engine's process: the holder of the state folder, else, since the folder may be gone, the one that
        answers."""
        return self._holder() or self._find_answering_pid()

    def _find_answering_pid(self) -> int | None:
        """Return the process id of the engine that answers; None without one."""
        try:
            channel = connect(self._places, system=self._system)
        except CockpitError:
            return None
        if channel is None:
            return None
        with contextlib.closing(channel):
            return channel.hello.pid

    def _holder(self) -> int | None:
        """Return the process that holds the state folder; None if there is none."""
        try:
            lock = os.open(self._places.state_folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise RequestRefused(
                Refusal(RefusalKind.DENIED, "The machine-wide engine is controlled by root: use sudo.")
            ) from error
        try:
            # The engine holds the lock exclusively as long as it lives, so a lock that can be shared has no holder. The
            # file's text alone may be of a process that was killed.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            # Empty for a moment, between the engine's lock and its writing.
            written = os.pread(lock, 32, 0).strip()
            return int(written) if written.isdigit() else None
        finally:
            os.close(lock)
        return None

    def _signal(self, pid: int, number: signal.Signals) -> None:
        try:
            os.kill(pid, number)
        except PermissionError as error:
            raise RequestRefused(
                Refusal(RefusalKind.DENIED, f"The engine (process {pid}) is another user's: use sudo.")
            ) from error

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._find_pid() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def _kill(self) -> None:
        pid = self._find_pid()
        if pid is not None:
            self._signal(pid, signal.SIGKILL)
            if not self._gone_within(TERM_SECONDS):
                raise CockpitError(
                    f"The engine (process {pid}) does not end, not even when killed; see its state in ps."
                )
