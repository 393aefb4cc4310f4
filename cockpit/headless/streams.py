"""Where a command reads and writes. Output goes to stdout, everything else to stderr, questions only to a person."""

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
    """The three standard streams of one command, and the clock and zone that its words depend on.

    `columns` is the terminal's width; None asks the terminal. `zone` None is this machine's.
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
        """Those of this process; one that was closed before the start reads and writes nothing."""
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
        """Width of the terminal that stdout is."""
        if self._columns is not None:
            return self._columns
        try:
            return os.get_terminal_size(self.stdout.fileno()).columns or 80
        except OSError:
            return 80

    def write(self, data: bytes) -> None:
        """Whole lines in UTF-8: exactly these bytes to a file or pipe, harmless on a terminal."""
        if self._is_terminal:
            self.text(data.decode(errors="backslashreplace"))
        else:
            self.stdout.write(data)

    def write_all(self, pieces: Iterable[bytes]) -> None:
        """Pieces that are whole lines each."""
        if self._is_terminal:
            for piece in pieces:
                self.write(piece)
        else:
            self.stdout.writelines(pieces)

    def line(self, text: str = "") -> None:
        """One line of output, made harmless for a terminal."""
        self.text(text + "\n")

    def text(self, text: str) -> None:
        """Text that brings its own line ends: as it is to a file or pipe, harmless on a terminal."""
        self.stdout.write(self._encoded(safe_lines(text) if self._is_terminal else text))

    def say(self, message: str) -> None:
        """Tell the person; made harmless here."""
        self.flush()
        self.stderr.write(self._encoded(safe_lines(message) + "\n"))
        self.stderr.flush()

    def hint(self, message: str) -> None:
        """Say it only where a person looks: on a terminal."""
        if self.stderr.isatty():
            self.say(message)

    @property
    def answers(self) -> bool:
        """Whether a person can be asked."""
        return self.stdin.isatty() and self.stderr.isatty()

    def confirmed(self, question: str) -> bool:
        """Ask, default No. Only where `answers`."""
        self.flush()
        self.stderr.write(self._encoded(f"{safe_lines(question)} [y/N] "))
        self.stderr.flush()
        return self.stdin.readline().strip().lower() in {b"y", b"yes"}

    def flush(self) -> None:
        self.stdout.flush()

    def abandon_output(self) -> None:
        """The reader went away: what Python still flushes at exit must not complain about it."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stdout.fileno())
        os.close(nowhere)

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "backslashreplace")


def _nowhere(mode: Literal["rb", "wb"]) -> BinaryIO:
    return open(os.devnull, mode)  # noqa: PTH123 - lives as long as the process
