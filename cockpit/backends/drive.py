"""Runs a coroutine without an event loop, as long as it never suspends.

A one-shot command uses a blocking socket, so its awaits return at once; importing asyncio would take longer than the
command itself.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def drive(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run the coroutine and return its result. Raises RuntimeError when it suspends, since that needs an event loop."""
    try:
        # The first step runs until the coroutine ends or awaits something that is not there yet.
        coroutine.send(None)
    except StopIteration as finished:
        result: Result = finished.value
        return result
    coroutine.close()
    raise RuntimeError("a one-shot command met a backend that needs an event loop")
