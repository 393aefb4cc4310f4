"""Limit the disk space of a job's logs, into which the job writes directly.

The job is never blocked, no output is copied, and a reader's offsets stay valid. A log that exceeds its limit keeps its
beginning and its end. The disk blocks between them are freed: the file has a hole there, and `runtime.logs` shows a
line instead. The holder checks every second, and more often if a log grows fast or the disk is nearly full, so that a
log exceeds its limit at most by what is written between two checks.

If the disk is nearly full, logs stop growing until there is free space again, and give back what they wrote into the
reserve since the last check. So logs never keep the last free space, which the engine's journal needs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time

from cockpit.runtime.containers.shim import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cockpit.runtime.containers.shim.logorder import LogOrder

USUAL_MIB = 1024
"""Size limit of a log where the administrator sets none."""
GRAIN = 1 << 16
"""Holes begin and end at multiples of this number of bytes, which every file system's block size divides."""
_LEAST = 16 * GRAIN
"""Bytes that a log may always use, however full the disk is."""
_LONGEST, _SHORTEST = 1.0, 0.05
"""Longest and shortest interval between two checks, in seconds."""
_HALF_LIFE = 10.0
"""Seconds after which a log that has grown fast is expected to grow half as fast."""
_FASTEST = 4 << 30
"""Assumed highest writing rate of a disk in bytes per second."""
_RESERVE_PART, _RESERVE_MOST = 20, 1 << 30
"""Logs leave one part in this many of the disk free, but at most this number of bytes."""
_CANNOT = (errno.EOPNOTSUPP, errno.ENOSYS)


class LogBounds:
    """The limited logs of one attempt. `paths`: the log files, which need not exist yet."""

    def __init__(self, paths: Iterable[str], limit: int, order: LogOrder | None = None) -> None:
        """`limit`: largest size of each log in bytes. `order`: records when they grew."""
        self._logs = [_Log(path, limit) for path in paths]
        self._order = order

    def look(self) -> float:
        """Shorten logs that are too long; return the seconds until the next check."""
        waits = [_LONGEST]
        if self._order is not None:  # before lines are dropped
            with contextlib.suppress(OSError):  # such as a full disk: the next look records it
                waits.append(self._order.look())
        for log in self._logs:
            with contextlib.suppress(OSError):  # the file does not exist yet, or was removed
                waits.append(log.look())
        return max(_SHORTEST, min(waits))


class _Log:
    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = max(limit, _LEAST)
        self._stopped_at = 0
        """The log's limit in bytes while the disk is nearly full; 0: the disk is not nearly full."""
        self._size = 0
        self._taken = self._kept = 0
        """Bytes that the log used on the disk before and after the last check shortened it."""
        self._rate = 0.0
        """Bytes per second by which the log may grow, as far as it has done so lately."""
        self._at = time.monotonic()

    def look(self) -> float:
        status = os.stat(self._path, follow_symlinks=False)
        taken, usable = status.st_blocks * 512, _usable_bytes(self._path)
        self._measure_rate(status.st_size, taken)
        if usable > 0:
            self._stopped_at = 0
        elif not self._stopped_at:
            # Several logs may have grown into the reserve since the last check. Each gives back what is missing, but no
            # more than its own growth: what others write must not shrink a log that does not grow.
            self._stopped_at = max(self._taken, taken + usable, _LEAST)
        # The size before this check is what the next one measures growth by.
        self._taken = taken
        limit = min(self._limit, self._stopped_at or self._limit)
        if taken > limit:
            self._free_beyond_end(taken)
            self._cut(status.st_size, limit)
            self._kept = os.stat(self._path, follow_symlinks=False).st_blocks * 512
        left = max(0, limit - taken)
        # at most the time in which the disk could become full at the highest rate, and half of that in which the log
        # would reach its limit at its rate so far
        return min(max(usable, 0) / _FASTEST, left / (2 * self._rate) if self._rate > 0 else _LONGEST)

    def _measure_rate(self, size: int, taken: int) -> None:
        """Set how fast the log may grow until the next check.

        Blocks count beside the size: a job may allocate them ahead, without writing and again after each check. A job
        that empties its log between two checks seems to write nothing, so that the rate falls slowly.
        """
        now = time.monotonic()
        seconds = max(now - self._at, 0.001)  # avoids a division by zero
        growth = max(size - self._size, taken - self._kept)
        self._rate = max(growth / seconds, self._rate * 0.5 ** (seconds / _HALF_LIFE))
        self._size, self._kept, self._at = size, taken, now

    def _free_beyond_end(self, taken: int) -> None:
        """Free blocks that the job reserved behind the end of the log (`fallocate --keep-size`), which hold no text."""
        fd = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            if taken > size + GRAIN:
                os.ftruncate(fd, size)
        finally:
            os.close(fd)

    def _cut(self, size: int, limit: int) -> None:
        """Free the middle of the log; its beginning and its end keep half of the limit each."""
        # Whole grains, since punching a part of a block frees nothing.
        begin = limit // 2 // GRAIN * GRAIN
        end = (size - limit // 2) // GRAIN * GRAIN
        if end <= begin:
            return
        fd = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            linux.punch_hole(fd, begin, end - begin)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
            os.ftruncate(fd, begin)  # a file system without holes: keep only the beginning
        finally:
            os.close(fd)


def _usable_bytes(path: str) -> int:
    """Return the bytes of the disk that logs may still use; negative if they use too much."""
    disk = os.statvfs(path)
    reserve = min(disk.f_blocks * disk.f_frsize // _RESERVE_PART, _RESERVE_MOST)
    return disk.f_bavail * disk.f_frsize - reserve
