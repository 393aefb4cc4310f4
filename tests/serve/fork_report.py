"""A program in cockpit's place: prints what a session is given, started in either way."""

from __future__ import annotations

import json
import locale
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

from cockpit.serve.forked import serve_forks


def report() -> None:
    """Print it as JSON."""
    limits = ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CORE", "RLIMIT_STACK", "RLIMIT_AS")
    streams = (sys.stdin, sys.stdout, sys.stderr)
    given = {
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
        "environment of its children": sorted(subprocess.check_output(["env"], text=True).splitlines()),
        "descriptors": sorted(
            int(each.name) for each in Path("/proc/self/fd").iterdir() if each.is_char_device() or each.is_fifo()
        ),
        "ids": [os.getresuid(), os.getresgid(), sorted(os.getgroups())],
        "folder": os.getcwd(),  # noqa: PTH109 - as the system names it
        "umask": [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask")],
        "session": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
        "terminals": [each.isatty() for each in streams],
        "controls": [os.tcgetpgrp(0) == os.getpid() if sys.stdin.isatty() else None],
        "streams": [(each.encoding, each.errors, each.line_buffering) for each in streams],
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in limits},
        "signals": {number: str(signal.getsignal(number)) for number in sorted(signal.valid_signals())},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "capabilities": [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")],
        "niceness": os.nice(0),
        "locale": locale.getpreferredencoding(do_setlocale=False).lower(),
    }
    sys.stdout.write(f"{json.dumps(given)}\n")
    sys.stdout.flush()


def main() -> None:
    if sys.argv[1:2] == ["plain"]:
        del sys.argv[1]
        report()
        return
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    # A file that sessions must not get.
    kept = Path("/dev/zero").open("rb")  # noqa: SIM115 - open on purpose
    serve_forks(control, report)
    kept.close()


if __name__ == "__main__":
    main()
