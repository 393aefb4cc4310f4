"""Input lines: the entry line at the bottom, for a filter, a name, a search, weights or a command, which has the focus
while it is open; and the line of a form's field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.suggester import Suggester
from textual.widgets import Input, Label

from cockpit.present.form.fields import shown_text, title
from cockpit.present.safe import harmless, safe
from cockpit.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.events import Blur, Paste

    from cockpit.present.form.groups import FieldGroup
    from cockpit.present.spans import Line
    from cockpit.tui.theme import RoleTheme


FILTER, COMMAND, NAME, WEIGHTS, SEARCH, PLACE = "filter", "command", "name", "weights", "search", "place"
CHOOSABLE = "▾"


class SafeInput(Input):
    """An input line whose text never holds control characters that a terminal would obey.

    Its cursor does not blink, so that nothing is written to the terminal while nothing changes.
    """

    def __init__(self, value: str = "", **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(value, compact=True, **options)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Remove control characters from a value, such as a paste or a node's name: they would be invisible in it."""
        return value if harmless(value) == value else "".join(char for char in value if harmless(char) == char)


class Candidate(NamedTuple):
    """Something that may complete the typed text."""

    line: str
    """The whole text with it."""
    word: str
    """What the list shows, without control characters."""
    about: str = ""
    refusal: str = ""
    """Why it cannot be used now; empty: it can."""


class Suggestions(NamedTuple):
    """What may complete a text, the likeliest first."""

    candidates: Sequence[Candidate]
    wrong: str = ""
    """The sentence about a word that completes to nothing; empty: none is wrong."""


class Completion(Suggester):
    """The completions of the entry line; Textual shows the first one behind the cursor."""

    def __init__(self, offer: Callable[[str], Suggestions]) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._offer = offer
        self._last: tuple[str, Suggestions] | None = None

    async def get_suggestion(self, value: str) -> str | None:
        lines = (each.line for each in self.offer(value).candidates)
        return next((each for each in lines if each.casefold().startswith(value.casefold())), None)

    def offer(self, value: str) -> Suggestions:
        """Return what completes this text. It is kept for the list and the suggestion, which both ask."""
        if self._last is None or self._last[0] != value:
            self._last = value, self._offer(value)
        return self._last[1]


def offer_of(names: Sequence[str]) -> Callable[[str], Suggestions]:
    """Return the function that offers those of the names that begin with the text."""

    def offer(text: str) -> Suggestions:
        return Suggestions(
            [Candidate(name, safe(name)) for name in names if name.casefold().startswith(text.casefold())]
        )

    return offer


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
        self._candidates: Sequence[Candidate] = ()
        """The completions that Tab cycles through, until the user types something else."""
        self._place: int | None = None
        """The index of the present one; None: the text is the user's own."""

    def ask(self, kind: str, value: str, hint: str, offer: Callable[[str], Suggestions] | None = None) -> None:
        """Open the entry with `value`; Tab completes the text by what `offer` returns for it."""
        self.kind = kind
        self.suggester = Completion(offer) if offer is not None else None
        self._candidates, self._place = (), None
        self.placeholder = safe(hint)
        # The text that is there at first is no typing: it would be taken for a filter that the user changes.
        with self.prevent(Input.Changed):
            self.value = value
        self.select_on_focus = kind != COMMAND  # words that are there already are a beginning
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)
        self.action_end()

    def offered(self) -> tuple[Suggestions, int | None]:
        """Return what completes the text, and the index of the completion that Tab has put there; None: none."""
        completion = self.suggester
        if not isinstance(completion, Completion):
            return Suggestions(()), None
        # While Tab cycles, the list stays: a candidate would only find itself.
        if self._place is not None and self._candidates[self._place].line == self.value:
            return Suggestions(self._candidates), self._place
        return completion.offer(self.value), None

    def take(self, place: int) -> None:
        """Replace the text by the offered completion at this place, unless nothing is offered by now."""
        # Together: the place is one in the list that was offered, and a click may come behind a change of the text.
        candidates = self.offered()[0].candidates
        self._candidates, self._place = candidates, place % len(candidates) if candidates else None
        if self._place is not None:
            self.value = candidates[self._place].line
        self.action_end()

    def _complete(self, step: int) -> None:
        """Replace the typed text by the first completion; each further Tab takes the next one, around the end."""
        offer, place = self.offered()
        if place is None:
            # A name that was typed completely is the first candidate: Tab goes on to the second.
            is_first = [each.line for each in offer.candidates[:1]] == [self.value]
            place = (0 if is_first else -1) if step > 0 else 0
        self.take(place + step)

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
    """The input of a field. A whole job file that is pasted into it is passed on to the form instead.

    Secrets in its text are masked until it has the focus, and in pictures of the screen always; its value has them.
    """

    is_pictured = reactive(default=False)
    """Whether a picture of the screen is taken."""

    def __init__(self, path: str, text: str) -> None:
        # First: the text is drawn when it is set.
        self._path = path
        super().__init__(text)

    @property
    def has_secret(self) -> bool:
        """Whether a part of its text is masked where it is shown without the focus."""
        return shown_text(self._path, self.value) != self.value

    @property
    def _value(self) -> Text:
        if self.has_focus and not self.is_pictured:
            return super()._value
        return Text(shown_text(self._path, self.value), no_wrap=True, overflow="ignore", end="")

    def _on_blur(self, event: Blur) -> None:
        super()._on_blur(event)
        # The masked text is shorter: scrolled as the other one it might show nothing.
        if self.has_secret:
            self.scroll_to(x=0, animate=False, immediate=True)

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
            yield Field(self.path, self._text)
            yield Label("", classes="choices", markup=False)
        yield Label("", classes="wrong", markup=False)

    @property
    def typed(self) -> SafeInput:
        return self.query_one(SafeInput)

    def show_choices(self, *, exist: bool) -> None:
        """Mark the field as one whose values can be chosen from a list."""
        self.query_one(".choices", Label).update(CHOOSABLE if exist else "")

    def blame(self, error: str) -> None:
        """Show this error below the field; empty: none."""
        label = self.query_one(".wrong", Label)
        label.update(safe(error))
        label.display = bool(error)
        self.set_class(bool(error), "faulty")


class GroupRow(Lines, can_focus=True):
    """The heading of a group of fields; it takes the focus while the fields are hidden."""

    def __init__(self, group: FieldGroup, theme: Callable[[], RoleTheme]) -> None:
        super().__init__(theme, ground="background")
        self.group = group

    def show_heading(self, heading: Line, *, is_folded: bool) -> None:
        """Show this text; `is_folded`: the fields are hidden."""
        self.can_focus = is_folded
        self.show([heading])

    def on_focus(self) -> None:
        self.ground = "cursor"
        self.refresh()

    def on_blur(self) -> None:
        self.ground = "background"
        self.refresh()
