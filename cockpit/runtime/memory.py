"""Return this process's unused memory to the machine."""

from __future__ import annotations

import asyncio
import ctypes
from contextlib import suppress

QUIET_SECONDS = 1.0


class Trimmer:
    """Returns unused memory a moment after `ask`, once for all calls within that moment.

    The C library keeps freed blocks for later use: after fifty readers of a long queue these are hundreds of MiB.
    """

    def __init__(self) -> None:
        self._waiting: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        """Note that something large has just been freed."""
        with suppress(RuntimeError):  # outside an event loop nothing stays
            if self._waiting is None:
                self._waiting = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._trim)

    def _trim(self) -> None:
        self._waiting = None
        with suppress(AttributeError, OSError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)
