"""Measures and copies what a container needs on its node: `boot.py fetch`, with an order as JSON on standard input.

    {"do": "measure" | "copy", "kind": "tree" | "tar" | "named", "what", "source", "user", "uid", "gid", "groups",
     "rootless", "podman", "target", "key", "full_percent", "most_bytes", "known"}

The source is opened and read with the submitter's rights, and what is written is the engine's. On standard output come
lines of JSON: `{"done": bytes}` now and then, and at last `{"key", "size"}` (with `seen`, by which `known` tells it the
next time), `{"failed": sentence}` or, where the disk has no room for it, `{"full": true}`. It ends with the engine.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys

from cockpit.runtime.containers.shim import linux, named, treecopy, untar
from cockpit.runtime.containers.shim.metering import DiskFull, FetchError, Meter, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn, Protocol

    from cockpit.runtime.containers.shim.metering import Measure, Order

    class Kind(Protocol):
        """A module that knows one kind of source."""

        def measure(self, order: Order, meter: Meter, /) -> Measure: ...

        def copy(self, order: Order, meter: Meter, /) -> int: ...


_MOST_MEMORY = 4 << 30
"""Address space: an archive that wants more to be unpacked is none that a person has made."""
_NICE = 10


_KINDS: dict[str, Kind] = {"tree": treecopy, "tar": untar, "named": named}


def main() -> int:
    signal.signal(signal.SIGTERM, _end)
    linux.end_with_parent()
    linux.name_process("cockpit-fetch")
    os.umask(0o077)
    os.nice(_NICE)
    order: Order = json.loads(sys.stdin.buffer.readline())
    if order["kind"] == "tar":
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
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
    kind = _KINDS[order["kind"]]
    if order["do"] == "measure":
        return kind.measure(order, Meter("", 100))
    size = kind.copy(order, Meter(order["target"], order["full_percent"]))
    linux.sync_file_system(order["target"])
    return {"key": order["key"], "size": size}


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """Asked to end: what was begun elsewhere is undone on the way out."""
    raise SystemExit(1)
