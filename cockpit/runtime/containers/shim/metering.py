"""Shared parts of measuring and copying: their orders, their progress reports, and the conditions that end them."""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Order(TypedDict):
        do: str
        kind: str
        what: str
        source: str
        user: str
        uid: int
        gid: int
        groups: list[int]
        rootless: bool
        podman: bool
        target: str
        key: str
        full_percent: int
        most_bytes: int
        known: dict[str, str]

    Measure = dict[str, object]


_REPORT_SECONDS = 0.25
"""Interval between two reports of the progress and checks of the disk."""


class FetchError(Exception):
    """The source cannot be measured or copied; the text says what, where and why."""


class DiskFull(Exception):
    """Going on would fill the disk beyond its mark."""


class Meter:
    """Counts bytes, reports the count, and checks the disk that they are written to."""

    def __init__(self, target: str, full_percent: int) -> None:
        self._target = target
        self._full_percent = full_percent
        self._reported_at = 0.0
        self.done = 0

    def count(self, size: int) -> None:
        """Add bytes to the progress. Raises DiskFull."""
        self.done += size
        now = time.monotonic()
        # Four times a second: statfs and a line for every piece would cost more than copying small files.
        if now - self._reported_at >= _REPORT_SECONDS:
            self._reported_at = now
            self.look()
            say({"done": self.done})

    def look(self) -> None:
        """Check the disk. Raises DiskFull if its use is beyond the limit."""
        if self._target and percent_used(self._target) > self._full_percent:
            raise DiskFull


def percent_used(folder: str, more: int = 0) -> float:
    """Return the use of the folder's disk as df(1) counts it: without the space that is reserved for root."""
    stat = os.statvfs(folder)
    used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize
    # Of what is not reserved for root, which an ordinary user's copies cannot use.
    everything = used + stat.f_bavail * stat.f_frsize
    return 100 * (used + more) / everything if everything else 100.0


def say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
