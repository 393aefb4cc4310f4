"""Ports for servers that tests start as programs of their own."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 10_000
_CHOICE = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Ports of this machine at which nothing listens now, and which no connection gets by itself meanwhile: the system
    takes those of outgoing connections from a range above them.
    """
    above = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports: set[int] = set()
    while len(ports) < count:
        port = _CHOICE.randrange(LOWEST, above)
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                ports.add(port)
    return list(ports)
