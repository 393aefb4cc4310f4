"""Runs TensorBoard over several folders, one run for each. It runs as this user, listens on this machine only, and runs
until it is stopped.

Each board has a folder with links to its runs, its log, and a file that its program keeps locked while it lives.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROGRAM = "tensorboard"
HOST = "127.0.0.1"
MISSING = "TensorBoard is not installed here. Install it beside cockpit: pip install 'cockpit-cluster[tensorboard]'."
REINSTALL = "Look at the interpreter that its first line names, or install TensorBoard again."
START_SECONDS, STOP_SECONDS, LOOK_SECONDS = 60.0, 5.0, 0.05
LAST_LINES = 3
"""Lines of the log that the error of a failed start quotes."""
_ADDRESS = re.compile(rf"http://{re.escape(HOST)}:\d+/[^\s]*".encode())


def program() -> str:
    """Return the path of the program on PATH, else of the one beside this Python. Raises `CockpitError` where there is
    none."""
    beside = Path(sys.executable).with_name(PROGRAM)
    path = shutil.which(PROGRAM) or (str(beside) if os.access(beside, os.X_OK) else "")
    if not path:
        raise CockpitError(MISSING)
    return path


class Board:
    """One TensorBoard. `folder` is private to this user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs, self._log = folder / "runs", folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        """The program, if it was started by this object: then it is its child."""

    @property
    def address(self) -> str:
        """Return its address; empty while it does not run, or does not listen yet. Nothing is written."""
        if not self._folder.exists():
            return ""
        with self._lock() as free:
            return "" if free else self._printed_address()

    def start(self, runs: Mapping[str, str]) -> str:
        """Return the address of the running TensorBoard, or start one on a free port and wait until it listens. `runs`:
        folders by the name of the run; a folder that does not exist yet is shown once it does. Raises `CockpitError`.
        """
        if not any(os.access(each, os.R_OK | os.X_OK) for each in runs.values()):
            raise CockpitError(
                f"None of the output folders can be read from here, such as {next(iter(runs.values()))}."
            )
        path = program()
        with self._lock() as free:
            self._link(runs)
            self._process = self._spawn(path, free) if free else None
        return self._listening()

    def stop(self) -> bool:
        """Stop it, and return whether it was running."""
        if not self._folder.exists():
            return False
        with self._lock() as free:
            if free:
                return False
        # Its whole group, since it starts processes of its own; it has ended when the lock is free.
        pid = self._holder()
        for sign, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
            with suppress(ProcessLookupError):
                os.killpg(pid, sign)
            if self._ends_within(seconds):
                break
        if self._process is not None:
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        return True

    @contextmanager
    def _lock(self) -> Iterator[int]:
        """Return the descriptor of the locked file; 0 if a running TensorBoard has the lock."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Opened without emptying it: it has the pid of the process that holds the lock.
        with (self._folder / "running").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield 0
            else:
                yield file.fileno()

    def _link(self, runs: Mapping[str, str]) -> None:
        self._runs.mkdir(exist_ok=True)
        for name, folder in runs.items():
            link = self._runs / name
            link.unlink(missing_ok=True)
            link.symlink_to(folder)

    def _spawn(self, path: str, lock: int) -> subprocess.Popen[bytes]:
        """Start the program, which inherits the lock and so keeps it as long as it runs."""
        os.ftruncate(lock, 0)  # so that no reader takes an earlier process's address for this one's
        with self._log.open("wb") as log:
            try:
                process = subprocess.Popen(
                    [path, "--logdir", self._runs, "--host", HOST, "--port", "0"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(lock,),
                )
            except OSError as error:  # a program that is there, while what its first line names is not
                raise CockpitError(f"{path} cannot be started ({error.strerror}). {REINSTALL}") from None
        os.write(lock, str(process.pid).encode())
        return process

    def _listening(self) -> str:
        process = self._process
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if address := self._printed_address():
                return address
            if process is not None and process.poll() is not None:
                last_lines = " ".join(self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])
                raise CockpitError(f"TensorBoard ended at once with exit code {process.returncode}: {last_lines}")
            time.sleep(LOOK_SECONDS)
        raise CockpitError(f"TensorBoard did not say within {START_SECONDS:g} s where it listens; see {self._log}.")

    def _printed_address(self) -> str:
        match = _ADDRESS.search(self._log.read_bytes()) if self._log.exists() else None
        return match[0].decode(errors="replace") if match else ""

    def _holder(self) -> int:
        """Return the process that has the lock; its id is written shortly after it gets the lock."""
        until = time.monotonic() + STOP_SECONDS
        while time.monotonic() < until:
            if written := (self._folder / "running").read_text():
                return int(written)
            time.sleep(LOOK_SECONDS)
        raise CockpitError(f"An unknown program has {self._folder / 'running'} locked; end it by hand.")

    def _ends_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with self._lock() as free:
                if free:
                    return True
            time.sleep(LOOK_SECONDS)
        return False
