"""Runs a coroutine that never has to wait for an event loop.

A one-shot command talks over a blocking socket, so its awaits return at once; importing asyncio would cost more than
the command itself.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def drive(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What the coroutine returns. RuntimeError when it suspends: then its backend needs a loop."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        result: Result = finished.value
        return result
    coroutine.close()
    raise RuntimeError("a one-shot command met a backend that needs an event loop")
