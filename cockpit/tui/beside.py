"""What is looked up beside the screen and may take for ever, as on a file system that hangs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def beside(look: Callable[[], T], tell: Callable[[T], None]) -> None:
    """`look` in a thread that nobody waits for, not even on leaving; what it finds is told in the event loop."""
    loop, context = asyncio.get_running_loop(), copy_context()

    def looking() -> None:
        found = look()
        with suppress(RuntimeError):  # the cockpit has been left
            loop.call_soon_threadsafe(tell, found, context=context)

    Thread(target=looking, name="beside", daemon=True).start()
