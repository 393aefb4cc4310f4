"""Connect the user's terminal to the pseudo terminal of an entered container."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from cockpit.headless.pipes import BLOCK, write_all
from cockpit.runtime.exit_signals import exiting_on_signals

if TYPE_CHECKING:
    from cockpit.backends.base import ShellSession


def relay_terminal(session: ShellSession, keyboard: int, screen: int) -> int:
    """Copy bytes both ways until the shell ends, and return its exit code. The terminal is restored in every case.

    The session's descriptors are closed here.
    """
    master = session.terminal_fd
    assert master is not None
    try:
        try:
            with _raw(keyboard), signalled() as woken, _following_size(screen, master), exiting_on_signals():
                _relay(keyboard, screen, master, session.control_fd, woken)
        finally:
            os.close(master)  # hangs up: a shell whose user is gone ends
        return session.exit_code()
    finally:
        # Last: the exit code was read from it.
        os.close(session.control_fd)


def _relay(keyboard: int, screen: int, master: int, control: int, woken: int) -> None:
    """Copy in both directions, until the shell ends or the terminal is gone.

    A shell that writes a lot while much is pasted must not wait for this process while this process waits for it. So
    keys that the shell does not take yet are pending, and its output is read meanwhile.
    """
    os.set_blocking(master, False)
    pending = b""
    while True:
        # While keys are pending, no more are read: the terminal's own buffer then holds back a fast paste.
        sources = [master, control, woken] if pending else [master, control, woken, keyboard]
        ready, takes, _ = select.select(sources, [master] if pending else [], [])
        # Read only to empty it: the signal's handler has done its work, and the call of `select` ended for it.
        if woken in ready:
            os.read(woken, BLOCK)
        if master in ready and not _copy(master, screen):
            return
        if takes:
            pending = pending[_write(master, pending) :]
        if keyboard in ready and not (pending := _read(keyboard)):
            return
        # The exit code has come, so the shell has ended.
        if control in ready:
            _drain(master, screen)
            return


def _copy(source: int, target: int) -> bool:
    """Copy one piece. Returns False at the end of the source, or when the target is gone."""
    try:
        data = os.read(source, BLOCK)
        # The screen is written without a limit: a slow terminal slows the shell down, as it does everywhere.
        write_all(target, data)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return bool(data)


def _read(keyboard: int) -> bytes:
    """Return the next keys; empty: the keyboard is gone."""
    try:
        return os.read(keyboard, BLOCK)
    except OSError:
        return b""


def _write(master: int, data: bytes) -> int:
    """Return how many bytes the shell took; all of them when it is gone and takes no more."""
    try:
        return os.write(master, data)
    except BlockingIOError:
        return 0
    except OSError:
        # All, so that the loop does not try again; the end of the shell comes next.
        return len(data)


def _drain(master: int, screen: int) -> None:
    """Copy what the shell had still written when it ended."""
    while select.select([master], [], [], 0)[0] and _copy(master, screen):
        pass


@contextmanager
def signalled() -> Iterator[int]:
    """Yield a descriptor that becomes readable when a signal has come.

    A signal that comes just before a call of `select` would not end it by itself (signal(7)).
    """
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Put the terminal into raw mode: every key goes to the container, Ctrl-C too."""
    before = termios.tcgetattr(terminal)
    try:
        # TCSADRAIN: what was printed is written first, and keys that were typed ahead stay.
        tty.setraw(terminal, termios.TCSADRAIN)
        yield
    finally:
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _following_size(screen: int, master: int) -> Iterator[None]:
    """Keep the container's terminal as large as the user's, also after a resize."""

    def resize(_signal: int = 0, _frame: FrameType | None = None) -> None:
        size = fcntl.ioctl(screen, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(master, termios.TIOCSWINSZ, size)

    before = signal.signal(signal.SIGWINCH, resize)
    try:
        # At once, for the size that the terminal has by now.
        resize()
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
