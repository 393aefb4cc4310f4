#!/usr/bin/env python3
"""Starts a program in another container of the same job: what mpirun, pdsh and others take for a remote shell.

    agent [OPTIONS AS OF ssh] [USER@]HOST COMMAND...

Copied into the job's containers: standard library only, Python 3.8. See `shim.agentserver` for who answers.
"""

from __future__ import annotations

import array
import os
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

FOLDER = "/run/cockpit-launch"
# Letters of ssh's options whose value is the next word, as in `-p 22` (ssh(1)).
TAKE_A_VALUE = "BbcDEeFIiJLlmOopQRSWw"
# ssh's own exit code for a connection that failed, which launchers know.
FAILED = 255
FORWARDED_SIGNALS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT")
PATIENCE_SECONDS = 300
"""The time for a container of the job that is still being made, since they do not all start at the same moment."""


def parsed(words: list[str]) -> tuple[str, str]:
    """Return the host and the command; ssh's options have no effect here."""
    words = list(words)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        # A value may also follow its letter directly (`-p22`); then the next word is not part of the option.
        if len(option) == 2 and option[1] in TAKE_A_VALUE and words:
            words.pop(0)
    host = words.pop(0).rpartition("@")[2] if words else ""
    # Joined by spaces, as ssh does it: the shell of the other container splits the words again.
    return host, " ".join(words)


def connected(host: str) -> socket.socket:
    """Return a connection to the host's agent, which starts programs there. Raises OSError."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        agent = socket.socket(socket.AF_UNIX)
        try:
            agent.connect(f"{FOLDER}/{host}.sock")
        except FileNotFoundError:
            agent.close()
            # Only a replica of this job will ever have a socket here; any other name would be waited for in vain.
            if not is_of_the_job(host) or time.monotonic() > give_up_at:
                raise
            time.sleep(0.05)
        else:
            return agent


def is_of_the_job(host: str) -> bool:
    known = Path("/etc/hosts").read_text(encoding="utf-8", errors="replace")
    return any(host in line.split()[1:] for line in known.splitlines())


def forward_signal(agent: socket.socket, number: int) -> None:
    """Send the signal on to the program. If it has ended already, nothing is left to do."""
    with suppress(OSError):
        agent.sendall(struct.pack("!I", number))


def main(words: list[str]) -> int:
    host, command = parsed(words)
    if not host or not command or "/" in host:
        sys.stderr.write("usage: agent HOST COMMAND...\n")
        return FAILED
    request = os.fsencode(command)
    try:
        agent = connected(host)
        # The descriptors travel with the first bytes, since the server receives them with its first `recvmsg`.
        streams = array.array("i", [0, 1, 2])
        agent.sendmsg([struct.pack("!I", len(request))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        agent.sendall(request)
        # Only now: a signal forwarded earlier would arrive inside of the request and be read as part of it.
        for name in FORWARDED_SIGNALS:
            signal.signal(getattr(signal, name), lambda number, _frame: forward_signal(agent, number))
        answer = agent.recv(4)
    except OSError as error:
        sys.stderr.write(f"{host} is not reached: {error.strerror}; only replicas of the same job are\n")
        return FAILED
    # An incomplete answer means that the server was killed, or could not start the program.
    code: int = struct.unpack("!i", answer)[0] if len(answer) == 4 else FAILED
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
