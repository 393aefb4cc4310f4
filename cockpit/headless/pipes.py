"""Connect the three pipes of an entered container to this process's standard streams.

Bytes pass unchanged, and so do the end of a stream and a reader that is gone.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cockpit.backends.base import ShellSession
    from cockpit.headless.recording import PipedRecording

BLOCK = 1 << 16
"""Bytes that are copied at a time."""


def relay_pipes(
    session: ShellSession, stdin: int, stdout: int, stderr: int, recording: PipedRecording | None = None
) -> int:
    """Copy between the session and the streams until the command has ended and all its output is written. Returns its
    exit code, and closes the session's descriptors."""
    assert session.pipe_fds is not None
    to_command, from_stdout, from_stderr = session.pipe_fds
    pump = _Pump(stdin, to_command, {from_stdout: stdout, from_stderr: stderr}, session.control_fd)
    pump.recording = recording
    try:
        pump.run()
        # Only now: the code comes when the command has ended, but its output must be written first.
        return session.exit_code()
    finally:
        pump.close()
        os.close(session.control_fd)


class _Pump:
    """Copies until the command has ended, and never blocks on a command that does not read."""

    def __init__(self, stdin: int, to_command: int, outputs: dict[int, int], control: int) -> None:
        self._stdin, self._to_command, self._outputs, self._control = stdin, to_command, outputs, control
        self.recording: PipedRecording | None = None
        """Where all output is recorded, too; None: nowhere."""
        self._pending = b""
        self._stdin_open = self._command_reads = True
        # Otherwise writing input could block while the command's output waits to be read, and both would wait for ever.
        os.set_blocking(to_command, False)

    def run(self) -> None:
        while self._outputs:
            ready = self._ready()
            for source in [source for source in self._outputs if source in ready]:
                self._pass_on(source)
            if self._stdin in ready and self._stdin_open:
                self._read_stdin()
            if self._to_command in ready and self._command_reads:
                self._feed()
            # Last: what is ready was copied above, and `_drain` takes what came since.
            if self._control in ready:
                self._drain()
                return

    def close(self) -> None:
        for source in list(self._outputs):
            self._drop(source)
        self._stop_feeding()

    def _ready(self) -> set[int]:
        poll = select.poll()
        for source in (*self._outputs, self._control):
            poll.register(source, select.POLLIN)
        # While input is pending, no more is read: a fast writer must not fill this process's memory.
        if self._pending:
            poll.register(self._to_command, select.POLLOUT)
        elif self._stdin_open and self._command_reads:
            poll.register(self._stdin, select.POLLIN)
        # Without any event, an error is still reported (poll(2)): the command has closed its input.
        if self._command_reads and not self._pending:
            poll.register(self._to_command, 0)
        return {descriptor for descriptor, _ in poll.poll()}

    def _pass_on(self, source: int) -> bool:
        """Copy one piece of output. Returns False at its end, or when our reader is gone, which the command then has to
        notice too."""
        try:
            data = os.read(source, BLOCK)
            write_all(self._outputs[source], data)
            if self.recording is not None:
                self.recording.output(data)
        except OSError:
            # Closing the command's pipe lets the command notice it by SIGPIPE, as in a shell's pipeline.
            data = b""
        if not data:
            self._drop(source)
        return bool(data)

    def _drain(self) -> None:
        """Copy what is there already: a process that the ended command has left may keep its pipes open for ever."""
        for source in list(self._outputs):
            while select.select([source], [], [], 0)[0] and self._pass_on(source):
                pass

    def _read_stdin(self) -> None:
        try:
            self._pending = os.read(self._stdin, BLOCK)
        except OSError:
            self._pending = b""
        if not self._pending:
            self._stdin_open = False
            self._stop_feeding()

    def _feed(self) -> None:
        """Pass input on; a command that has closed its input gets no more."""
        # Without pending input, `_ready` reports this pipe only if its reader is gone.
        if not self._pending:
            self._stop_feeding()
            return
        try:
            self._pending = self._pending[os.write(self._to_command, self._pending) :]
        except BlockingIOError:
            return
        except OSError:
            self._stop_feeding()

    def _stop_feeding(self) -> None:
        self._pending = b""
        if self._command_reads:
            self._command_reads = False
            os.close(self._to_command)

    def _drop(self, source: int) -> None:
        del self._outputs[source]
        os.close(source)


def write_all(target: int, data: bytes) -> None:
    """Write all of the data: `os.write` may take a part of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
