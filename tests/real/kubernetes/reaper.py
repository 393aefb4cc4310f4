"""Ends the programs of a test cluster, and removes its folder, when the process that started them is no more: started
with the folder's name and a pipe that only this process writes. `+7` and `-7` in it: the process group 7 runs, has
ended. The pipe's end: all groups that run are killed, the latest first. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress


def wait_and_reap(folder: str) -> None:
    running: list[int] = []
    for line in sys.stdin:
        group = int(line[1:])
        if line[0] == "+":
            running.append(group)
        else:
            running.remove(group)
    for group in reversed(running):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while running and time.monotonic() < deadline:
        running = [group for group in running if _lives(group)]
        time.sleep(0.05)
    while os.path.exists(folder) and time.monotonic() < deadline:  # noqa: PTH110 - starts without pathlib
        shutil.rmtree(folder, ignore_errors=True)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    wait_and_reap(sys.argv[1])
