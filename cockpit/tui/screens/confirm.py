"""A dialog that asks a question, with No as the default."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Label

from cockpit.present.safe import safe, safe_lines
from cockpit.tui.screens.dialog import Dialog

if TYPE_CHECKING:
    from textual.app import ComposeResult


class Confirm(Dialog[bool]):
    """The dialog; its result is True only where the user chose Yes."""

    asks: ClassVar[bool] = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,q", "answer(False)", show=False),
        Binding("left,right,h,l,tab", "app.focus_next", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,space", "scroll(10)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
    ]

    def __init__(self, question: str, consequence: str, text: str = "") -> None:
        """Make the dialog; `text` is a long text below the question, which scrolls."""
        super().__init__()
        self._question = question
        self._consequence = consequence
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(safe(self._question), id="question", markup=False)
            yield Label(safe(self._consequence), id="consequence", markup=False)
            if self._text:
                yield VerticalScroll(Label(safe_lines(self._text), markup=False), id="text", can_focus=False)
            with Horizontal():
                yield Button("No", id="no", compact=True)
                yield Button("Yes", id="yes", compact=True)
                yield Label("n  y  ← →", id="how", markup=False)

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_scroll(self, lines: int) -> None:
        for each in self.query("#text"):
            each.scroll_relative(y=lines, animate=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
