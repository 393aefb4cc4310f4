"""Dialogs that close themselves and no other screen, and the question among them, with No as the default.

Textual's `dismiss` closes the top screen, whichever that is, each time that it is called. A second click that was
queued behind the first then closed the screen below, and ended the application where that was the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Label

from cockpit.present.safe import safe, safe_lines

if TYPE_CHECKING:
    from textual.app import ComposeResult


Result = TypeVar("Result")


class Closable(Screen[Result]):
    """A screen that may be closed before its widgets are there: by a key or a click right behind the one that opened
    it."""

    async def on_event(self, event: events.Event) -> None:
        """Skip the making of a screen that is closed already: what it makes would find none of its widgets."""
        # All other events are let through, so that a closed screen ends as Textual ends it.
        if is_open(self) or not isinstance(event, events.Compose | events.Mount):
            await super().on_event(event)


class Dialog(Closable[Result], ModalScreen[Result]):
    """The base of every dialog."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this dialog with its result. Does nothing once it is closed."""
        return super().dismiss(result) if _close_above(self) else AwaitComplete()


def is_open(screen: Screen[Any]) -> bool:
    """Return whether the screen is still open, so that its widgets can be drawn.

    An answer for which it has waited may arrive after the user has left it, when its widgets are gone already.
    """
    return screen.app.is_running and screen in screen.app.screen_stack


def _close_above(screen: Screen[Any]) -> bool:
    """Close the screens above this one, without a result, so that it is on top; return whether it is still open."""
    if not is_open(screen):
        return False
    # Textual's `dismiss` closes the screen on top, whichever that is.
    while screen.app.screen is not screen:
        screen.app.screen.dismiss(None)
    return True


class Confirm(Dialog[bool]):
    """The dialog; its result is True only where the user chose Yes."""

    asks: ClassVar[bool] = True  # read by `keyboard.py`: keys that were typed before it opened do not answer it

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
        # Enter is pressed without reading: it must not destroy anything.
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_scroll(self, lines: int) -> None:
        for each in self.query("#text"):
            each.scroll_relative(y=lines, animate=False)

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
