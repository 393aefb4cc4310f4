"""How the application writes to its terminal, also when that has gone."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from io import TextIOWrapper

    from textual.app import App
    from textual.driver import Driver

_AT_WORK: set[LastingDriver] = set()


def give_back() -> None:
    """The terminal, where an application has ended without doing so: an exit that a signal asks for may come while it
    leaves. Its thread that reads the keys would keep the process, too."""
    for driver in tuple(_AT_WORK):
        driver.stop_application_mode()
        driver.close()


def lasting(driver: type[Driver]) -> type[Driver]:
    """What takes the place of the driver that Textual would choose."""
    return LastingDriver if driver is LinuxDriver else driver


class LastingDriver(LinuxDriver):
    """Textual's own, but that what is written to a terminal that has gone is lost, and that it does without its thread
    that writes. That ends with the first error, or is not begun anew behind a shell; then its queue fills, and the
    application would wait for ever until there is room in it."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if self._file is not None:
            self._file = cast("TextIOWrapper", _Lossy(self._file))

    def start_application_mode(self) -> None:
        _AT_WORK.add(self)
        super().start_application_mode()  # type: ignore[no-untyped-call] # of Textual

    def stop_application_mode(self) -> None:
        super().stop_application_mode()
        _AT_WORK.discard(self)

    def write(self, data: str) -> None:
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(data)
        elif self._file is not None:
            self._file.write(data)
            self._file.flush()


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
