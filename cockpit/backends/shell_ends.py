"""The descriptors of a shell: a pseudo terminal or three pipes, and the bytes of its exit code."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.model.asking import ShellRequest

_EXIT = struct.Struct(">i")


def exit_bytes(code: int) -> bytes:
    """Return an exit code as the four bytes that the control socket sends at the end; 128 + n after signal n."""
    return _EXIT.pack(code if code >= 0 else 128 - code)


class Ends:
    """File descriptors of a terminal or of three pipes: `inner` for the program, `outer` for the user."""

    def __init__(self, inner: tuple[int, ...], outer: tuple[int, ...]) -> None:
        # A terminal is one descriptor for all three.
        self.stdin, self.stdout, self.stderr = inner if len(inner) == 3 else inner * 3
        self.inner, self.outer = inner, outer


def pseudo_terminal(request: ShellRequest) -> Ends:
    """Create a pseudo terminal of the size of the user's screen."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", request.rows, request.columns, 0, 0))
    os.set_inheritable(slave, True)
    return Ends((slave,), (master,))


def pipes() -> Ends:
    """Create pipes for standard input, output and error."""
    stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
    return Ends((stdin[0], stdout[1], stderr[1]), (stdin[1], stdout[0], stderr[0]))
