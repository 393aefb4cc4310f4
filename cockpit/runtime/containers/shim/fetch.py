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

from cockpit.runtime.containers.shim import linux, treecopy, untar
from cockpit.runtime.containers.shim.metering import DiskFull, FetchError, Meter, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.metering import Order

_MOST_MEMORY = 4 << 30
"""Address space: an archive that wants more to be unpacked is none that a person has made."""
_NICE = 10


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
    is_tree = order["kind"] == "tree"
    if order["do"] == "measure":
        meter = Meter("", 100)
        return treecopy.measure(order, meter) if is_tree else untar.measure(order, meter)
    meter = Meter(order["target"], order["full_percent"])
    size = treecopy.copy(order, meter) if is_tree else untar.copy(order, meter)
    linux.sync_file_system(order["target"])
    return {"key": order["key"], "size": size}
