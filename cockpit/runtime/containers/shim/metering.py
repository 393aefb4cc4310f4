"""What measuring and copying have in common: their order, what they tell, and what may end them."""

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


_TELL_SECONDS = 0.25


class FetchError(Exception):
    """It cannot be had; the text says what, where and why."""


class DiskFull(Exception):
    """Going on would fill the disk beyond its mark."""


class Meter:
    """Counts bytes, tells them, and looks at the disk that they go to."""

    def __init__(self, target: str, full_percent: int) -> None:
        self._target = target
        self._full_percent = full_percent
        self._told_at = 0.0
        self.done = 0

    def count(self, size: int) -> None:
        """So much more is done. Raises DiskFull."""
        self.done += size
        now = time.monotonic()
        if now - self._told_at >= _TELL_SECONDS:
            self._told_at = now
            self.look()
            say({"done": self.done})

    def look(self) -> None:
        """Raises DiskFull."""
        if self._target and percent_used(self._target) > self._full_percent:
            raise DiskFull


def percent_used(folder: str, more: int = 0) -> float:
    """Of the disk that the folder is on, as df(1) counts: what root keeps for itself is no part of it."""
    found = os.statvfs(folder)
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    everything = used + found.f_bavail * found.f_frsize
    return 100 * (used + more) / everything if everything else 100.0


def say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
