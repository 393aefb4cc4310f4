"""Makes interfaces in network namespaces of its own. Prints as JSON what iproute2 says of them.

Run as root: `unshare --net --fork python -m ...`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from cockpit.runtime.containers.shim import linux, netlink

NAMESPACE = "/proc/self/ns/net"


def says(*words: str) -> Any:
    """What `ip` says in this process's network namespace."""
    return json.loads(subprocess.run(["ip", "-json", "-details", *words], capture_output=True, check=True).stdout)


def refusal(act: Any, *words: Any, **options: Any) -> list[Any]:
    try:
        act(*words, **options)
    except OSError as error:
        return [error.errno, error.strerror]
    return []


def main() -> None:
    before = len(os.listdir("/proc/self/fd"))
    own = os.open(NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    linux.unshare(linux.CLONE_NEWNET)
    hub = os.open(NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    netlink.make_bridge("br0")
    netlink.give("br0", "198.18.0.1", 24)
    linux.setns(own, linux.CLONE_NEWNET)
    netlink.bring_up("lo")
    netlink.make_pair("eth0", "rank7", hub)
    made = says("link")
    netlink.give("eth0", "198.18.0.7", 24)
    netlink.bring_up("eth0")
    netlink.send_all_by("198.18.0.1")
    told = {
        "refused": [
            refusal(netlink.make_pair, "eth0", "rank8", hub),
            refusal(netlink.give, "eth0", "198.18.0.7", 24),
            refusal(netlink.send_all_by, "203.0.113.1"),
            refusal(netlink.make_bridge, "eth0"),
        ],
        "made": made,
        "links": says("address"),
        "routes": says("route"),
    }
    linux.setns(hub, linux.CLONE_NEWNET)
    netlink.bring_up("rank7", bridge="br0")
    told |= {
        "hub": says("address"),
        "hub routes": says("route"),
        "left open": len(os.listdir("/proc/self/fd")) - before - 2,
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
