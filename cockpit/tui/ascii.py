"""Everything that is drawn, by whatever widget, as ASCII: for terminals that know nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.filter import LineFilter

from cockpit.present.ascii import ascii_text

if TYPE_CHECKING:
    from textual.color import Color


class AsciiFilter(LineFilter):
    """Stands in Textual's row of filters, behind every widget's drawing."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """The same cells in signs that every terminal has."""
        return [Segment(ascii_text(text), style, control) for text, style, control in segments]
