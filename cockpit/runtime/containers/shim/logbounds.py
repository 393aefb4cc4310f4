"""Bounds what a job's logs take of the disk, while the job writes into the files themselves.

Nothing stands between a job and its log: it is never blocked, no byte is copied, and a reader's offsets stay valid. A
log that grows beyond its limit keeps its head and its tail. What lies between is given back to the disk: the file has a
hole there, and `runtime.logs` shows a line in its place. The holder looks every second, and more often the faster a
log grows and the fuller the disk is, so that a log exceeds its limit by what is written between two looks at most.

Where the disk is nearly full, logs stop growing: what they take then is their limit until there is room again. So logs
never take the last room, which the engine's journal needs.
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

USUAL_MIB = 1024
GRAIN = 1 << 16
"""Holes begin and end at multiples of this, which is at least the block size of every file system."""
_LEAST = 16 * GRAIN
"""What a log keeps however full the disk is."""
_LONGEST, _SHORTEST = 1.0, 0.05
"""Seconds between two looks."""
_FASTEST = 4 << 30
"""Bytes per second that a disk takes."""
_RESERVE_PART, _RESERVE_MOST = 20, 1 << 30
"""The part of a disk, and the most bytes of it, that logs leave free."""
_CANNOT = (errno.EOPNOTSUPP, errno.ENOSYS)


class LogBounds:
    """Of one attempt. `paths`: its log files, which need not be there yet."""

    def __init__(self, paths: Iterable[str], limit: int) -> None:
        """`limit`: bytes of each."""
        self._logs = [_Log(path, limit) for path in paths]

    def look(self) -> float:
        """Cut what is too long; in so many seconds to look again."""
        waits = [_LONGEST]
        for log in self._logs:
            with contextlib.suppress(OSError):  # not there yet, or removed; the next look finds what is there
                waits.append(log.look())
        return max(_SHORTEST, min(waits))


class _Log:
    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = max(limit, _LEAST)
        self._stopped_at = 0
        """What it took when the disk became nearly full; 0: it is not."""
        self._size = 0
        self._at = time.monotonic()

    def look(self) -> float:
        status = os.stat(self._path, follow_symlinks=False)
        now = time.monotonic()
        rate = (status.st_size - self._size) / max(now - self._at, 0.001)
        self._size, self._at = status.st_size, now
        taken, room = status.st_blocks * 512, _room(self._path)
        if room > 0:
            self._stopped_at = 0
        elif not self._stopped_at:
            self._stopped_at = max(taken, _LEAST)
        limit = min(self._limit, self._stopped_at or self._limit)
        if taken > limit:
            self._cut(status.st_size, limit)
        left = max(0, limit - taken)
        return min(max(room, 0) / _FASTEST, left / (2 * rate) if rate > 0 else _LONGEST)

    def _cut(self, size: int, limit: int) -> None:
        """Leave its head and its tail, half of the limit each."""
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
            os.ftruncate(fd, begin)  # a disk that cannot forget the middle of a file forgets all behind its head
        finally:
            os.close(fd)


def _room(path: str) -> int:
    """Bytes that logs may still take of the disk."""
    disk = os.statvfs(path)
    reserve = min(disk.f_blocks * disk.f_frsize // _RESERVE_PART, _RESERVE_MOST)
    return disk.f_bavail * disk.f_frsize - reserve
