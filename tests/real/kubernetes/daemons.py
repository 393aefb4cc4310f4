"""Programs of a test cluster, each in a process group of its own, which end with the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PATIENCE_SECONDS = 120.0
GRACE_SECONDS = 5.0


def wait_until(what: str | Callable[[], str], is_so: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Ask again until it is so. AssertionError with these words where that takes too long."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s: {what() if callable(what) else what}"
        time.sleep(0.05)


class Daemons:
    """Programs by name; what each prints is in `logs/NAME` of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "logs").mkdir(exist_ok=True)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        reaper = [sys.executable, "-IS", str(Path(__file__).with_name("reaper.py")), str(folder)]
        self._reaper = subprocess.Popen(
            reaper, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        until: Callable[[], object] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start a program, and wait `until` it is ready. AssertionError with its last words where it ends instead."""
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **(env or {})},
                start_new_session=True,
            )
        self._running[name] = process
        self._tell_reaper(f"+{process.pid}")
        if until is not None:
            wait_until(lambda: f"{name} is not ready: {self.last_words(name)}", lambda: self._is_ready(name, until))

    def log(self, name: str) -> Path:
        return self.folder / "logs" / name

    def last_words(self, name: str) -> str:
        file = self.log(name)
        return file.read_text(errors="replace")[-2000:] if file.exists() else ""

    def lives(self, name: str) -> bool:
        return name in self._running and self._running[name].poll() is None

    def stop(self, name: str) -> None:
        """End it in order; kill what is left of its group."""
        self._signal(name, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._running[name].wait(GRACE_SECONDS)
        self.kill(name)

    def kill(self, name: str) -> None:
        """End it without a chance to put anything in order."""
        self._signal(name, signal.SIGKILL)
        process = self._running.pop(name)
        process.wait()
        self._tell_reaper(f"-{process.pid}")

    def pause(self, name: str) -> None:
        """Have it answer nothing and keep its connections."""
        self._signal(name, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)

    def stop_all(self) -> None:
        """End all, the latest first, and remove the folder."""
        for name in list(reversed(self._running)):
            self.stop(name)
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper.wait()

    def _is_ready(self, name: str, until: Callable[[], object]) -> bool:
        assert self.lives(name), f"{name} ended: {self.last_words(name)}"
        return bool(until())

    def _signal(self, name: str, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._running[name].pid, number)

    def _tell_reaper(self, line: str) -> None:
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(f"{line}\n".encode())
        self._reaper.stdin.flush()
