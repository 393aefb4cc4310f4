"""The files of a batch script's standard streams: opened with the submitter's credentials, and copied into the logs.

A script writes into its own file, as under Slurm. Its content is copied into the engine's log while it runs and
once more when it has ended, from the descriptor that was opened here: the engine never opens a path of the user's.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from cockpit.runtime.containers.shim import program
from cockpit.runtime.containers.shim.sources import SourceError, Sources, credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.runtime.containers.shim.attempt import PlanDict

_WRITES = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
_READS = os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o666
"""Mode of a new output file, from which the umask takes bits, as for any file of a shell."""
_PIECE = 1 << 20
"""Bytes that are copied at a time."""
_OFTEN, _SELDOM = 0.05, 0.5
"""Seconds between two looks at a file that grows, and at one that does not."""


class FileCopier:
    """Copies what is written to a file into another one. `source`, `log`: descriptors, which it never closes."""

    def __init__(self, source: int, log: int, begin: int) -> None:
        self._source = source
        self._log = log
        self._at = begin

    def step(self) -> bool:
        """Copy what is new, and return whether there was any. A file that was emptied meanwhile is copied from its
        start."""
        size = os.fstat(self._source).st_size
        # The script has emptied its file (`> file`), which begins again.
        if size < self._at:
            self._at = 0
        begin = self._at
        while self._at < size:
            piece = os.pread(self._source, min(_PIECE, size - self._at), self._at)
            if not piece:
                break
            self._at += os.write(self._log, piece)
        return self._at > begin


class OutputMirrors:
    """The output files of one script, and when to read them next."""

    def __init__(self) -> None:
        self._all: list[FileCopier] = []
        self.seconds = _SELDOM
        """Until the next look."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, mirror: FileCopier) -> None:
        self._all.append(mirror)

    def step(self) -> None:
        """Copy what is new. What fails, such as a full disk, is tried again the next time."""
        grew = False
        for each in self._all:
            try:
                grew = each.step() or grew
            except OSError:
                continue
        # A file at rest is looked at less and less often, up to the longest interval.
        self.seconds = _OFTEN if grew else min(_SELDOM, 2 * self.seconds)


def open_streams(plan: PlanDict, open_log: Callable[[str], int], mirrors: OutputMirrors) -> list[int]:
    """Return the descriptors of standard input, output and error.

    `open_log` opens the log `stdout` or `stderr`. Raises `program.StartError` where the submitter may not open a
    file."""
    files = plan["script_files"]
    assert files is not None
    try:
        # Input first: if it cannot be opened, the script does not run, and its earlier output must not be emptied.
        stdin = _open(plan, "script.input", files["stdin"], _READS)
        stdout = _open_output(plan, "script.output", files["stdout"])
        _mirror(plan, stdout, open_log("stdout"), mirrors)
        if files["stderr"] == files["stdout"]:
            return [stdin, stdout, os.dup(stdout)]
        stderr = _open_output(plan, "script.error", files["stderr"])
        _mirror(plan, stderr, open_log("stderr"), mirrors)
    except SourceError as error:
        raise program.StartError(str(error)) from None
    return [stdin, stdout, stderr]


def _open_output(plan: PlanDict, what: str, path: str) -> int:
    assert plan["script_files"] is not None
    empties = 0 if plan["script_files"]["append"] else os.O_TRUNC
    return _open(plan, what, path, _WRITES | empties)


def _open(plan: PlanDict, what: str, path: str, flags: int) -> int:
    """Open a file with the submitter's rights, whatever links the path contains."""
    # O_NONBLOCK in `flags`: a FIFO without a reader or writer must not block the holder; it is cleared below
    try:
        with credentials(plan):
            fd = os.open(path, flags, _MODE)
    except OSError as error:
        why = "no program reads this pipe" if error.errno == errno.ENXIO else (error.strerror or "").lower()
        raise SourceError(f"{what}: {path}: {why} for user {plan['user']}") from None
    # judged by the file that was opened, since a link may have been changed after a look at the path
    real = os.readlink(f"/proc/self/fd/{fd}")
    list(Sources(plan, "").shows_engine(real, what, path))
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    return fd


def _mirror(plan: PlanDict, fd: int, log: int, mirrors: OutputMirrors) -> None:
    """Copy the new content of a plain file that its owner may read."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(log)
        return
    # through /proc, so that it is the same file even if the path names another one by now
    try:
        with credentials(plan):
            source = os.open(f"/proc/self/fd/{fd}", _READS)
    except OSError:
        os.write(log, b"cockpit: the output goes into a file that its owner may write and not read\n")
        os.close(log)
        return
    mirrors.add(FileCopier(source, log, status.st_size))
