"""Every key that does something in the present view, and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.tui.keys import key_name
from cockpit.tui.widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual.app import ComposeResult

    from cockpit.tui.face import HelpEntry
    from cockpit.tui.theme import RoleTheme

MOVING = (
    ("j k ↓ ↑", "one row"),
    ("Ctrl-d Ctrl-u", "half a page"),
    ("g G", "to the first, the last row"),
    ("Space  V", "mark a row, a range"),
    ("Ctrl-p", "find any action by name"),
)


class Help(ModalScreen[None]):
    """Closes on any of the keys that mean going back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,f1,q", "dismiss", show=False)]

    def __init__(self, actions: Sequence[HelpEntry], view: str, theme: Callable[[], RoleTheme]) -> None:
        super().__init__()
        self._actions = actions
        self._view = view
        self._theme = theme

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LineView(self._theme)

    def on_mount(self) -> None:
        self.query_one(LineView).show(list(self._lines()))

    def _lines(self) -> Iterator[Line]:
        yield line(Span(f" Keys of {self._view}", STRONG))
        yield line()
        for action in self._actions:
            if action.keys and self._view in action.views:
                keys = "  ".join(map(key_name, action.keys))
                yield line(Span(f"  {keys:<16}", ACCENT), f"{action.label:<16}", Span(action.help, MUTED))
        yield line()
        for keys, meaning in MOVING:
            yield line(Span(f"  {keys:<16}", ACCENT), meaning)
