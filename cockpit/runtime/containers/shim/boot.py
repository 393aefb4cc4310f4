"""The program that the engine spawns: `python -I -S boot.py hold`, `… enter FOLDER …`, `… fetch` or `… forget FOLDER`.

`-I -S` isolate it from environment variables and site packages, so that no user's files are executed here. The folder
that contains the package `cockpit` is appended to the *end* of the path, so that no file in it can replace a module of
the standard library.
"""

from __future__ import annotations

import os
import signal
import sys


def _main(verb: str, arguments: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python would raise KeyboardInterrupt, at a job's request
    # From `shim` four folders up: containers, runtime, cockpit, and the folder that contains it.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    # Each program is imported only where it runs: the shim's start is part of every job's start.
    if verb == "fetch":
        from cockpit.runtime.containers.shim import fetch

        return fetch.main()
    if verb == "hold":
        from cockpit.runtime.containers.shim import hold

        return hold.main()
    if verb == "forget":
        from cockpit.runtime.containers.shim import maker

        return maker.forget(arguments[0])
    from cockpit.runtime.containers.shim import enter

    return enter.main(arguments)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
