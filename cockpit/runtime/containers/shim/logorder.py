"""Record when a job's two logs grew, so that their lines can be shown merged by time.

The job writes into its logs directly, so a line has no time of its own. The holder looks at the logs every tenth of
a second while they grow, and notes how long each had become, up to its last whole line, and when (its modification
time). A record is three unsigned numbers of 64 bits: milliseconds UTC, bytes of stdout, bytes of stderr. Between two
looks each log counts as one piece, and the one that was written to last comes last.
"""

from __future__ import annotations

import os
import struct

RECORD = struct.Struct("<QQQ")
MOST_RECORDS = 1 << 18
"""Most records, 6 MiB; then every second one is dropped, so that old lines are merged in larger pieces."""
LONGEST_LINE = 1 << 20
"""A line that is longer counts as whole before it ends."""
_LOOK_BACK = 1 << 16
"""Bytes at the end of a log in which its last line break is looked for."""
_SHORTEST, _LONGEST = 0.1, 1.0
"""Interval between two looks in seconds: while the logs grow, and while they do not."""


def order_path(stdout: str) -> str:
    """Return the path of the record beside an attempt's stdout."""
    return f"{os.path.splitext(stdout)[0]}.order"


class LogOrder:
    """The record of one attempt. `path`: its file, in a folder that the job cannot write to."""

    def __init__(self, stdout: str, stderr: str, path: str) -> None:
        self._logs = (stdout, stderr)
        self._path = path
        self._ends = [0, 0]
        """The ends of the whole lines in both logs that are recorded."""
        self._at = 0
        """Time of the last record, in milliseconds UTC."""
        self._records = 0
        self._seconds = _SHORTEST

    def look(self) -> float:
        """Record what was written since the last look; return the seconds until the next one. Raises OSError."""
        # The first look creates the file, which shows readers that the order of this attempt is recorded.
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            grown = self._growth(fd)
            for written_at, number, end in sorted(grown):
                self._ends[number] = end
                # A job may set the times of its logs to anything; the order is that of the looks.
                self._at = max(self._at, written_at)
                os.write(fd, RECORD.pack(self._at, *self._ends))
                self._records += 1
        finally:
            os.close(fd)
        if self._records > MOST_RECORDS:
            self._thin()
        self._seconds = _SHORTEST if grown else min(2 * self._seconds, _LONGEST)
        return self._seconds

    def _growth(self, fd: int) -> list[tuple[int, int, int]]:
        """Return the time, number and new end of each log that has more whole lines."""
        found = []
        for number, path in enumerate(self._logs):
            try:
                log = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                status = os.fstat(log)
                if status.st_size < self._ends[number]:  # the job emptied it: both are recorded anew
                    os.ftruncate(fd, 0)
                    self._ends, self._records = [0, 0], 0
                    return self._growth(fd)
                end = _last_line_end(log, self._ends[number], status.st_size)
            finally:
                os.close(log)
            if end > self._ends[number]:
                found.append((status.st_mtime_ns // 1_000_000, number, end))
        return found

    def _thin(self) -> None:
        with open(self._path, "rb") as file:
            data = file.read()
        records = [data[at : at + RECORD.size] for at in range(0, len(data), RECORD.size)]
        # From the last one on, which has to stay: it says how far the order is known.
        kept = records[::-2][::-1]
        with open(f"{self._path}.new", "wb") as file:
            file.write(b"".join(kept))
        os.replace(f"{self._path}.new", self._path)
        self._records = len(kept)


def _last_line_end(log: int, begin: int, size: int) -> int:
    """Return the end of the last whole line between two offsets, or `begin` if there is none."""
    near = max(begin, size - _LOOK_BACK)
    newline = os.pread(log, size - near, near).rfind(b"\n")
    if newline >= 0:
        return near + newline + 1
    return size if size - begin > LONGEST_LINE else begin
