"""How far a long command is, for the person who watches: a bar on stderr that writes over itself."""

from __future__ import annotations

from cockpit.headless.streams import Streams

WIDTH = 40


class Progress:
    """A bar where stderr is a terminal; elsewhere nothing at all."""

    def __init__(self, streams: Streams, total: int, what: str) -> None:
        """`what`: of what there are `total`, such as `jobs`; harmless text."""
        self._stderr = streams.stderr if total and streams.stderr.isatty() else None
        self._total = total
        self._what = what
        self._next = 0

    def at(self, done: int) -> None:
        """So many are done. Cheap to call often: the bar moves with each hundredth."""
        if self._stderr is None or done < self._next:
            return
        filled = WIDTH * done // self._total
        bar = "#" * filled + "." * (WIDTH - filled)
        self._stderr.write(f"\r[{bar}] {done} of {self._total} {self._what}".encode())
        self._stderr.flush()
        self._next = done + max(1, self._total // 100)

    def end(self) -> None:
        """Clear the line."""
        if self._stderr is not None:
            width = WIDTH + 2 * len(str(self._total)) + len(self._what) + 8
            self._stderr.write(b"\r" + b" " * width + b"\r")
            self._stderr.flush()
