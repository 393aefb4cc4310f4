"""Memory that is free inside this process, given back to the machine."""

from __future__ import annotations

import asyncio
import ctypes
from contextlib import suppress

QUIET_SECONDS = 1.0


class Trimmer:
    """Gives memory back a moment after it was asked to, once for all who ask within that moment.

    The C library keeps freed blocks between others for later: after fifty readers of a long queue hundreds of MiB.
    """

    def __init__(self) -> None:
        self._waiting: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        """Something large has just been freed."""
        with suppress(RuntimeError):  # outside an event loop nothing stays
            if self._waiting is None:
                self._waiting = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._trim)

    def _trim(self) -> None:
        self._waiting = None
        with suppress(AttributeError, OSError):  # only glibc has it
            ctypes.CDLL(None).malloc_trim(0)
