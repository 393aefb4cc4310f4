"""Opens the input and output of a step's tasks: the script's own streams, with labels or without, or files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from cockpit.runtime.containers.slurmtools.options import Task, Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

_PATTERN = re.compile(r"%(?:%|(?P<width>\d{0,2})(?P<letter>[AajJNnstux]))")
_PIECE = 1 << 16
"""Bytes of standard input that are read at a time."""


def is_nothing(fd: int) -> bool:
    """Return whether a descriptor is /dev/null, or closed."""
    try:
        return os.path.samestat(os.fstat(fd), Path("/dev/null").stat())
    except OSError:
        return True


def spread(to: list[IO[bytes]]) -> None:
    """Give every task all of standard input; one that ended early misses nothing of the others."""
    alive = list(to)
    while alive:
        piece = os.read(0, _PIECE)
        if not piece:
            break
        # A copy, since a task that does not read any more leaves the list meanwhile.
        for each in list(alive):
            try:
                each.write(piece)
                each.flush()
            except OSError:
                alive.remove(each)
    for each in to:
        try:
            each.close()
        except OSError:
            continue


class Outputs:
    """The outputs of one step."""

    def __init__(self, options: dict[str, str], env: dict[str, str], tasks: int) -> None:
        self._options = options
        self._env = env
        self._width = len(str(tasks - 1))
        self._labels = "label" in options or env.get("SLURM_LABELIO") == "1"
        self._files: dict[str, int] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def of(self, task: Task, step: int) -> tuple[int | None, int | None, int | None]:
        """Return standard input, output and error of a task, as `subprocess` takes them; None: the script's own."""
        stdin = self._input(task, step)
        stdout = self._output(self._options.get("output", ""), task, step)
        given = self._options.get("error", "")
        # With `--output` alone, errors go into that file too (srun(1), --error).
        stderr = self._output(given, task, step) if given else stdout if "output" in self._options else None
        if self._labels:
            # Labels are written by this process, which therefore has to read the output.
            stdout = subprocess.PIPE if stdout is None else stdout
            stderr = subprocess.PIPE if stderr is None else stderr
        return stdin, stdout, stderr

    def follow(self, process: subprocess.Popen[bytes], task: Task) -> None:
        """Write the lines of a started task behind its number."""
        for there, here in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            if there is not None:
                label = f"{task.rank:>{self._width}}: ".encode()
                thread = threading.Thread(target=self._label, args=(there, here.fileno(), label), daemon=True)
                thread.start()
                self._threads.append(thread)

    def finish(self) -> None:
        for each in self._threads:
            each.join()

    def _label(self, there: IO[bytes], to: int, label: bytes) -> None:
        for line in there:
            # One lock and one write for each line, so that lines of two tasks are never mixed.
            with self._lock:
                os.write(to, label + line + (b"" if line.endswith(b"\n") else b"\n"))

    def _input(self, task: Task, step: int) -> int | None:
        given = self._options.get("input", "all")
        if given == "none" or (given.isdigit() and int(given) != task.rank):
            return subprocess.DEVNULL
        if given == "all" or given.isdigit():
            return None
        return _open(self._path(given, task, step), os.O_RDONLY)  # each task reads all of it

    def _output(self, given: str, task: Task, step: int) -> int | None:
        if given in {"", "all"}:
            return None
        if given == "none" or (given.isdigit() and int(given) != task.rank):
            return subprocess.DEVNULL
        if given.isdigit():
            return None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        empties = self._options.get("open-mode", "truncate").startswith("t")
        return self._open_once(self._path(given, task, step), flags | (os.O_TRUNC if empties else 0))

    def _open_once(self, path: str, flags: int) -> int:
        """Return a descriptor of the file; tasks that share a file share its descriptor."""
        if path not in self._files:
            self._files[path] = _open(path, flags)
        return self._files[path]

    def _path(self, pattern: str, task: Task, step: int) -> str:
        # A backslash switches the replacement off, and is itself removed (srun(1), filename pattern).
        if "\\" in pattern:
            return pattern.replace("\\", "")
        env = self._env
        job = env.get("SLURM_JOB_ID", "0")
        values = {
            "A": env.get("SLURM_ARRAY_JOB_ID", job),
            "a": env.get("SLURM_ARRAY_TASK_ID", "4294967294"),
            "J": f"{job}.{step}",
            "N": task.host,
            "j": job,
            "n": str(task.node),
            "s": str(step),
            "t": str(task.rank),
            "u": env.get("USER", ""),
            "x": env.get("SLURM_JOB_NAME", ""),
        }

        def filled(match: re.Match[str]) -> str:
            if match["letter"] is None:
                return "%"
            value = values[match["letter"]]
            return value.zfill(min(int(match["width"] or 0), 10)) if value.isdigit() else value

        return _PATTERN.sub(filled, pattern)


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise Unusable(f"Could not open file {path}: {error.strerror}") from None
