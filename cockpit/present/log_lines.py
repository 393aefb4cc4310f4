"""A log as a terminal would show it, line by line and harmless: what follows a carriage return takes the line's place,
as progress bars mean it, and tabs become blanks.
"""

from __future__ import annotations

from cockpit.present.safe import safe

TAB = 8


def log_lines(text: str) -> list[str]:
    """Of a whole text, without an empty last line."""
    lines = text.removesuffix("\n").split("\n")
    return [_shown(line) for line in lines] if text else []


class LogLines:
    """Of a log that arrives in pieces, which may end anywhere."""

    def __init__(self) -> None:
        from codecs import getincrementaldecoder

        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")
        self._open = ""

    def feed(self, data: bytes) -> list[str]:
        """The lines that this makes. The first one takes the place of the one that was last; the last may go on."""
        *ended, going_on = (self._open + self._decoder.decode(data)).split("\n")
        self._open = _without_what_is_replaced(going_on)
        return [_shown(line) for line in (*ended, going_on)]


def _shown(line: str) -> str:
    text = line.rstrip("\r").rpartition("\r")[2]
    return safe(text.expandtabs(TAB))


def _without_what_is_replaced(line: str) -> str:
    """A bar that is drawn for days on one line does not grow."""
    text = line.rstrip("\r")
    return text.rpartition("\r")[2] + line[len(text) :][:1]
