"""The program of one session: a process of the session's user at a pseudo terminal or at three pipes.

Nothing here grows without a bound. What the program writes is read in pieces and only while the client takes it; what
the client types waits in a buffer of `INPUT_BYTES`, and beyond that the client is not read.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from cockpit.serve.accounts import Account
from cockpit.serve.starting import StartProgram, start_program

PIECE: Final = 32 << 10
"""Bytes of one read: so many may wait for a slow client in this process, besides the transport's buffer."""
INPUT_BYTES: Final = 64 << 10
GRACE_SECONDS: Final = 3.0
"""Time between SIGHUP and SIGKILL at the end of a session."""
LARGEST_SIZE: Final = 1000
"""Columns and rows: a larger screen only costs memory."""
STDOUT, STDERR = 1, 2


class Client(Protocol):
    """The other end of the program."""

    def show(self, data: bytes, stream: int) -> None:
        """Send output to the client; it may call `pause_output` when it has enough."""

    def hold_input(self, held: bool) -> None:
        """Stop reading from the client, or go on."""

    def ended(self, code: int) -> None:
        """Take note of the program's end, after all of its output: its exit code, or minus a signal."""


class Program:
    """Runs while the session is open. Use it from the event loop's thread only."""

    def __init__(
        self,
        words: Sequence[str],
        account: Account,
        env: Mapping[str, str],
        client: Client,
        *,
        size: tuple[int, int] | None,
        start: StartProgram = start_program,
    ) -> None:
        """Start cockpit with these words. `size`: columns and rows of its terminal; None: three pipes. Raises
        `OSError`."""
        self._loop = asyncio.get_running_loop()
        self._client = client
        self._terminal = size is not None
        self._typed = bytearray()
        self._input_ends = self._input_held = False
        self._paused = False
        self._code: int | None = None
        self._finished = False
        self._killer: asyncio.TimerHandle | None = None
        if size is not None:
            outer, inner = os.openpty()
            _resize(outer, *size)
            self._input, self._outputs = outer, {outer: STDOUT}
            theirs = (inner, inner, inner)
        else:
            (stdin, self._input), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
            self._outputs = {out: STDOUT, err: STDERR}
            theirs = (stdin, stdout, stderr)
        for descriptor in {self._input, *self._outputs}:
            os.set_blocking(descriptor, False)
        try:
            self._process = start(words, account, env, theirs, terminal=self._terminal)
        except BaseException:
            self._close_all()
            raise
        finally:
            for descriptor in set(theirs):
                os.close(descriptor)
        self._exit_fd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._exit_fd, self._exited)
        self._listen()

    @property
    def pid(self) -> int:
        return self._process.pid

    def type(self, data: bytes) -> None:
        """Give the program input."""
        if self._input < 0 or self._input_ends:
            return
        self._typed += data
        self._write()

    def end_input(self) -> None:
        """Close the program's input, after what was typed. A terminal has no such end."""
        if not self._terminal:
            self._input_ends = True
            self._write()

    def resize(self, columns: int, rows: int) -> None:
        """Tell the program's terminal its new size."""
        if self._terminal and self._input >= 0:
            _resize(self._input, columns, rows)

    def signal(self, number: int) -> None:
        """Send a signal to the program and those it started."""
        if self._code is None:
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                return

    def pause_output(self) -> None:
        """Read no output until `resume_output`: the program then waits in its next write."""
        self._paused = True
        for descriptor in self._outputs:
            self._loop.remove_reader(descriptor)

    def resume_output(self) -> None:
        self._paused = False
        self._listen()
        if self._code is not None:
            self._drain()

    def hang_up(self) -> None:
        """End the program as a closed terminal does, and kill it if it stays."""
        if self._code is None:
            self.signal(signal.SIGHUP)
            # A stopped program gets the signal only when it continues.
            self.signal(signal.SIGCONT)
            if self._killer is None:
                self._killer = self._loop.call_later(GRACE_SECONDS, self.signal, signal.SIGKILL)
        # The client reads no more, so nothing of the output is waited for.
        self._close_all()
        if self._code is not None:
            self._finish()

    def _listen(self) -> None:
        for descriptor in self._outputs if not self._paused else ():
            self._loop.add_reader(descriptor, self._read, descriptor)

    def _read(self, descriptor: int) -> bool:
        """Pass on one piece of output; return whether there may be more at once."""
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return False
        except OSError as error:
            # EIO: no program has the terminal open any more.
            if error.errno != errno.EIO:
                raise
            data = b""
        if data:
            self._client.show(data, self._outputs[descriptor])
            return True
        self._close(descriptor)
        if not self._outputs and self._code is not None:
            self._finish()
        return False

    def _exited(self) -> None:
        self._loop.remove_reader(self._exit_fd)
        os.close(self._exit_fd)
        if self._killer is not None:
            self._killer.cancel()
        # Programs that it started in the background end with the session. Before `wait`, after which the number may be
        # another process's.
        self.signal(signal.SIGHUP)
        self._code = self._process.wait()
        self._drain()

    def _drain(self) -> None:
        """Pass on what the program wrote before its end, as far as the client takes it; what others write later is not
        waited for."""
        for descriptor in list(self._outputs):
            while not self._paused and descriptor in self._outputs and self._read(descriptor):
                pass
        if not self._paused:
            self._finish()

    def _finish(self) -> None:
        if not self._finished and self._code is not None:
            self._finished = True
            self._close_all()
            self._client.ended(self._code)

    def _write(self) -> None:
        """Give the program as much of the input as it takes now."""
        while self._typed and self._input >= 0:
            try:
                written = os.write(self._input, self._typed[:PIECE])
            except BlockingIOError:
                self._loop.add_writer(self._input, self._write)
                break
            except OSError:
                # The program has closed its input, or ended.
                self._typed.clear()
                break
            del self._typed[:written]
        else:
            if self._input >= 0:
                self._loop.remove_writer(self._input)
            if self._input_ends:
                self._close(self._input)
        self._hold_input(len(self._typed) > INPUT_BYTES)

    def _hold_input(self, held: bool) -> None:
        if held is not self._input_held:
            self._input_held = held
            self._client.hold_input(held)

    def _close_all(self) -> None:
        for descriptor in (*self._outputs, self._input):
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        if descriptor < 0 or descriptor not in {*self._outputs, self._input}:
            return
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        self._outputs.pop(descriptor, None)
        if descriptor == self._input:
            self._input = -1
        os.close(descriptor)


def _resize(descriptor: int, columns: int, rows: int) -> None:
    """Set the size of a terminal, from which the kernel tells the program; a client may send any numbers."""
    shown = [min(max(each, 0), LARGEST_SIZE) for each in (rows or 24, columns or 80)]
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", *shown, 0, 0))
