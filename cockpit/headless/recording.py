"""Records what a shell shows as asciicast v2, which asciinema and other players play.

Only output is recorded: what the user types is in the file where the shell echoes it, and a password, which it does not
echo, is not. Secrets are masked: a word is written when it is complete, and a line that may have a secret when it ends
or the cursor goes elsewhere, so that both may be later in the file than on the screen.

Format: https://docs.asciinema.org/manual/asciicast/v2/
"""

from __future__ import annotations

import json
import os
import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Final, Protocol

from cockpit.errors import CockpitError
from cockpit.model.access_level import ACCESS_VARIABLE
from cockpit.model.masked_logs import MaskedPieces
from cockpit.present.safe import safe
from cockpit.runtime.clock import running_nanos, wall_nanos

if TYPE_CHECKING:
    from collections.abc import Iterable

PRIVATE = 0o600
NANOS = 1_000_000_000
_CURSOR_GOES: Final = re.compile(rb"\x1b\[[\d;]*[HfJ]")
"""What programs that draw the whole screen write in place of line ends: the cursor goes to a place, or the screen is
cleared (ECMA-48 8.3.21, 8.3.39, 8.3.63)."""


class ScreenWatcher(Protocol):
    """What is told of everything that a shell shows."""

    def output(self, data: bytes) -> None:
        """The shell wrote this."""

    def resized(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""


class Recording:
    """An open file to which a shell's output is written as it arrives. It implements `ScreenWatcher`."""

    def __init__(self, path: str, columns: int, rows: int, *, title: str, term: str, known: Iterable[str] = ()) -> None:
        """Create the file, which only the user may read. Raises `CockpitError`, also where it exists.

        `known`: values of the job's secret variables, which are masked wherever they stand.
        """
        # It would be on the server, and a session that has no shell there must not write files for one to run.
        if os.environ.get(ACCESS_VARIABLE):
            raise CockpitError("A session of cockpit serve records nothing. Record on your machine: asciinema rec")
        self.path = path
        self.failure = ""
        """Why nothing more is recorded, as a sentence; empty: all is."""
        self._pieces = MaskedPieces(known)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._start = running_nanos()
        self._size = (columns, rows)
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
        except FileExistsError:
            raise CockpitError(f"{safe(path)} exists and is not overwritten: name another file.") from None
        except (OSError, ValueError) as error:
            raise CockpitError(f"Cannot record to {safe(path)}: {_reason(error)}.") from None
        header = {"version": 2, "width": columns, "height": rows, "timestamp": wall_nanos() // NANOS}
        self._write(header | {"title": title, "env": {"TERM": term}})

    def output(self, data: bytes) -> None:
        at, shown = 0, list[bytes]()
        for sequence in _CURSOR_GOES.finditer(data):
            shown += [self._pieces.feed(data[at : sequence.end()]), self._pieces.finish()]
            at = sequence.end()
        self._shown(b"".join([*shown, self._pieces.feed(data[at:])]))

    def _shown(self, data: bytes) -> None:
        # A character may be cut between two pieces: its first bytes wait for the next piece.
        if text := self._decoder.decode(data):
            self._event("o", text)

    def resized(self, columns: int, rows: int) -> None:
        if (columns, rows) != self._size:
            self._size = (columns, rows)
            self._event("r", f"{columns}x{rows}")

    def close(self) -> None:
        """Close the file. Does nothing the second time."""
        if self._fd >= 0:
            self._shown(self._pieces.finish())
            if rest := self._decoder.decode(b"", final=True):
                self._event("o", rest)
            os.close(self._fd)
            self._fd = -1

    def _event(self, code: str, text: str) -> None:
        self._write([round((running_nanos() - self._start) / NANOS, 6), code, text])

    def _write(self, value: object) -> None:
        """Write one line. A full disk ends the recording and not the shell."""
        if self._fd < 0 or self.failure:
            return
        line = memoryview(json.dumps(value, ensure_ascii=False).encode() + b"\n")
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError as error:
            self.failure = f"The recording {safe(self.path)} ends early: {_reason(error)}."


class PipedRecording:
    """Records the output of a command without a terminal, which ends its lines without a carriage return."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def output(self, data: bytes) -> None:
        self._recording.output(data.replace(b"\n", b"\r\n"))


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is no name of a file"
