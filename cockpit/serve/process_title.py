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

_FIRST: Final = 48 - 3
"""Place of `arg_start` in /proc/self/stat behind the name (proc(5), field 48); `arg_end`, `env_start` and `env_end`
follow."""


def show_as(words: Sequence[str], env: Mapping[str, str]) -> None:
    """Let `ps` and /proc/PID show this command and environment."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    arguments, arguments_end, variables, variables_end = map(int, fields[_FIRST : _FIRST + 4])
    _overwrite(arguments, arguments_end, words)
    _overwrite(variables, variables_end, (f"{name}={value}" for name, value in env.items()))


def _overwrite(start: int, end: int, texts: Iterable[str]) -> None:
    size = end - start
    if size <= 0:
        return  # the kernel hides the addresses
    raw = b"".join(os.fsencode(text) + b"\0" for text in texts)[: size - 1]
    ctypes.memmove(start, raw.ljust(size, b"\0"), size)
