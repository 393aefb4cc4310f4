"""Measure or copy a source (image or dataset) for a container: `boot.py fetch`, with an order as JSON on stdin.

    {"do": "measure" | "copy", "kind": "tree" | "tar" | "named", "what", "source", "user", "uid", "gid", "groups",
     "rootless", "podman", "target", "key", "full_percent", "most_bytes", "known"}

The source is opened and read with the submitter's rights; the copy belongs to the engine. Standard output gets lines of
JSON: repeatedly `{"done": bytes}`, and at the end one of

    {"key", "size"}         the result; `seen` identifies an unchanged file, for which `known` then has the key
    {"failed": sentence}    the source cannot be read or copied
    {"full": true}          the copy would fill the disk beyond its limit

The program ends with the engine.
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

    class SourceModule(Protocol):
        """A module that knows one kind of source."""

        def measure(self, order: Order, meter: Meter, /) -> Measure: ...

        def copy(self, order: Order, meter: Meter, /) -> int: ...


_MOST_MEMORY = 4 << 30
"""Limit of the address space in bytes. Only a malicious or damaged archive needs more to be unpacked."""
_NICE = 10
"""Lower priority than jobs and engine, by this many steps of nice(1)."""


_KINDS: dict[str, SourceModule] = {"tree": treecopy, "tar": untar, "named": named}


def main() -> int:
    # podman's containers outlive this program, unless it ends them itself.
    signal.signal(signal.SIGTERM, _end)
    # The engine may be killed, and a copy without an engine would go on to fill the disk.
    linux.end_with_parent()
    linux.name_process("cockpit-fetch")
    # A copy is readable for its user only when it is complete, and has the modes of its source.
    os.umask(0o077)
    os.nice(_NICE)
    order: Order = json.loads(sys.stdin.buffer.readline())
    # Only archives: their headers decide how much memory reading them takes.
    if order["kind"] == "tar":
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    try:
        say(_done(order))
    except DiskFull:
        say({"full": True})
    except FetchError as error:
        say({"failed": f"{order['what']}: {error}"})
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        say({"failed": f"{order['what']}: {place}{(error.strerror or str(error)).lower()}"})
    except MemoryError:
        say({"failed": f"{order['what']}: {order['source']} takes too much memory to be read; is it damaged?"})
    return 0


def _done(order: Order) -> dict[str, object]:
    kind = _KINDS[order["kind"]]
    if order["do"] == "measure":
        return kind.measure(order, Meter("", 100))
    size = kind.copy(order, Meter(order["target"], order["full_percent"]))
    # Before the engine publishes the copy: after a power cut a published copy must be complete.
    linux.sync_file_system(order["target"])
    return {"key": order["key"], "size": size}


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    """End by an exception, so that `finally` blocks undo what was begun in other programs (podman)."""
    raise SystemExit(1)
