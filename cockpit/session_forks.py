"""The fork server of `cockpit serve`: imports what sessions need, and forks them (`python -m cockpit.session_forks`).

Its standard input is the socket of the server that started it.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec

from cockpit import cli
from cockpit.model.view import Overview
from cockpit.protocol.pages import Update
from cockpit.serve.forked import serve_forks
from cockpit.serve.process_title import show_command

MODULES: Final = (
    "cockpit.tui.opening",
    "cockpit.tui.start_options",
    "cockpit.backends.local.backend",
    "cockpit.backends.local.live",
    "cockpit.backends.local.start",
    "cockpit.backends.kubernetes.wire.kubeconfig",
    "cockpit.clusters.several",
    "cockpit.headless.main",
    # Textual imports them when an application starts.
    "textual.layouts.factory",
    "textual.layouts.horizontal",
    "textual.layouts.stream",
    "textual.pilot",
    "textual.scrollbar",
)
"""What the first screen and most commands use; these import the rest."""


def main() -> None:
    """Serve until the server closes the socket."""
    # A collection would write into the memory that sessions share.
    gc.disable()
    # The space behind it is for the commands of sessions.
    show_command([sys.executable, *sys.orig_argv[1:-1]])
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    for name in MODULES:
        # A session that needs what is missing says so itself; others go on.
        with suppress(ImportError):
            import_module(name)
    for kind in (Update, Overview):
        msgspec.msgpack.Decoder(kind)  # which examines the types that the first screen needs, once for all sessions
    sys.argv[:] = [cli.__file__]
    gc.collect()
    gc.freeze()
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise SystemExit("cockpit: an imported module has started a thread, so that sessions cannot be forked safely")
    with suppress(BrokenPipeError):  # the server has ended meanwhile
        serve_forks(control, cli.command)


if __name__ == "__main__":
    main()
