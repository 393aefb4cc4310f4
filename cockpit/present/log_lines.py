"""A log as a terminal would show it, line by line and harmless: text after a carriage return replaces the line, as
progress bars need it, tabs become blanks, and colours (SGR) become roles."""

from __future__ import annotations

from cockpit.present.safe import safe
from cockpit.present.sgr import PLAIN, Rendition, pieces, without_colours
from cockpit.present.spans import Line, Span
from cockpit.present.units import size

TAB = 8


def left_out_line(amount: int) -> str:
    """Return the line that replaces `amount` bytes that the log's limit left out."""
    return f"… {size(amount)} left out (log_limit) …"


def log_lines(text: str) -> list[str]:
    """Return the lines of a whole text, without colours and without an empty last line."""
    lines = text.removesuffix("\n").split("\n")
    return (
        ["".join(span.text for span in _styled_line(without_colours(each), PLAIN)[0]) for each in lines] if text else []
    )


class LogLines:
    """The lines of a log that arrives in pieces, which may end anywhere."""

    def __init__(self) -> None:
        from codecs import getincrementaldecoder

        self._decoder = getincrementaldecoder("utf-8")("backslashreplace")
        self._open = ""
        """The last, incomplete line as it was written."""
        self._rendition = PLAIN
        """Rendition at the beginning of that line."""

    def feed(self, data: bytes) -> list[Line]:
        """Return the lines after more data. The first one replaces the last line so far; the last one may still
        grow."""
        *ended, going_on = (self._open + self._decoder.decode(data)).split("\n")
        lines = []
        for each in ended:
            line, self._rendition = _styled_line(each, self._rendition)
            lines.append(line)
        self._open = self._without_what_is_replaced(going_on)
        return [*lines, _styled_line(self._open, self._rendition)[0]]

    def _without_what_is_replaced(self, line: str) -> str:
        """Return the incomplete line without what a carriage return replaced, so that a progress bar does not grow for
        days; colours before the carriage return still apply."""
        text = line.rstrip("\r")
        replaced, _, shown = text.rpartition("\r")
        if replaced:
            *_, (_, self._rendition) = pieces(replaced, self._rendition)
        # One carriage return at the end stays: the text that follows it replaces the line.
        return shown + line[len(text) :][:1]


def _styled_line(line: str, rendition: Rendition) -> tuple[Line, Rendition]:
    """Return the line, and the rendition at the beginning of the next line."""
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
