"""How the application writes to its terminal, also when that has gone, and reads what is typed, whatever it is."""

from __future__ import annotations

import select
from codecs import IncrementalDecoder, getincrementaldecoder
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from io import TextIOWrapper

    from textual.app import App
    from textual.driver import Driver


def _lenient_decoder(encoding: str) -> partial[IncrementalDecoder]:
    """What takes the place of the decoder that Textual uses, which raises: terminals that are not set to UTF-8 send
    other bytes, and so does a paste that is cut."""
    return partial(getincrementaldecoder(encoding), errors="replace")


linux_driver.getincrementaldecoder = _lenient_decoder  # type: ignore[attr-defined,assignment]  # Textual keeps it there
_AT_WORK: set[LastingDriver] = set()


def give_back() -> None:
    """The terminal, where an application has ended without doing so: an exit that a signal asks for may come while it
    leaves. Its thread that reads the keys would keep the process, too."""
    for driver in tuple(_AT_WORK):
        driver.stop_application_mode()
        driver.close()


def has_hung_up(fd: int) -> bool:
    """Return whether this terminal has been closed at its other end. A file or a null device never is.

    Where no signal reports a closed window or connection, Textual would read the end of the input for ever.
    """
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))


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

    def _run_input_thread(self) -> None:
        """Read what is typed. An error ends the application as any other defect does: Textual's way shows the values
        of variables and exits with 0."""
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._app.call_later(_raise, error)

    def write(self, data: str) -> None:
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(data)
        elif self._file is not None:
            self._file.write(data)
            self._file.flush()


def _raise(error: Exception) -> None:
    raise error


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
