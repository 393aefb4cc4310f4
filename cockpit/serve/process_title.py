"""What `ps` shows of a process that became another program without executing one: its command and its environment.

Both lie on the first stack of the process, where the kernel reads them. They are overwritten in place, so that what was
there before is gone too; what does not fit is cut off.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

_COMMAND: Final = 48 - 3
_ENVIRONMENT: Final = 50 - 3
"""Places of `arg_start` and `env_start` in /proc/self/stat behind the name (proc(5), fields 48 and 50); the end of each
follows."""


def show_command(words: Sequence[str]) -> None:
    """Let `ps` and /proc/PID/cmdline show this command."""
    _overwrite(_COMMAND, words)


def show_environment(env: Mapping[str, str]) -> None:
    """Let /proc/PID/environ show these variables. Those that the process was started with must have been removed."""
    _overwrite(_ENVIRONMENT, (f"{name}={value}" for name, value in env.items()))


def _overwrite(place: int, texts: Iterable[str]) -> None:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = map(int, fields[place : place + 2])
    size = end - start
    if size <= 0:
        return  # the kernel hides the addresses
    raw = b"".join(os.fsencode(text) + b"\0" for text in texts)[: size - 1]
    ctypes.memmove(start, raw.ljust(size, b"\0"), size)
