"""Measures and copies what a container needs on its node: `boot.py fetch`, with an order as JSON on standard input.

    {"do": "measure" | "copy", "kind": "tree" | "tar", "what", "source", "user", "uid", "gid", "groups", "rootless",
     "target", "key", "full_percent", "most_bytes", "known"}

The source is opened and read with the submitter's rights, and what is written is the engine's. On standard output come
lines of JSON: `{"done": bytes}` now and then, and at last `{"key", "size"}` (with `seen`, by which `known` tells it the
next time), `{"failed": sentence}` or, where the disk has no room for it, `{"full": true}`. It ends with the engine.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

from cockpit.runtime.containers.shim import linux

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
        target: str
        key: str
        full_percent: int
        most_bytes: int
        known: dict[str, str]

    Measure = dict[str, object]


_TELL_SECONDS = 0.25
_MOST_MEMORY = 4 << 30
"""Address space: an archive that wants more to be unpacked is none that a person has made."""
_NICE = 10


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


def main() -> int:
    linux.end_with_parent()
    linux.name_process("cockpit-fetch")
    os.umask(0o077)
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    order: Order = json.loads(sys.stdin.buffer.readline())
    try:
        say(_done(order))
    except DiskFull:
        say({"full": True})
    except FetchError as error:
        say({"failed": f"{order['what']}: {error}"})
    except OSError as error:
        said = f"{error.filename}: " if error.filename else ""
        say({"failed": f"{order['what']}: {said}{(error.strerror or str(error)).lower()}"})
    except MemoryError:
        say({"failed": f"{order['what']}: {order['source']} takes too much memory to be read; is it damaged?"})
    return 0


def _done(order: Order) -> dict[str, object]:
    from cockpit.runtime.containers.shim import treecopy, untar

    is_tree = order["kind"] == "tree"
    if order["do"] == "measure":
        meter = Meter("", 100)
        return treecopy.measure(order, meter) if is_tree else untar.measure(order, meter)
    meter = Meter(order["target"], order["full_percent"])
    size = treecopy.copy(order, meter) if is_tree else untar.copy(order, meter)
    linux.sync_file_system(order["target"])
    return {"key": order["key"], "size": size}
