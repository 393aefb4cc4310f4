"""An entered container that is a plain process of this machine, with real pipes or a real pseudo terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
import threading

from cockpit.model.asking import ShellRequest


class ProcessSession:
    """As `ShellSession` promises: `control_fd` becomes readable when the process has ended."""

    def __init__(self, request: ShellRequest, command: list[str]) -> None:
        self.notice = ""
        self.terminal_fd: int | None = None
        self.pipe_fds: tuple[int, int, int] | None = None
        self.control_fd, self._ended = os.pipe()
        if request.terminal:
            self.terminal_fd, slave = pty.openpty()
            termios.tcsetwinsize(slave, (request.rows, request.columns))
            ends = (slave, slave, slave)
        else:
            stdin, to_stdin = os.pipe()
            from_stdout, stdout = os.pipe()
            from_stderr, stderr = os.pipe()
            self.pipe_fds = (to_stdin, from_stdout, from_stderr)
            ends = (stdin, stdout, stderr)
        self._process = subprocess.Popen(command, stdin=ends[0], stdout=ends[1], stderr=ends[2], start_new_session=True)
        for end in set(ends):
            os.close(end)
        self.watcher = threading.Thread(target=self._tell_the_end, daemon=True)
        self.watcher.start()

    def exit_code(self) -> int:
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def _tell_the_end(self) -> None:
        self._process.wait()
        os.close(self._ended)
