"""Applies one operation to several things, and continues after a refusal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from cockpit.errors import CockpitError, RequestRefused
from cockpit.headless.exitcodes import ExitCode, exit_code_of
from cockpit.headless.services import Call
from cockpit.present.refusals import refusal_text

Thing = TypeVar("Thing")


async def try_each(
    call: Call,
    things: Iterable[Thing],
    act: Callable[[Thing], Awaitable[None]],
    done: str,
    text: Callable[[Thing], str],
) -> int:
    """Apply the operation to each thing. Each success is a line of output: `done` and the thing's `text`. Refusals are
    printed, and the first one decides the exit code. After a missing answer the others are not tried, but named."""
    code: int = ExitCode.OK
    waiting = list(things)
    while waiting:
        thing = waiting.pop(0)
        try:
            await act(thing)
        except RequestRefused as refused:
            call.streams.say(refusal_text(refused.refusal, call.streams.now(), call.streams.zone))
            code = code or exit_code_of(refused)
        except CockpitError:
            if waiting:
                call.streams.say(f"Not tried, since {text(thing)} was not answered: {', '.join(map(text, waiting))}")
            raise
        else:
            call.streams.line(f"{done} {text(thing)}")
    return code
