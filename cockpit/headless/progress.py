"""Shows the progress of a long command as a bar on stderr that overwrites itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from cockpit.present.units import grouped, spoken

if TYPE_CHECKING:
    from types import TracebackType

    from cockpit.headless.streams import Streams

WIDTH = 30


class Progress:
    """A progress bar where stderr is a terminal; elsewhere nothing. It is removed when the work ends, also by
    Ctrl-C."""

    def __init__(self, streams: Streams, total: int, what: str) -> None:
        """`what`: of what there are `total`, such as `jobs`; harmless text."""
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
        filled = WIDTH * done // self._total
        bar = "#" * filled + "." * (WIDTH - filled)
        figures = f"{grouped(done)} of {grouped(self._total)} {self._what}"
        self._write(f"[{bar}] {figures}{self._remaining_words(done)}")
        self._next = done + max(1, self._total // 100)

    def _remaining_words(self, done: int) -> str:
        """Return the remaining time at the present rate; nothing before a rate is known."""
        passed = self._now() - self._began
        seconds = passed * (self._total - done) // max(done, 1) // 1000
        return f", {spoken(seconds)} left" if passed >= 1000 and seconds else ""

    def _write(self, text: str) -> None:
        """Write over the previous text, with blanks instead of escape sequences."""
        if self._stderr is not None and (text or self._width):
            self._stderr.write(f"\r{text.ljust(self._width)}{'' if text else chr(13)}".encode())
            self._stderr.flush()
            self._width = len(text)
