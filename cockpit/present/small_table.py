"""A table of a few rows under their titles, with columns as wide as needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from cockpit.present.spans import MUTED, Line, Span, line
from cockpit.present.width import pad, widest, width

INDENT: Final = "  "


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
