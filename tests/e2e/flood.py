"""Opens connections to an engine's socket as fast as it can, as several users at once: `flood.py SOCKET UID…`, as root.

Each user keeps the connections that are accepted and opens another one in place of each refused one. Prints a line once
the engine has refused a connection of every user, and ends when its standard input is closed.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

MOST = 900
"""Connections that a user keeps at once, below the usual limit of open files."""
LONGEST_SECONDS = 300
"""When the flood ends by itself, should nobody end it."""


def flood(path: str, uid: int, told: int) -> None:
    parent = os.getppid()
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    kept: list[socket.socket] = []
    while os.getppid() == parent:
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        caller.connect(path)
        kept.append(caller)
        poller = select.poll()
        for each in kept:
            poller.register(each, select.POLLHUP)
        gone = {descriptor for descriptor, _ in poller.poll(0)}
        if gone and told >= 0:
            os.write(told, b".")
            os.close(told)
            told = -1
        for each in [each for each in kept if each.fileno() in gone or len(kept) > MOST]:
            kept.remove(each)
            each.close()


def main() -> None:
    path, *users = sys.argv[1:]
    os.nice(10)  # the tests beside this one have time limits
    signal.alarm(LONGEST_SECONDS)
    heard, told = os.pipe()
    children = []
    for user in users:
        child = os.fork()
        if not child:
            try:
                flood(path, int(user), told)
            finally:
                os._exit(1)
        children.append(child)
    for _ in users:
        os.read(heard, 1)
    sys.stdout.write("refused\n")
    sys.stdout.flush()
    sys.stdin.read()
    for child in children:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
