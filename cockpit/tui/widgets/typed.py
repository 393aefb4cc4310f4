"""A line to type in that holds nothing a terminal would obey."""

from __future__ import annotations

from typing import Any

from textual.widgets import Input

from cockpit.present.safe import safe


class Typed(Input):
    """Nothing blinks in it, and nothing is written while nothing changes."""

    def __init__(self, value: str = "", **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(value, compact=True, **options)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """What a terminal would obey, from a paste or a node's name, is not shown, so it is not there."""
        return value if safe(value) == value else "".join(char for char in value if safe(char) == char)
