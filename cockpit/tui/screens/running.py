"""The dialog of a job that has started: the fields that can still be changed, and why the others cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label

from cockpit.errors import CockpitError, RequestRefused
from cockpit.present.form.fields import title
from cockpit.present.requests import refusal_text
from cockpit.present.safe import safe, safe_lines
from cockpit.tui.screens.dialog import Dialog
from cockpit.tui.widgets.entry import SafeInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from textual.app import ComposeResult

    from cockpit.present.form.running import Changes, RunningField
    from cockpit.tui.cockpit import Cockpit

NO_CHANGE = "Nothing is changed yet."
KEYS = "^s saves   ↓ ↑ go to the next or previous field   Esc leaves"


class RunningScreen(Dialog[None]):
    """The dialog; it closes when the changes are made, or the user leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", show=False, priority=True),
        Binding("escape", "dismiss", show=False),
        Binding("enter,down", "app.focus_next", show=False, priority=True),
        Binding("up", "app.focus_previous", show=False, priority=True),
    ]

    app: Cockpit

    def __init__(
        self,
        heading: str,
        fields: Sequence[RunningField],
        read: Callable[[Mapping[str, str]], Changes],
        save: Callable[[Changes], Awaitable[None]],
    ) -> None:
        """Make the dialog. `read` returns what the texts change, by path; `save` asks the cluster for it."""
        super().__init__()
        self._heading, self._fields, self._read, self._save = heading, fields, read, save
        self._texts = {each.path: each.text for each in fields}

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(safe(self._heading), id="heading", markup=False)
            for each in self._fields:
                yield RunningRow(each)
            yield Label("", id="said", markup=False)
            yield Label(KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        for each in self.query(SafeInput):
            each.focus()
            break

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._texts[event.input.query_ancestor(RunningRow).field.path] = event.value
        self._say("")
        errors = self._read(self._texts).errors
        for row in self.query(RunningRow):
            row.blame(errors.get(row.field.path, ""))

    async def action_save(self) -> None:
        """Make the changes and close the dialog; with errors, go to the first field that has one."""
        changes = self._read(self._texts)
        if changes.errors:
            wrong = next(row for row in self.query(RunningRow) if row.field.path in changes.errors)
            wrong.query_one(SafeInput).focus()
        elif changes.limit is None and changes.spec is None:
            self._say(NO_CHANGE)
        else:
            try:
                await self._save(changes)
            except RequestRefused as no:
                # The dialog stays open with all that was typed.
                context = self.app.state.context()
                self._say(refusal_text(no.refusal, context.now, context.zone))
            except CockpitError as error:
                self._say(str(error))
            else:
                self.dismiss()

    def _say(self, text: str) -> None:
        said = self.query_one("#said", Label)
        said.update(safe_lines(text))
        said.display = bool(text)


class RunningRow(Vertical):
    """A field with its name, and below it what may be written, the error, or why it cannot be changed."""

    def __init__(self, field: RunningField) -> None:
        super().__init__()
        self.field = field

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(title(self.field.path), classes="title", markup=False)
            if self.field.why_not:
                yield Label(safe(self.field.text), classes="fixed", markup=False)
            else:
                yield SafeInput(self.field.text)
        yield Label(safe(self.field.why_not or self.field.about), classes="note", markup=False)

    def blame(self, error: str) -> None:
        """Show this error below the field; empty: what may be written."""
        if not self.field.why_not:
            note = self.query_one(".note", Label)
            note.update(safe(error or self.field.about))
            note.set_class(bool(error), "wrong")
