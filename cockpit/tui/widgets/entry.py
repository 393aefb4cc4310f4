"""The entry line at the bottom, for a filter, a name, a search, weights or a command. It has the focus while open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from cockpit.present.safe import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual import events

FILTER, COMMAND, NAME, WEIGHTS, SEARCH = "filter", "command", "name", "weights", "search"


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

    class Left(Message):
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
        with self.prevent(Input.Changed):
            self.value = value
        self.select_on_focus = kind != COMMAND  # words that are there already are a beginning
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)
        self.action_end()

    def put_away(self) -> None:
        """Hide the entry line."""
        self.display = False

    def _complete(self, step: int) -> None:
        """Replace the typed text by the first completion; each further Tab takes the next one, around the end."""
        if self.value in self._candidates:
            place = self._candidates.index(self.value) + step
        else:
            completion = self.suggester
            known = completion.candidates(self.value) if isinstance(completion, Completion) else ()
            self._candidates = list(dict.fromkeys(known))
            is_first = self._candidates[:1] == [self.value]
            place = int(is_first) if step > 0 else -1
        if self._candidates:
            self.value = self._candidates[place % len(self._candidates)]
        self.action_end()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            self.post_message(self.Left(self.kind))
        elif event.key in {"tab", "shift+tab"}:
            self._complete(1 if event.key == "tab" else -1)
        else:
            return
        event.prevent_default()
        event.stop()
