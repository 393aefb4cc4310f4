"""A person's terminal joined to the pseudo terminal of an entered container."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cockpit.backends.base import ShellSession

BLOCK = 1 << 16
DEADLY = (signal.SIGTERM, signal.SIGHUP)


def relay_terminal(session: ShellSession, keyboard: int, screen: int) -> int:
    """Bytes both ways until the shell ends; its exit code. The terminal is as before on every way out.

    The session's descriptors are closed here.
    """
    master = session.terminal_fd
    assert master is not None
    try:
        with _raw(keyboard), _following_size(screen, master), _dying_politely():
            _relay(keyboard, screen, master, session.control_fd)
        os.close(master)
        return session.exit_code()
    finally:
        _close(master)
        _close(session.control_fd)


def _relay(keyboard: int, screen: int, master: int, control: int) -> None:
    sources = [keyboard, master, control]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if master in ready and not _copy(master, screen):
            return
        if keyboard in ready and not _copy(keyboard, master):
            sources.remove(keyboard)
        if control in ready:
            _drain(master, screen)
            return


def _copy(source: int, target: int) -> bool:
    """One piece; False at the end of the source."""
    try:
        data = os.read(source, BLOCK)
        write_all(target, data)
    except OSError:
        return False
    return bool(data)


def _drain(master: int, screen: int) -> None:
    """What the shell had still written when it ended."""
    while select.select([master], [], [], 0)[0] and _copy(master, screen):
        pass


def write_all(target: int, data: bytes) -> None:
    """`os.write` until everything is written."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Every key goes to the container, Ctrl-C too."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal, termios.TCSADRAIN)
        yield
    finally:
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


@contextmanager
def _dying_politely() -> Iterator[None]:
    """A killed command still gives the terminal back: the signal becomes an exit."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in DEADLY}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        return
