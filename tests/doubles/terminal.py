"""A terminal of our own: a real pseudo terminal around a program, every byte of it with the moment it came."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import threading
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Self

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

SECONDS = 100
SPEAKS = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
SIZE = {"COLUMNS", "LINES"}
"""Variables that say how large another terminal is."""
SYNC_QUESTION, SYNC_ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
"""Modern terminals can be told where a frame begins and ends, and say so when asked."""


class Chunk(NamedTuple):
    """What one read gave."""

    at: float
    data: bytes


class Terminal:
    """Runs `command` until the block ends, then kills it if it is still there."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 120,
        lines: int = 40,
        cwd: str = "/",
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.columns, self.lines = columns, lines
        self._fd, theirs = os.openpty()
        os.set_blocking(self._fd, False)
        self.chunks: list[Chunk] = []
        self._more = threading.Condition()
        self._set_size(columns, lines)
        self.started_at = perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={name: value for name, value in env.items() if name not in SIZE} | SPEAKS,
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(SECONDS)
        self.hang_up()

    def hang_up(self) -> None:
        """As a window that is closed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def press(self, keys: str) -> float:
        """Send what the keys send; when that was. Bytes that are no UTF-8 stand as lone surrogates."""
        at = perf_counter()
        os.write(self._fd, keys.encode(errors="surrogateescape"))
        return at

    def resize(self, columns: int, lines: int) -> None:
        """As a window's edge that is dragged."""
        self.columns, self.lines = columns, lines
        self._set_size(columns, lines)
        self.process.send_signal(signal.SIGWINCH)  # the kernel tells nobody: this terminal controls no session

    def paint_after(self, at: float, mark: str, *, within: float = SECONDS) -> float:
        """When a text had come that was sent after the moment `at`; empty: anything. Raises TimeoutError."""
        wanted, seen = mark.encode(), b""
        place, end = 0, perf_counter() + within
        while True:
            with self._more:
                if not self._more.wait_for(lambda: len(self.chunks) > place, end - perf_counter()):  # noqa: B023 - waits here
                    raise TimeoutError(f"{mark!r} never came; the screen shows\n" + "\n".join(self.screen().display))
                fresh = self.chunks[place:]
            place += len(fresh)
            for chunk in fresh:
                if chunk.at >= at:
                    seen += chunk.data
                    if wanted in seen:
                        return chunk.at

    def quiet(self, seconds: float, *, within: float = SECONDS) -> None:
        """Wait until nothing has come for so long. Raises TimeoutError."""
        end = perf_counter() + within
        with self._more:
            while self._more.wait(seconds):
                if perf_counter() > end:
                    raise TimeoutError(f"it is never quiet for {seconds} s")

    def more(self, seconds: float) -> None:
        """Wait until something comes, or for so long."""
        with self._more:
            self._more.wait(seconds)

    def written_since(self, at: float) -> bytes:
        """Everything that came after a moment."""
        return b"".join(chunk.data for chunk in list(self.chunks) if chunk.at >= at)

    def to_the_end(self) -> None:
        """Wait until the program has ended and all that it wrote has been read. Raises TimeoutError."""
        self._reader.join(SECONDS)
        if self._reader.is_alive():
            raise TimeoutError("the program does not end")

    def screen(self, *, since: float = 0.0) -> pyte.Screen:
        """What a terminal shows that has been written to since then."""
        screen = pyte.Screen(self.columns, self.lines)
        pyte.ByteStream(screen).feed(self.written_since(since))
        return screen

    def until(self, holds: Callable[[str], bool]) -> str:
        """Wait until the visible text is so; the text. Raises TimeoutError."""
        end = perf_counter() + SECONDS
        while not holds(text := "\n".join(self.screen().display)):
            if perf_counter() > end:
                raise TimeoutError(f"it never came true of\n{text}")
            with self._more:
                self._more.wait(0.2)
        return text

    @staticmethod
    def read_in_time(fd: int) -> bytes:
        """What comes from a pipe. Raises TimeoutError."""
        if not select.select([fd], [], [], SECONDS)[0]:
            raise TimeoutError("nothing comes")
        return os.read(fd, 4096)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self) -> None:
        while True:
            try:
                select.select([self._fd], [], [], 0.5)
                data = os.read(self._fd, 65536)
            except BlockingIOError:
                continue
            except (OSError, ValueError):  # the program has gone, or this terminal
                return
            with self._more:
                self.chunks.append(Chunk(perf_counter(), data))
                self._more.notify_all()
            if SYNC_QUESTION in data:
                os.write(self._fd, SYNC_ANSWER)
