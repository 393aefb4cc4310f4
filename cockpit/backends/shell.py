"""The user's side of a shell in a container."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from cockpit.present.entry_notice import entry_notice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.model.asking import ShellOpened

_EXIT = struct.Struct(">i")
_UNKNOWN = 255


class OpenShell:
    """Implements `base.ShellSession` over descriptors: the control socket, then a terminal or three pipes."""

    def __init__(self, opened: ShellOpened, fds: Sequence[int]) -> None:
        self.notice = entry_notice(
            kept=opened.kept, remounted=opened.remounted, cards_freed=opened.cards_freed, plain=opened.plain
        )
        self.control_fd = fds[0]
        self.terminal_fd = fds[1] if opened.terminal else None
        self.pipe_fds = None if opened.terminal else (fds[1], fds[2], fds[3])

    def exit_code(self) -> int:
        """Block until the shell has ended and return its exit code; 255 if the container ended without reporting it."""
        answer = b""
        # A stream socket may deliver the four bytes in pieces.
        while len(answer) < _EXIT.size:
            part = os.read(self.control_fd, _EXIT.size - len(answer))
            if not part:
                return _UNKNOWN
            answer += part
        return int(_EXIT.unpack(answer)[0])
