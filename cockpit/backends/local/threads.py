"""Runs blocking calls in threads that the end of the process does not wait for."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def beside(call: Callable[[], T], discard: Callable[[T], object]) -> T:
    """Return what `call` returns or raises. If this is cancelled, the call ends by itself, and `discard` gets its
    result.

    Unlike an executor's thread it does not keep the process from ending: a connection to an engine that is stopped
    takes its whole time limit to fail.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if error is not None:
            if not outcome.cancelled():
                outcome.set_exception(error)
        elif outcome.cancelled():
            discard(result)  # type: ignore[arg-type] # without an error there is a result
        else:
            outcome.set_result(result)  # type: ignore[arg-type] # likewise

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - it is raised where it is awaited
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop has ended meanwhile
            if error is None:
                discard(result)  # type: ignore[arg-type] # likewise

    threading.Thread(target=work, daemon=True, name="cockpit-beside").start()
    return await outcome
