"""Lines of text in colour roles, such as `running` or `muted`. A theme maps each role to a colour."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from cockpit.present.safe import safe
from cockpit.present.width import clusters, cut, pad, widest, width

TEXT = "text"
MUTED = "muted"
STRONG = "strong"
ACCENT = "accent"
INDENT: Final = "  "
"""Indentation of the lines below the first one of a panel, and of the lines of a page."""
_PIECE: Final = re.compile(r" +|[^ ]+")
_GAP: Final = re.compile(r"(?:^ *|  +)(?=[^ ])")
"""The text that marks the beginning of a cell in a line."""


class Span(NamedTuple):
    """A piece of text in one role, without control characters."""

    text: str
    role: str = TEXT


Line = tuple[Span, ...]


def line(*parts: str | Span) -> Line:
    """Make a line of spans; plain strings get the role `text`."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def key_hint(key: str, words: str, lead: str = "") -> Line:
    """Return a key and what it does, such as `Enter its jobs`; `lead` is the blank before the key."""
    return Span(f"{lead}{key}", ACCENT), Span(f" {words}", MUTED)


def labelled(label: str, words: str) -> Line:
    """Return a panel's line: a muted label of ten columns, and its words made harmless."""
    return line(Span(f"{INDENT}{label:<10}", MUTED), safe(words))


def line_width(spans: Line) -> int:
    """Return the line's width in terminal columns."""
    return sum(width(span.text) for span in spans)


def plain(spans: Line) -> str:
    """Return the line's text without roles."""
    return "".join(span.text for span in spans).rstrip()


def spread(left: Line, right: Line, columns: int) -> Line:
    """Return a line of this width with `left` and `right` at its edges; without `right` where both do not fit."""
    # The left side is what the line is about; the right side is left out as a whole, not cut.
    blanks = columns - line_width(left) - line_width(right)
    return (*left, Span(" " * blanks), *right) if right and blanks > 0 else left


def fitted(spans: Line, columns: int, *, right: bool = False) -> Line:
    """Return the line cut with `…` or padded to exactly this width; `right` aligns it at the right."""
    used = line_width(spans)
    if used > columns:
        return _cut(spans, columns)
    blanks = Span(" " * (columns - used))
    if not blanks.text:
        return spans
    return (blanks, *spans) if right else (*spans, blanks)


def shifted(spans: Line, columns: int) -> Line:
    """Return the line without its first columns; half of a wide character at the edge is a blank."""
    kept: list[Span] = []
    for text, role in spans:
        if columns <= 0:
            kept.append(Span(text, role))
        elif (size := width(text)) <= columns:
            columns -= size
        else:
            rest = text if columns else ""
            for cluster, each in clusters(text):
                if columns <= 0:
                    break
                columns -= each
                rest = rest[len(cluster) :]
            kept.append(Span(" " * -columns + rest, role))
            columns = 0
    return tuple(kept)


def wrapped(spans: Line, columns: int) -> list[Line]:
    """Wrap the line at any character into lines of at most this width."""
    # A wide character needs two columns: with one no progress would be possible.
    if columns < 2 or line_width(spans) <= columns:
        return [spans]
    lines: list[list[Span]] = [[]]
    left = columns
    for text, role in spans:
        text_so_far = ""
        for cluster, size in clusters(text):
            if size > left:
                lines[-1].append(Span(text_so_far, role))
                lines.append([])
                text_so_far, left = "", columns
            text_so_far, left = text_so_far + cluster, left - size
        lines[-1].append(Span(text_so_far, role))
    return [tuple(each) for each in lines]


def hung(spans: Line, columns: int) -> list[Line]:
    """Wrap the line at words; continuation lines are indented to where the line's last cell begins."""
    text = "".join(span.text for span in spans)
    if line_width(spans) <= columns:
        return [spans]
    begins = [width(text[: gap.end()]) for gap in _GAP.finditer(text)]
    # An indent beyond half the width would leave too little room for the text.
    indent = max((each for each in begins if each <= columns // 2), default=0)
    rows: list[list[Span]] = [[]]
    used = 0
    words = list(_words(spans))
    if words[-1][0].text.isspace():  # nothing follows these blanks that a row of its own could show
        words.pop()
    for word in words:
        size = line_width(word)
        # A word longer than a line is put into a line of its own and cut there by `wrapped`.
        if used + size > columns and used > indent:
            rows.append([Span(" " * indent)])
            used = indent
            # Blanks at a break would indent the next line by accident.
            if word[0].text.isspace():
                continue
        rows[-1] += word
        used += size
    return [each for row in rows for each in wrapped(tuple(row), columns)]


def hung_within(lines: Iterable[Line], columns: int, rows: int) -> list[Line]:
    """Wrap lines at words as far as all of them still fit into this number of rows."""
    unwrapped = list(lines)
    # Every line keeps its first row: rather a cut sentence than a missing line.
    spare, shown = rows - len(unwrapped), list[Line]()
    for each in unwrapped:
        whole = hung(each, columns)
        fits = len(whole) - 1 <= spare
        spare -= len(whole) - 1 if fits else 0
        shown += whole if fits else [each]
    return shown


def _words(spans: Line) -> Iterator[Line]:
    """Yield the line's words and the blanks between them; a word may have parts in several roles."""
    pieces = (Span(text, span.role) for span in spans for text in _PIECE.findall(span.text))
    return (tuple(each) for _, each in groupby(pieces, lambda piece: piece.text.isspace()))


def worded(text: str, columns: int) -> Iterator[Line]:
    """Wrap the text at words into lines of at most this width."""
    row = ""
    for word in text.split(" "):
        longer = f"{row} {word}" if row else word
        if row and width(longer) > columns:
            yield from wrapped(line(row), columns)
            longer = word
        row = longer
    yield from wrapped(line(row), columns)


def marked(spans: Line, text: str, role: str) -> Line:
    """Return the line with this role wherever a span contains the text, ignoring case."""
    return tuple(piece for span in spans for piece in _marked(span, text.casefold(), role))


def _marked(span: Span, wanted: str, role: str) -> Iterator[Span]:
    folded = span.text.casefold()
    if not wanted or len(folded) != len(span.text):  # a letter folded to two: places would differ
        yield span
        return
    position = 0
    while (start := folded.find(wanted, position)) >= 0:
        yield from (Span(span.text[position:start], span.role), Span(span.text[start : start + len(wanted)], role))
        position = start + len(wanted)
    yield Span(span.text[position:], span.role)


def _cut(spans: Line, columns: int) -> Line:
    """Return the line cut or padded to exactly `columns` terminal columns."""
    kept: list[Span] = []
    left = columns
    for span in spans:
        size = width(span.text)
        # A span that fills the line exactly is cut too if others follow, so that the `…` shows that there is more.
        if size > left or (size == left and span is not spans[-1]):
            text = cut(span.text + "…" if size <= left else span.text, left)
            kept.append(Span(text, span.role))
            left -= width(text)
            break
        kept.append(span)
        left -= size
    return (*kept, Span(" " * left)) if left else tuple(kept)


def small_table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[Line]:
    """Yield the table's lines from harmless cells. The last column is emphasized and not padded; `right`: numbers of
    the columns that are aligned at the right."""
    sizes = [widest([title, *(row[number] for row in rows)]) for number, title in enumerate(titles)]
    last = len(titles) - 1

    def cell(number: int, text: str) -> str:
        if number in right:
            return " " * (sizes[number] - width(text)) + text
        return text if number == last else pad(text, sizes[number])

    def cells(texts: Sequence[str]) -> list[str]:
        return [cell(number, text) + (INDENT if number < last else "") for number, text in enumerate(texts)]

    yield line(Span(INDENT + "".join(cells(titles)), MUTED))
    for row in rows:
        *before, ending = cells(row)
        yield line(Span(INDENT + "".join(before), MUTED), ending)
