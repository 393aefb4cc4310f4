"""The widget of one field of the form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Label

from cockpit.present.form.fields import title
from cockpit.present.safe import safe
from cockpit.tui.widgets.entry import SafeInput

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Paste


class Field(SafeInput):
    """The input of a field. A whole job file that is pasted into it is passed on to the form instead."""

    class Pasted(Message):
        """The message that a whole job was pasted; `what` says in words which kind of file it is."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text, self.what = text, what

    def _on_paste(self, event: Paste) -> None:
        from cockpit.formats.foreign.converting import form_name

        if what := form_name(event.text):
            event.stop()
            event.prevent_default()
            self.post_message(self.Pasted(event.text, what))


class FieldRow(Vertical):
    """A field's name, its input, and below it the error in its text."""

    def __init__(self, path: str, text: str, lead: str = "") -> None:
        """Make the row; `lead` is the text above it."""
        super().__init__()
        self.path = path
        self._lead = lead
        self._text = text

    def compose(self) -> ComposeResult:
        if self._lead:
            yield Label(self._lead, classes="lead", markup=False)
        with Horizontal():
            yield Label(title(self.path), classes="title", markup=False)
            yield Field(self._text)
        yield Label("", classes="wrong", markup=False)

    @property
    def typed(self) -> SafeInput:
        return self.query_one(SafeInput)

    def blame(self, error: str) -> None:
        """Show this error below the field; empty: none."""
        label = self.query_one(".wrong", Label)
        label.update(safe(error))
        label.display = bool(error)
