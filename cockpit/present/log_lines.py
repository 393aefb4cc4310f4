"""A log as a terminal would show it, line by line and harmless: text after a carriage return replaces the line, as
progress bars need it, tabs become blanks, and colours ("Select Graphic Rendition", SGR, ECMA-48 8.3.117 and ISO 8613-6)
become roles.

Only SGR is interpreted; every other escape sequence stays in the text, where `safe` makes it visible. Blinking text
does not blink, and hidden text is shown, so that everything in a log can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from cockpit.model.masked_logs import MaskedPieces, masked_line
from cockpit.model.masking import masked
from cockpit.present.safe import harmless, harmless_lines
from cockpit.present.spans import TEXT, Line, Span
from cockpit.present.units import size

TAB = 8


def left_out_line(amount: int, why: str = "log_limit") -> str:
    """Return the line that replaces `amount` bytes of a log. `why`: what left them out, by default the log's limit."""
    return f"… {size(amount)} left out ({why}) …"


def log_lines(text: str) -> list[str]:
    """Return the lines of a whole text, without colours and without an empty last line."""
    lines = masked(text).removesuffix("\n").split("\n")
    return (
        ["".join(span.text for span in _styled_line(without_colours(each), PLAIN)[0]) for each in lines] if text else []
    )


class SafeColours:
    """A decoder for a log that arrives in pieces and goes to a terminal: colours stay, all else that a terminal obeys
    becomes visible, and secrets are masked. `known`: values of the job's own secret variables."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self._pieces = MaskedPieces(known)
        self._rest = b""
        """The incomplete line at the end, of which a sequence or a character may be cut."""

    def feed(self, data: bytes) -> str:
        """Return the text of all complete lines so far."""
        lines, newline, rest = (self._rest + self._pieces.feed(data)).rpartition(b"\n")
        if not newline and len(rest) < MOST_HELD:
            self._rest = rest
            return ""
        self._rest = rest if newline else b""
        return self._shown(lines + newline if newline else rest)

    def finish(self) -> str:
        """Return the rest of the text."""
        rest, self._rest = self._rest + self._pieces.finish(), b""
        return self._shown(rest)

    def _shown(self, data: bytes) -> str:
        if not data.translate(None, _HARMLESS):  # a hundred times as fast, and most logs are so
            return data.decode("ascii")
        text, at, shown = data.decode("utf-8", "backslashreplace"), 0, list[str]()
        for sequence in _SEQUENCE.finditer(text):
            shown += [harmless_lines(text[at : sequence.start()]), sequence[0]]
            at = sequence.end()
        return "".join([*shown, harmless_lines(text[at:])])


_HARMLESS: Final = bytes([*b"\n\t", *range(0x20, 0x7F)])
"""Bytes that a terminal shows as they are."""
MOST_HELD: Final = 1 << 20
"""Longest line, in bytes, that is held back until it is complete."""
LOOK_BACK: Final = 4096
"""Bytes before a line in which the colours that apply to it may have been set."""


def line_of_bytes(data: bytes, before: bytes = b"", known: Sequence[str] = ()) -> Line:
    """Return one line of a log without its secrets; the colours that the bytes before it set apply to it, too. `known`:
    values of the job's own secret variables."""
    data = masked_line(data, before, known)
    rendition = PLAIN
    if b"\x1b[" in before:
        *_, (_, rendition) = pieces(before.decode("latin-1"))
    return _styled_line(data.removesuffix(b"\n").decode("utf-8", "backslashreplace"), rendition)[0]


def _styled_line(line: str, rendition: Rendition) -> tuple[Line, Rendition]:
    """Return the line, and the rendition at the beginning of the next line."""
    replaced, _, shown = line.rstrip("\r").rpartition("\r")
    if replaced:
        *_, (_, rendition) = pieces(replaced, rendition)
    spans: list[Span] = []
    column = 0
    for text, drawn in pieces(shown, rendition):
        rendition = drawn
        # Tab stops count from the begin of the line, while a piece may begin anywhere in it.
        expanded = (" " * (column % TAB) + text).expandtabs(TAB)[column % TAB :]
        column += len(expanded)
        if expanded:
            spans.append(Span(harmless(expanded), drawn.role))
    return tuple(spans), rendition


ROLE: Final = "sgr:"
"""Prefix of a role that stands for colours: `sgr:bold red on #202020`, which a theme reads as a style."""
_SEQUENCE: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_COLOURS: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_SWITCHES: Final = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF: Final = {21: (4,), 22: (1, 2), 23: (3,), 24: (4,), 27: (7,), 29: (9,)}
MOST_LETTERS: Final = 128
"""Longest parameters of one sequence, in characters; the rest is ignored."""


class Rendition(NamedTuple):
    """Attributes and colours in which the following text is drawn. Colours have the names of a style; empty: the
    terminal's own."""

    switches: frozenset[int] = frozenset()
    foreground: str = ""
    background: str = ""

    @property
    def role(self) -> str:
        """Role of a span in this rendition."""
        if self == PLAIN:
            return TEXT
        words = [_SWITCHES[each] for each in sorted(self.switches)]
        words += [self.foreground] if self.foreground else []
        words += [f"on {self.background}"] if self.background else []
        return ROLE + " ".join(words)


PLAIN: Final = Rendition()


def pieces(text: str, rendition: Rendition = PLAIN) -> Iterator[tuple[str, Rendition]]:
    """Yield the text's pieces without SGR sequences, each with its rendition.

    The last piece may be empty: its rendition applies to the text that follows. `rendition` is the rendition before the
    text.
    """
    position = 0
    for sequence in _SEQUENCE.finditer(text):
        if sequence.start() > position:
            yield text[position : sequence.start()], rendition
        rendition = _changed(rendition, sequence[1])
        position = sequence.end()
    yield text[position:], rendition


def without_colours(text: str) -> str:
    """Return the text without its SGR sequences."""
    return _SEQUENCE.sub("", text)


def _changed(rendition: Rendition, parameters: str) -> Rendition:
    # Parameters without end are an attack or garbage; no program writes so many.
    numbers = [number for each in parameters[:MOST_LETTERS].split(";") for number in _numbers(each)]
    while numbers:
        rendition, numbers = _next(rendition, numbers)
    return rendition


def _numbers(parameter: str) -> list[int]:
    """Return the numbers of one parameter. After colons a colour has its parts (`38:2::1:2:3`), and an underline its
    shape."""
    # An empty parameter is 0, as the standard says; a colour has at most 255.
    first, *parts = [min(int(each), 255) if each else 0 for each in parameter.split(":")]
    if first not in {38, 48}:
        return [first]
    # Behind colons a direct colour has the number of a colour space before red, green and blue.
    return [first, parts[0], *parts[2:]] if len(parts) == 5 else [first, *parts]


def _next(now: Rendition, numbers: list[int]) -> tuple[Rendition, list[int]]:
    """Return the rendition after the first of the parameters, and the parameters that remain."""
    code, rest = numbers[0], numbers[1:]
    if code == 0:
        return PLAIN, rest
    if code in _SWITCHES:
        return now._replace(switches=now.switches | {code}), rest
    if code in _OFF:
        return now._replace(switches=now.switches.difference(_OFF[code])), rest
    if code in {38, 48}:
        colour, rest = _extended(rest)
    elif code in {39, 49}:
        colour = ""
    elif 30 <= code <= 37 or 40 <= code <= 47:
        colour = _COLOURS[code % 10]
    elif 90 <= code <= 97 or 100 <= code <= 107:
        colour = f"bright_{_COLOURS[code % 10]}"
    else:
        return now, rest
    # Foreground and background differ by ten: 30–39 and 40–49, 90–97 and 100–107.
    is_background = 40 <= code <= 49 or code >= 100
    return (now._replace(background=colour) if is_background else now._replace(foreground=colour)), rest


def _extended(numbers: list[int]) -> tuple[str, list[int]]:
    """Return the colour and the remaining numbers: `5;N` is one of 256 colours, `2;R;G;B` any colour. Both results are
    empty for other numbers."""
    if len(numbers) >= 2 and numbers[0] == 5:
        # The theme's library calls the 256 colours so (`rich`).
        return f"color({numbers[1]})", numbers[2:]
    if len(numbers) >= 4 and numbers[0] == 2:
        red, green, blue = numbers[1:4]
        return f"#{red:02x}{green:02x}{blue:02x}", numbers[4:]
    return "", []
