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

from cockpit import cli
from cockpit.serve.forked import serve_forks

MODULES: Final = (
    "cockpit.tui.opening",
    "cockpit.tui.start_options",
    "cockpit.backends.local.backend",
    "cockpit.headless.main",
)
"""What the first screen and most commands use; these import the rest."""


def main() -> None:
    """Serve until the server closes the socket."""
    # A collection would write into the memory that sessions share.
    gc.disable()
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    for name in MODULES:
        # A session that needs what is missing says so itself; others go on.
        with suppress(ImportError):
            import_module(name)
    sys.argv[:] = [cli.__file__]
    gc.collect()
    gc.freeze()
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise SystemExit("cockpit: an imported module has started a thread, so that sessions cannot be forked safely")
    serve_forks(control, cli.command)


if __name__ == "__main__":
    main()
