"""Standard streams of a command: output goes to stdout, messages to stderr, questions only to a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from datetime import tzinfo
from functools import cached_property
from typing import BinaryIO, Literal

from cockpit.model.ids import Millis
from cockpit.present.safe import safe_lines


class Streams:
    """The three standard streams of one command, with the clock and time zone by which it prints times.

    `columns`: width of the terminal; None: ask the terminal. `zone`: None is this machine's time zone.
    """

    def __init__(
        self,
        *,
        stdin: BinaryIO,
        stdout: BinaryIO,
        stderr: BinaryIO,
        now: Callable[[], Millis],
        zone: tzinfo | None = None,
        encoding: str = "utf-8",
        columns: int | None = None,
    ) -> None:
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.now, self.zone = now, zone
        self._encoding, self._columns = encoding, columns

    @classmethod
    def of_process(cls, now: Callable[[], Millis]) -> Streams:
        """Return the streams of this process; a stream that was closed before the start is replaced by /dev/null."""
        return cls(
            stdin=sys.stdin.buffer if sys.stdin else _nowhere("rb"),
            stdout=sys.stdout.buffer if sys.stdout else _nowhere("wb"),
            stderr=sys.stderr.buffer if sys.stderr else _nowhere("wb"),
            now=now,
            encoding=sys.stdout.encoding if sys.stdout else "utf-8",
        )

    @cached_property
    def _is_terminal(self) -> bool:
        return self.stdout.isatty()

    @property
    def columns(self) -> int:
        """Width of the terminal of stdout, in characters; 80 when it is unknown."""
        if self._columns is not None:
            return self._columns
        try:
            return os.get_terminal_size(self.stdout.fileno()).columns or 80
        except OSError:
            return 80

    def write(self, data: bytes) -> None:
        """Write whole lines in UTF-8: unchanged to a file or pipe, without control characters to a terminal."""
        if self._is_terminal:
            self.text(data.decode(errors="backslashreplace"))
        else:
            self.stdout.write(data)

    def write_all(self, pieces: Iterable[bytes]) -> None:
        """Write pieces, each of whole lines, as `write` does."""
        if self._is_terminal:
            for piece in pieces:
                self.write(piece)
        else:
            self.stdout.writelines(pieces)

    def line(self, text: str = "") -> None:
        """Write one line of output; control characters are escaped for a terminal."""
        self.text(text + "\n")

    def text(self, text: str) -> None:
        """Write text with its own line ends: unchanged to a file or pipe, without control characters to a terminal."""
        self.stdout.write(self._encoded(safe_lines(text) if self._is_terminal else text))

    def say(self, message: str) -> None:
        """Write a message to stderr, with control characters escaped."""
        self.flush()
        self.stderr.write(self._encoded(safe_lines(message) + "\n"))
        self.stderr.flush()

    def hint(self, message: str) -> None:
        """Write a message to stderr only if that is a terminal."""
        if self.stderr.isatty():
            self.say(message)

    @property
    def answers(self) -> bool:
        """Whether the user can be asked: stdin and stderr are terminals."""
        return self.stdin.isatty() and self.stderr.isatty()

    def confirmed(self, question: str) -> bool:
        """Ask a yes-or-no question, whose default is no. Call it only if `answers`."""
        self.flush()
        self.stderr.write(self._encoded(f"{safe_lines(question)} [y/N] "))
        self.stderr.flush()
        return self.stdin.readline().strip().lower() in {b"y", b"yes"}

    def flush(self) -> None:
        self.stdout.flush()

    def abandon_output(self) -> None:
        """Point stdout to /dev/null after its reader has closed the pipe, so that Python's last flush does not fail."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stdout.fileno())
        os.close(nowhere)

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "backslashreplace")


def _nowhere(mode: Literal["rb", "wb"]) -> BinaryIO:
    return open(os.devnull, mode)  # noqa: PTH123 - lives as long as the process
