"""Connects a shell in a container with the terminal emulator that shows it.

A program may write faster than anything can be drawn. So reading and interpreting are bounded:

1. Output is read whenever there is some, a piece at a time, into a buffer. While the buffer is full nothing is read,
   and the program waits, as it does for any slow terminal.
2. A frame interprets what is buffered, within `BUDGET_SECONDS`, and reports the rows that changed. The first output
   after a pause is drawn at once, so that typed letters appear at once; further frames are `FRAME_SECONDS` apart.
3. What a frame leaves is the next frame's.
"""

from __future__ import annotations

import asyncio
import os
import termios
from typing import TYPE_CHECKING

from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.backends.base import ShellSession
    from cockpit.headless.recording import Recording
    from cockpit.tui.emulator.base import Emulator

BLOCK = 1 << 16
READS = 16
"""Most reads of one callback: a terminal gives at most 4 KiB at a time."""
LEAST_BUFFERED, MOST_BUFFERED = 1 << 14, 1 << 20
"""Bounds of what is buffered: about what the emulator interprets in a few frames, so that Ctrl-c is seen soon."""
LEAST_PIECE, MOST_PIECE = 1 << 8, 1 << 16
"""Bounds of the bytes that are interpreted between two looks at the clock. Emulators differ a thousandfold in speed."""
FRAME_SECONDS = 1 / 30
BUDGET_SECONDS = 0.008
MOST_PENDING = 1 << 20
"""Most bytes typed or pasted that the shell has not taken yet."""


class ShellLink:
    """The shell's terminal, the emulator, and what is between them. It implements `ScreenWatcher` for full screen."""

    def __init__(
        self,
        session: ShellSession,
        emulator: Emulator,
        changed: Callable[[Sequence[int]], None],
        ended: Callable[[], None],
    ) -> None:
        """`changed` gets the rows to draw; `ended` is called once, when the shell has ended and its output is shown."""
        assert session.terminal_fd is not None
        self.session, self.emulator = session, emulator
        self.recording: Recording | None = None
        """Where the output is recorded; None: nowhere."""
        self._changed, self._ended = changed, ended
        self._master, self._control = session.terminal_fd, session.control_fd
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._typed = bytearray()
        self._most = LEAST_BUFFERED
        """Bytes from which on nothing more is read for now."""
        self._piece = LEAST_PIECE
        self._frame: asyncio.TimerHandle | None = None
        self._drawn_at = 0.0
        self._reads = self._watches = False
        self._is_dry = False
        """The terminal has nothing more to give."""
        self._over = False
        """The shell has ended: what is buffered is the last of its output."""
        os.set_blocking(self._master, False)

    # What the pane calls

    def start(self) -> None:
        """Read output and watch for the end; also after `pause`."""
        self._watches = True
        self._loop.add_reader(self._control, self._at_end)
        self._read_on()
        self._schedule()

    def pause(self) -> None:
        """Leave the shell's descriptors to someone else."""
        self._stop_reading()
        if self._watches:
            self._loop.remove_reader(self._control)
            self._watches = False
        self._loop.remove_writer(self._master)

    def type(self, data: bytes) -> None:
        """Send what the user typed. Raises `CockpitError` where the shell does not read and too much is pending."""
        if self._over or not data:
            return
        if len(self._typed) + len(data) > MOST_PENDING:
            raise CockpitError("The shell does not read what was pasted before: the new text was not sent.")
        self._typed += data
        self._write()

    def resize(self, columns: int, rows: int) -> None:
        """Give the emulator and the shell this size."""
        if (columns, rows) != (self.emulator.columns, self.emulator.rows):
            self.resized(columns, rows)
        if not self._over:
            # Without a change nothing is told to the shell.
            termios.tcsetwinsize(self._master, (rows, columns))
        self._schedule()

    def flush(self) -> None:
        """Interpret all that has been read."""
        self._typed += self.emulator.feed(bytes(self._buffer))
        self._buffer.clear()
        self.emulator.changed()

    def draw(self) -> None:
        """Report the rows that differ, as after scrolling."""
        self._changed(self.emulator.changed())

    async def close(self) -> int | None:
        """Hang up, and free everything. Returns the shell's exit code; None: it was still running."""
        self.pause()
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None
        try:
            # The code is there when the control socket is readable, so that this does not take long.
            return await asyncio.to_thread(self.session.exit_code) if self._over else None
        finally:
            self._over = True
            os.close(self._master)
            os.close(self._control)
            self.stop_recording()
            self.emulator.close()

    def stop_recording(self) -> Recording | None:
        """Close the recording and return it; None: there was none."""
        recording, self.recording = self.recording, None
        if recording is not None:
            recording.close()
        return recording

    # What the full screen calls, which reads the shell's output itself

    def output(self, data: bytes) -> None:
        """Interpret output that another terminal shows, and answers."""
        self.emulator.feed(data)
        if self.recording is not None:
            self.recording.output(data)

    def resized(self, columns: int, rows: int) -> None:
        self.emulator.resize(columns, rows)
        if self.recording is not None:
            self.recording.resized(columns, rows)

    # Output

    def _read_on(self) -> None:
        if not (self._reads or self._is_dry or self._over):
            self._reads = True
            self._loop.add_reader(self._master, self._read)

    def _stop_reading(self) -> None:
        if self._reads:
            self._reads = False
            self._loop.remove_reader(self._master)

    def _read(self) -> None:
        """Read some of what is there. The end of the output is not the shell's: its exit code comes on its own."""
        for _ in range(READS):
            if not self._read_piece():
                break
            if len(self._buffer) >= self._most:
                self._stop_reading()
                break
        self._schedule()

    def _read_piece(self) -> bool:
        """Read what one call gives; return whether there may be more now."""
        try:
            data = os.read(self._master, BLOCK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._is_dry = True
            self._stop_reading()
            return False
        self._buffer += data
        if self.recording is not None:
            self.recording.output(data)
        return True

    def _at_end(self) -> None:
        """The shell has ended: read what it had still written. A process that it left may go on writing for ever."""
        self._loop.remove_reader(self._control)
        self._watches = False
        self._stop_reading()
        end = len(self._buffer) + MOST_BUFFERED
        while len(self._buffer) < end and self._read_piece():
            pass
        self._over = True
        self._schedule()

    def _schedule(self) -> None:
        if self._frame is None:
            wait = self._drawn_at + FRAME_SECONDS - self._loop.time()
            self._frame = self._loop.call_later(max(0.0, wait), self._draw_frame)

    def _draw_frame(self) -> None:
        self._frame = None
        end = self._loop.time() + BUDGET_SECONDS
        replies, before = b"", len(self._buffer)
        while self._buffer and (now := self._loop.time()) < end:
            replies += self.emulator.feed(bytes(self._buffer[: self._piece]))
            del self._buffer[: self._piece]
            took = self._loop.time() - now
            if took > BUDGET_SECONDS / 4:
                self._piece = max(LEAST_PIECE, self._piece // 2)
            elif took < BUDGET_SECONDS / 16:
                self._piece = min(MOST_PIECE, self._piece * 2)
        interpreted = before - len(self._buffer)
        if self._buffer:
            self._most = max(LEAST_BUFFERED, 2 * interpreted)
        elif interpreted >= self._most:
            self._most = min(MOST_BUFFERED, 2 * self._most)
        if replies and len(self._typed) < MOST_PENDING:
            self._typed += replies
            self._write()
        self.draw()
        self._drawn_at = self._loop.time()
        if self._buffer:
            self._schedule()
        elif self._over:
            self._ended()
            return
        if len(self._buffer) <= self._most // 2 and self._watches:
            self._read_on()

    # Input

    def _write(self) -> None:
        """Write what the shell takes now; the rest when it takes more."""
        if self._over:
            return
        try:
            del self._typed[: os.write(self._master, self._typed)]
        except BlockingIOError:
            pass
        except OSError:
            self._typed.clear()  # the shell is gone; its end comes next
        if self._typed:
            self._loop.add_writer(self._master, self._write)
        else:
            self._loop.remove_writer(self._master)
