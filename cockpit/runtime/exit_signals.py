"""Makes a signal that ends this process work like a regular exit, so that the terminal is restored and no child is
left."""

from __future__ import annotations

import atexit
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

DEADLY = (signal.SIGTERM, signal.SIGHUP)
"""The signals of an ordinary kill and of a closed terminal."""
REPEAT_SECONDS = 10.0
"""Interval at which the exit is raised again: Python drops an exception that is raised in a finalizer."""
GRACE_SECONDS = 2.0
"""How long a program that is asked to end may take, before the exit is raised wherever it is."""


def exit_on_signals() -> None:
    """Treat deadly signals as an exit from now on."""
    for number in DEADLY:
        signal.signal(number, _leave)


def leave_when_asked(ask: Callable[[int], object]) -> None:
    """Let deadly signals call `ask` with the exit code, and raise the exit only if the program has not ended by itself.

    An exit that is raised while the screen is drawn leaves it half drawn, and each task of an event loop reports it
    with a traceback.
    """

    def leave(number: int, _frame: FrameType | None) -> None:
        # Only if the program has not ended by then.
        _exit_repeatedly(number, GRACE_SECONDS)
        ask(128 + number)

    for number in DEADLY:
        signal.signal(number, leave)


def restore_signals() -> None:
    """Let no signal be ignored or blocked, in a child before it executes a program: cockpit may have been started with
    SIGHUP ignored (nohup), and the program of a shell must end when its terminal is closed."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


@contextmanager
def exiting_on_signals() -> Iterator[None]:
    """Treat deadly signals as an exit within this context, and no longer afterwards unless the process did so
    before."""
    before = {number: signal.getsignal(number) for number in DEADLY}
    if all(handler is _leave for handler in before.values()):
        yield
        return
    exit_on_signals()
    try:
        yield
    finally:
        # The alarm of an exit that was on its way is not for the program that continues.
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> None:
    _exit_repeatedly(number, REPEAT_SECONDS)
    _exit(number)


def _exit_repeatedly(number: int, seconds: float) -> None:
    """Raise the exit in this many seconds, and then every `REPEAT_SECONDS`."""
    signal.signal(signal.SIGCONT, _ignore_continue)
    signal.signal(signal.SIGALRM, lambda *_: _exit(number))
    # an alarm after the interpreter has removed its handlers would kill the process with a message
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)


def _exit(number: int) -> None:
    raise SystemExit(128 + number)


def _ignore_continue(_number: int, _frame: FrameType | None) -> None:
    """Handle the SIGCONT that a closing terminal sends behind SIGHUP, at which an application would take the screen
    again."""
