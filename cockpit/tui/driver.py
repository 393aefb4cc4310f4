"""How the application writes to its terminal, also when that has gone."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from io import TextIOWrapper

    from textual.app import App


class LastingDriver(LinuxDriver):
    """Textual's own, but that what is written to a terminal that has gone is lost. Its thread that writes ends with the
    first error, or is not begun anew behind a shell; then its queue fills, and the application would wait for ever
    until there is room in it."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if self._file is not None:
            self._file = cast("TextIOWrapper", _Lossy(self._file))

    def write(self, data: str) -> None:
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(data)


class _Lossy:
    """What Textual uses of a file, without an error."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.fileno, self.isatty = file.fileno, file.isatty

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()
