"""Read what workers of elastic jobs report of their training: the file that `cockpit.elastic` writes beside the
heartbeat. It comes from the job, so nothing in it is trusted: neither its kind, nor its size, nor its numbers."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from cockpit.model.steps import StepReport

if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import Attempt

FOLDER: Final = "pulse"
"""The subfolder of the attempt's folder to which the job writes, see `heartbeats`."""
NAME: Final = "steps"
_LONGEST: Final = 4096
_decoder = msgspec.json.Decoder(StepReport)


def step_report(attempt: Attempt) -> StepReport | None:
    """Return the worker's last report; None: there is none, or it is being written, or it is not one."""
    with suppress(OSError, ValueError, msgspec.DecodeError):
        checksum, _, content = _read(attempt.file(FOLDER, NAME)).partition(b"\n")[0].partition(b" ")
        # Half of one report and half of the next would be read as a report that was never made.
        if int(checksum, 16) == crc32(content):
            return _decoder.decode(content)
    return None


def _read(path: str) -> bytes:
    """Return the beginning of a regular file. Raises OSError."""
    # The job may put anything there: a link to a file that only the engine may read, a pipe that nobody writes to.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, _LONGEST) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
