"""Standard streams of a command: output goes to stdout, messages to stderr, questions only to a terminal. Secrets are
masked in all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, Literal, Self

from cockpit.model.ids import Millis
from cockpit.model.masking import masked, masked_bytes
from cockpit.present.safe import harmless_lines, safe_lines

if TYPE_CHECKING:
    from types import TracebackType


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
    def is_terminal(self) -> bool:
        """Whether stdout is a terminal."""
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
        """Write whole lines in UTF-8: to a terminal without control characters."""
        self._put(masked_bytes(data))

    def write_masked(self, data: bytes) -> None:
        """Write what is masked already, unchanged; not to a terminal."""
        self.stdout.write(data)

    def write_file(self, data: bytes) -> None:
        """Write a file that will be used again: unchanged to a file or pipe, but for a terminal as `write` does."""
        self._put(masked_bytes(data) if self.is_terminal else data)

    def _put(self, data: bytes) -> None:
        # On a terminal a control character in a name could do anything, such as hide lines or retitle the window.
        if self.is_terminal:
            self.stdout.write(self._encode(harmless_lines(data.decode(errors="backslashreplace"))))
        else:
            self.stdout.write(data)

    def write_all(self, pieces: Iterable[bytes]) -> None:
        """Write pieces, each of whole lines, as `write` does."""
        for piece in pieces:
            self.write(piece)

    def line(self, text: str = "") -> None:
        """Write one line of output; control characters are escaped for a terminal."""
        self.text(text + "\n")

    def lines(self, texts: Iterable[str]) -> None:
        """Write lines of output as `line` does."""
        for text in texts:
            self.line(text)

    def text(self, text: str) -> None:
        """Write text with its own line ends; to a terminal without control characters."""
        text = masked(text)
        self.stdout.write(self._encode(harmless_lines(text) if self.is_terminal else text))

    def changes(self, text: str) -> bool:
        """Whether stdout is a terminal, to which `text` and `write_file` would not write this text unchanged."""
        return self.is_terminal and safe_lines(text) != text

    def say(self, message: str) -> None:
        """Write a message to stderr, with control characters escaped."""
        # So that the message appears after the output that was written before it.
        self.flush()
        self.stderr.write(self._encode(safe_lines(message) + "\n"))
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
        # A question without a line end, behind everything that was printed before.
        self.flush()
        # On stderr, so that a question does not get into the output of a pipeline.
        self.stderr.write(self._encode(f"{safe_lines(question)} [y/N] "))
        self.stderr.flush()
        # Anything but a clear yes is a no, the end of the input too.
        return self.stdin.readline().strip().lower() in {b"y", b"yes"}

    def flush(self) -> None:
        self.stdout.flush()

    def abandon_output(self) -> None:
        """Point stdout to /dev/null after its reader has closed the pipe, so that Python's last flush does not fail."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stdout.fileno())
        os.close(nowhere)

    def _encode(self, text: str) -> bytes:
        return text.encode(self._encoding, "backslashreplace")


def _nowhere(mode: Literal["rb", "wb"]) -> BinaryIO:
    return open(os.devnull, mode)  # noqa: PTH123 - lives as long as the process


WIDTH = 30
"""Width of a progress bar in characters."""


class Progress:
    """A progress bar where stderr is a terminal; elsewhere nothing. It is removed when the work ends, also by
    Ctrl-C."""

    def __init__(self, streams: Streams, total: int, what: str) -> None:
        """`what`: the name of the `total` items, such as `jobs`, without control characters."""
        # Without a terminal there is no bar, and `at` returns at once.
        self._stderr = streams.stderr if total and streams.stderr.isatty() else None
        self._now, self._began = streams.now, streams.now()
        self._total, self._what = total, what
        self._next = self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._write("")

    def at(self, done: int) -> None:
        """Set the number of finished items. Cheap to call often: the bar moves with each hundredth."""
        if self._stderr is None or done < self._next:
            return
        from cockpit.present.units import grouped  # most commands show no progress

        filled = WIDTH * done // self._total
        bar = "#" * filled + "." * (WIDTH - filled)
        figures = f"{grouped(done)} of {grouped(self._total)} {self._what}"
        self._write(f"[{bar}] {figures}{self._remaining_words(done)}")
        # A hundredth further: more often nothing would move.
        self._next = done + max(1, self._total // 100)

    def _remaining_words(self, done: int) -> str:
        """Return the remaining time at the present rate; nothing before a rate is known."""
        from cockpit.present.units import spoken

        passed = self._now() - self._began
        seconds = passed * (self._total - done) // max(done, 1) // 1000
        # In the first second the rate is not known yet.
        return f", {spoken(seconds)} left" if passed >= 1000 and seconds else ""

    def _write(self, text: str) -> None:
        """Write over the previous text. Blanks remove what is left of it, so that no escape sequence is needed."""
        if self._stderr is not None and (text or self._width):
            self._stderr.write(f"\r{text.ljust(self._width)}{'' if text else chr(13)}".encode())
            self._stderr.flush()
            self._width = len(text)
