"""An input line whose text never holds control characters that a terminal would obey."""

from __future__ import annotations

from typing import Any

from textual.widgets import Input

from cockpit.present.safe import safe


class Typed(Input):
    """The input; its cursor does not blink, so that nothing is written to the terminal while nothing changes."""

    def __init__(self, value: str = "", **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(value, compact=True, **options)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Remove control characters from a value, such as a paste or a node's name: they would be invisible in it."""
        return value if safe(value) == value else "".join(char for char in value if safe(char) == char)
