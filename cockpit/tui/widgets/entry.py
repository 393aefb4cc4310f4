"""Input lines: the entry line at the bottom, for a filter, a name, a search, weights or a command, which has the focus
while it is open; and the line of a form's field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label

from cockpit.present.form.fields import title
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.events import Paste


FILTER, COMMAND, NAME, WEIGHTS, SEARCH, PLACE = "filter", "command", "name", "weights", "search", "place"


class SafeInput(Input):
    """An input line whose text never holds control characters that a terminal would obey.

    Its cursor does not blink, so that nothing is written to the terminal while nothing changes.
    """

    def __init__(self, value: str = "", **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(value, compact=True, **options)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Remove control characters from a value, such as a paste or a node's name: they would be invisible in it."""
        return value if safe(value) == value else "".join(char for char in value if safe(char) == char)


class Completion(Suggester):
    """The completions of the entry line; Textual shows the first one behind the cursor."""

    def __init__(self, names: Sequence[str], more: Callable[[str], Sequence[str]] | None) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._names = names
        self._further_words = more

    async def get_suggestion(self, value: str) -> str | None:
        return next(self.candidates(value), None)

    def candidates(self, value: str) -> Iterator[str]:
        """Return all completions of the typed text: the matching names, else the result of `more`."""
        begun = value.casefold()
        known = [name for name in self._names if name.casefold().startswith(begun)]
        if known or self._further_words is None:
            yield from known
        else:
            yield from self._further_words(value)


class Entry(SafeInput):
    """The entry line, hidden until `ask` opens it."""

    class Escaped(Message):
        """The message that the user pressed Escape; what was typed into the entry of this `kind` is to be undone."""

        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind = kind

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.kind = FILTER
        self.display = False
        self._candidates: Sequence[str] = ()
        """The completions that Tab cycles through, until the user types something else."""

    def ask(
        self,
        kind: str,
        value: str,
        hint: str,
        names: Sequence[str] = (),
        more: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        """Open the entry with `value`; Tab completes `names`, or what `more` returns for the typed text."""
        self.kind = kind
        self.suggester = Completion(names, more) if names else None
        self._candidates = ()
        self.placeholder = hint
        # The text that is there at first is no typing: it would be taken for a filter that the user changes.
        with self.prevent(Input.Changed):
            self.value = value
        self.select_on_focus = kind != COMMAND  # words that are there already are a beginning
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)
        self.action_end()

    def _complete(self, step: int) -> None:
        """Replace the typed text by the first completion; each further Tab takes the next one, around the end."""
        # The candidates of what the user typed stay while Tab cycles: completing a candidate would find only itself.
        if self.value in self._candidates:
            place = self._candidates.index(self.value) + step
        else:
            completion = self.suggester
            known = completion.candidates(self.value) if isinstance(completion, Completion) else ()
            self._candidates = list(dict.fromkeys(known))
            # A name that was typed completely is the first candidate: Tab goes on to the second.
            is_first = self._candidates[:1] == [self.value]
            place = int(is_first) if step > 0 else -1
        if self._candidates:
            self.value = self._candidates[place % len(self._candidates)]
        self.action_end()

    def on_key(self, event: events.Key) -> None:
        # Tab moves the focus in Textual, and Escape is the action `back` of the whole application.
        if event.key == "escape":
            self.post_message(self.Escaped(self.kind))
        elif event.key in {"tab", "shift+tab"}:
            self._complete(1 if event.key == "tab" else -1)
        else:
            return
        event.prevent_default()
        event.stop()


class Field(SafeInput):
    """The input of a field. A whole job file that is pasted into it is passed on to the form instead."""

    class Pasted(Message):
        """The message that a whole job was pasted; `what` says in words which kind of file it is."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text, self.what = text, what

    def _on_paste(self, event: Paste) -> None:
        from cockpit.formats.foreign.converting import form_name

        # A short text or a single value is pasted as usual.
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
