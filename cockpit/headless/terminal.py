"""A person's terminal joined to the pseudo terminal of an entered container."""

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
    """Bytes both ways until the shell ends; its exit code. The terminal is as before on every way out.

    The session's descriptors are closed here.
    """
    master = session.terminal_fd
    assert master is not None
    try:
        try:
            with _raw(keyboard), signalled() as woken, _following_size(screen, master), exiting_on_signals():
                _relay(keyboard, screen, master, session.control_fd, woken)
        finally:
            os.close(master)  # hangs up: a shell whose person is gone ends
        return session.exit_code()
    finally:
        os.close(session.control_fd)


def _relay(keyboard: int, screen: int, master: int, control: int, woken: int) -> None:
    """A shell that writes a lot while much is pasted must never wait for us while we wait for it: so keys that it does
    not take yet are pending, and its output is read meanwhile. Ends with the shell, or when the terminal is gone."""
    os.set_blocking(master, False)
    pending = b""
    while True:
        sources = [master, control, woken] if pending else [master, control, woken, keyboard]
        ready, takes, _ = select.select(sources, [master] if pending else [], [])
        if woken in ready:
            os.read(woken, BLOCK)
        if master in ready and not _copy(master, screen):
            return
        if takes:
            pending = pending[_write(master, pending) :]
        if keyboard in ready and not (pending := _read(keyboard)):
            return
        if control in ready:
            _drain(master, screen)
            return


def _copy(source: int, target: int) -> bool:
    """Copy one piece. Returns False at the end of the source, or when the target is gone."""
    try:
        data = os.read(source, BLOCK)
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
        return len(data)


def _drain(master: int, screen: int) -> None:
    """Copy what the shell had still written when it ended."""
    while select.select([master], [], [], 0)[0] and _copy(master, screen):
        pass


@contextmanager
def signalled() -> Iterator[int]:
    """Readable once a signal has come: one that comes just before a wait begins would not end it."""
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
        tty.setraw(terminal, termios.TCSADRAIN)
        yield
    finally:
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _following_size(screen: int, master: int) -> Iterator[None]:
    """The container's terminal is as large as the person's, also after a resize."""

    def resize(_signal: int = 0, _frame: FrameType | None = None) -> None:
        size = fcntl.ioctl(screen, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(master, termios.TIOCSWINSZ, size)

    before = signal.signal(signal.SIGWINCH, resize)
    try:
        resize()
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
