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
    from cockpit.headless.recording import ScreenWatcher


def relay_terminal(session: ShellSession, keyboard: int, screen: int, watcher: ScreenWatcher | None = None) -> int:
    """Copy bytes both ways until the shell ends, and return its exit code. The terminal is restored in every case.

    `watcher` is told of everything that the shell shows. The session's descriptors are closed here.
    """
    master = session.terminal_fd
    assert master is not None
    try:
        try:
            relay_until_left(session, keyboard, screen, watcher)
        finally:
            os.close(master)  # hangs up: a shell whose user is gone ends
        return session.exit_code()
    finally:
        # Last: the exit code was read from it.
        os.close(session.control_fd)


def relay_until_left(
    session: ShellSession,
    keyboard: int,
    screen: int,
    watcher: ScreenWatcher | None = None,
    leaving: tuple[bytes, ...] = (),
) -> bool:
    """Copy bytes both ways until the shell ends or the user types one of `leaving`; return whether that was typed.

    The terminal is restored in every case. The session's descriptors stay open.
    """
    master = session.terminal_fd
    assert master is not None
    with _raw(keyboard), signalled() as woken, _following_size(screen, master), exiting_on_signals():
        if watcher is not None:
            watcher.resized(*os.get_terminal_size(screen))
        return _Relay(keyboard, screen, master, session.control_fd, watcher, leaving).run(woken)


class _Relay:
    """Copies in both directions.

    A shell that writes a lot while much is pasted must not wait for this process while this process waits for it. So
    keys that the shell does not take yet are pending, and its output is read meanwhile.
    """

    def __init__(
        self,
        keyboard: int,
        screen: int,
        master: int,
        control: int,
        watcher: ScreenWatcher | None,
        leaving: tuple[bytes, ...],
    ) -> None:
        self._keyboard, self._screen, self._master, self._control = keyboard, screen, master, control
        self._watcher, self._leaving = watcher, leaving
        self._pending = b""

    def run(self, woken: int) -> bool:
        """Copy until the shell ends or the terminal is gone (False), or until the user leaves (True)."""
        master, control = self._master, self._control
        os.set_blocking(master, False)
        while True:
            # While keys are pending, no more are read: the terminal's own buffer then holds back a fast paste.
            sources = [master, control, woken] if self._pending else [master, control, woken, self._keyboard]
            ready, takes, _ = select.select(sources, [master] if self._pending else [], [])
            # The signal's handler has set the size already, and the call of `select` ended for it.
            if woken in ready:
                os.read(woken, BLOCK)
                if self._watcher is not None:
                    self._watcher.resized(*os.get_terminal_size(self._screen))
            if master in ready and not self._copy():
                return False
            if takes:
                self._pending = self._pending[_write(master, self._pending) :]
            if self._keyboard in ready:
                keys = _read(self._keyboard)
                if not keys:
                    return False
                kept, left = self._until_leaving(keys)
                self._pending = kept
                if left:
                    _write(master, kept)
                    return True
            # The exit code has come, so the shell has ended.
            if control in ready:
                self._drain()
                return False

    def _until_leaving(self, keys: bytes) -> tuple[bytes, bool]:
        """Return the keys before the one with which the user leaves, and whether there is one."""
        places = [place for each in self._leaving if (place := keys.find(each)) >= 0]
        return (keys[: min(places)], True) if places else (keys, False)

    def _copy(self) -> bool:
        """Copy one piece of output. Returns False at its end, or when the screen is gone."""
        try:
            data = os.read(self._master, BLOCK)
            # The screen is written without a limit: a slow terminal slows the shell down, as it does everywhere.
            write_all(self._screen, data)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if self._watcher is not None:
            self._watcher.output(data)
        return bool(data)

    def _drain(self) -> None:
        """Copy what the shell had still written when it ended."""
        while select.select([self._master], [], [], 0)[0] and self._copy():
            pass


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
