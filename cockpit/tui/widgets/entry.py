"""The entry line at the bottom: a filter, a name for one, or a command. It owns the keyboard until it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from cockpit.tui.widgets.typed import Typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual import events

FILTER, COMMAND, NAME, WEIGHTS, SEARCH = "filter", "command", "name", "weights", "search"


class Completion(Suggester):
    """Suggests the first of the lines that the typed beginning may become."""

    def __init__(self, names: Sequence[str], more: Callable[[str], Sequence[str]] | None) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._names = names
        self._more = more

    async def get_suggestion(self, value: str) -> str | None:
        return next(self.candidates(value), None)

    def candidates(self, value: str) -> Iterator[str]:
        """All lines that a beginning may become: those that are known, else what `more` makes of it."""
        begun = value.casefold()
        known = [name for name in self._names if name.casefold().startswith(begun)]
        if known or self._more is None:
            yield from known
        else:
            yield from self._more(value)


class Entry(Typed):
    """Hidden until it is asked for."""

    class Left(Message):
        """Escape: `kind` and nothing of it is to be kept."""

        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind = kind

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.kind = FILTER
        self.display = False
        self._candidates: Sequence[str] = ()
        """What Tab goes through; the entry holds one of them until something else is typed."""

    def ask(
        self,
        kind: str,
        value: str,
        hint: str,
        names: Sequence[str] = (),
        more: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        """Show it with `value`; `names` are what Tab completes, `more` what else a line may become."""
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
        """Hide it; what was typed stays where it was put."""
        self.display = False

    def _complete(self, step: int) -> None:
        """Put the first candidate in the place of what was typed; each further Tab puts the next one, round the end."""
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
