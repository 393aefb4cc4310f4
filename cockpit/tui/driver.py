"""The terminal driver: it survives a terminal that has gone, and input that is not UTF-8."""

from __future__ import annotations

import select
from codecs import IncrementalDecoder, getincrementaldecoder
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import TextIOWrapper

    from textual.app import App
    from textual.driver import Driver


def _lenient_decoder(encoding: str) -> partial[IncrementalDecoder]:
    """Return a decoder that replaces invalid bytes, where Textual's raises an error.

    Terminals that are not set to UTF-8 send such bytes, and so does a paste that is cut.
    """
    return partial(getincrementaldecoder(encoding), errors="replace")


linux_driver.getincrementaldecoder = _lenient_decoder  # type: ignore[attr-defined,assignment]  # Textual keeps it there


class EscapeKeepingParser(XTermParser):
    """Textual's parser of what a terminal sends, made to keep an Escape with another key right behind it.

    Over a slow line both come in one piece, and a terminal sends the same for a key with Alt. Textual drops the Escape
    unless the key is a letter or a digit: Esc and then `:` would be `:` alone, also for a shell in the terminal pane.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
        for event in super()._sequence_to_key_events(sequence, alt=alt):
            if alt and not event.key.startswith("alt+"):
                yield Key("escape", "\x1b")
            yield event


linux_driver.XTermParser = EscapeKeepingParser  # type: ignore[attr-defined]  # as above
# Drivers that have changed the modes of the terminal and not yet restored them.
_ACTIVE: set[RobustDriver] = set()


def restore_terminals() -> None:
    """Restore the terminal where an application has ended without doing so, as when a signal came while it quit.

    Its thread that reads the keys would keep the process alive, too.
    """
    # A copy: stopping a driver takes it out of the set.
    for driver in tuple(_ACTIVE):
        driver.stop_application_mode()
        driver.close()


def has_hung_up(fd: int) -> bool:
    """Return whether this terminal has been closed at its other end. A file or a null device never is.

    Where no signal reports a closed window or connection, Textual would read the end of the input for ever.
    """
    poll = select.poll()
    # No event is asked for: poll reports a hang-up or an error in any case, and input that waits is none.
    poll.register(fd, 0)
    return bool(poll.poll(0))


def robust_driver(driver: type[Driver]) -> type[Driver]:
    """Return the driver class to use in place of the one that Textual would choose."""
    return RobustDriver if driver is LinuxDriver else driver


class RobustDriver(LinuxDriver):
    """Textual's driver, made to drop what is written to a terminal that has gone, and to write without a writer thread.

    That thread ends with the first error, and Textual starts none where the terminal has gone while a shell had it
    (`tcsetattr` fails, and `start_application_mode` returns). Its queue then fills, and the application would wait for
    ever for space in it.
    """

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        # Wrapped here, below Textual's writer thread, so that this thread meets no error either and does not end.
        if self._file is not None:
            self._file = cast("TextIOWrapper", _Lossy(self._file))

    def start_application_mode(self) -> None:
        # Before the modes change: an exit in the middle of it has to restore them, too.
        _ACTIVE.add(self)
        super().start_application_mode()  # type: ignore[no-untyped-call] # of Textual

    def stop_application_mode(self) -> None:
        super().stop_application_mode()
        _ACTIVE.discard(self)

    def _run_input_thread(self) -> None:
        """Read what is typed. An error ends the application as any other defect does.

        Textual would show the values of variables, which may be secret, and exit with 0.
        """
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - whatever it is
            # Raised in the event loop, where the application's own handler of defects meets it.
            self._app.call_later(_raise, error)

    def write(self, data: str) -> None:
        # Textual asserts that there is a writer thread; here what is written goes to the file, or is lost with the
        # terminal.
        if self._writer_thread is not None and self._writer_thread.is_alive():
            super().write(data)
        elif self._file is not None:
            self._file.write(data)
            self._file.flush()


def _raise(error: Exception) -> None:
    raise error


class _Lossy:
    """A file that ignores write errors, with the methods that Textual uses."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.fileno, self.isatty = file.fileno, file.isatty

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()
