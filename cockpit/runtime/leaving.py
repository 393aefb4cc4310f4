"""Makes a signal that ends this process work like a regular exit, so that the terminal is restored and no child is
left."""

from __future__ import annotations

import atexit
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

DEADLY = (signal.SIGTERM, signal.SIGHUP)
"""A polite kill, and a terminal that is gone."""
INSISTS_AFTER = 10.0
"""Seconds. An exit can be lost: Python drops what is raised while it clears an object away."""
PATIENCE = 2.0
"""Seconds that a program has to end by itself when it is asked to, before the exit is raised wherever it is."""


def leave_politely() -> None:
    """Treat deadly signals as an exit from now on."""
    for number in DEADLY:
        signal.signal(number, _leave)


def leave_when_asked(ask: Callable[[int], object]) -> None:
    """Have deadly signals call `ask` with the exit code, and raise the exit only if the program is still there later.

    An exit that is raised in the middle of a drawing leaves what it draws half done, and each task of an event loop
    reports it with a traceback of its own.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        _insist(number, PATIENCE)
        ask(128 + number)

    for number in DEADLY:
        signal.signal(number, leave)


@contextmanager
def leaving_politely() -> Iterator[None]:
    """Treat deadly signals as an exit within this context; a process that does so anyway continues to."""
    before = {number: signal.getsignal(number) for number in DEADLY}
    if all(handler is _leave for handler in before.values()):
        yield
        return
    leave_politely()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> None:
    _insist(number, INSISTS_AFTER)
    _exit(number)


def _insist(number: int, seconds: float) -> None:
    """Raise the exit in this many seconds, and again and again."""
    signal.signal(signal.SIGCONT, _stay_away)
    signal.signal(signal.SIGALRM, lambda *_: _exit(number))
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)  # behind that nobody would take an alarm
    signal.setitimer(signal.ITIMER_REAL, seconds, INSISTS_AFTER)


def _exit(number: int) -> None:
    raise SystemExit(128 + number)


def _stay_away(_number: int, _frame: FrameType | None) -> None:
    """Handle the SIGCONT that a closing terminal sends behind SIGHUP, at which an application would take the screen
    again."""
