"""A log as a terminal would show it, line by line and harmless: what follows a carriage return takes the line's place,
as progress bars mean it, tabs become blanks, and colours (SGR) become roles.
"""

from __future__ import annotations

from cockpit.present.safe import safe
from cockpit.present.sgr import PLAIN, Rendition, pieces, without_colours
from cockpit.present.spans import Line, Span
from cockpit.present.units import size

TAB = 8


def left_out_line(amount: int) -> str:
    """Stands in a log where so many bytes are not kept."""
    return f"… {size(amount)} left out (log_limit) …"


def log_lines(text: str) -> list[str]:
    """Return the lines of a whole text, without colours and without an empty last line."""
    lines = text.removesuffix("\n").split("\n")
    return ["".join(span.text for span in _shown(without_colours(each), PLAIN)[0]) for each in lines] if text else []


class LogLines:
    """The lines of a log that arrives in pieces, which may end anywhere."""

    def __init__(self) -> None:
        from codecs import getincrementaldecoder

        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")
        self._open = ""
        """The last line so far, as it was written."""
        self._rendition = PLAIN
        """How that line begins."""

    def feed(self, data: bytes) -> list[Line]:
        """The lines that this makes. The first one takes the place of the one that was last; the last may go on."""
        *ended, going_on = (self._open + self._decoder.decode(data)).split("\n")
        lines = []
        for each in ended:
            line, self._rendition = _shown(each, self._rendition)
            lines.append(line)
        self._open = self._without_what_is_replaced(going_on)
        return [*lines, _shown(self._open, self._rendition)[0]]

    def _without_what_is_replaced(self, line: str) -> str:
        """A bar that is drawn for days on one line does not grow; its colours go on behind the carriage return."""
        text = line.rstrip("\r")
        replaced, _, shown = text.rpartition("\r")
        if replaced:
            *_, (_, self._rendition) = pieces(replaced, self._rendition)
        return shown + line[len(text) :][:1]


def _shown(line: str, rendition: Rendition) -> tuple[Line, Rendition]:
    """The line, and the rendition that the next one begins with."""
    replaced, _, shown = line.rstrip("\r").rpartition("\r")
    if replaced:
        *_, (_, rendition) = pieces(replaced, rendition)
    spans: list[Span] = []
    column = 0
    for text, drawn in pieces(shown, rendition):
        rendition = drawn
        expanded = (" " * (column % TAB) + text).expandtabs(TAB)[column % TAB :]
        column += len(expanded)
        if expanded:
            spans.append(Span(safe(expanded), drawn.role))
    return tuple(spans), rendition
