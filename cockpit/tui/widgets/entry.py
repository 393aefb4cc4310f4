"""The entry line at the bottom: a filter, a name for one, or a command. It owns the keyboard until it is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from cockpit.tui.widgets.typed import Typed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events

FILTER, COMMAND, NAME, WEIGHTS, SEARCH = "filter", "command", "name", "weights", "search"


class Completion(Suggester):
    """The first of the known lines that goes on as this one begins, else one that `more` makes of it."""

    def __init__(self, names: Sequence[str], more: Callable[[str], Sequence[str]] | None) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._names = names
        self._more = more

    async def get_suggestion(self, value: str) -> str | None:
        begun = value.casefold()
        known = next((name for name in self._names if name.casefold().startswith(begun)), None)
        if known is not None or self._more is None:
            return known
        return next(iter(self._more(value)), None)


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

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            self.post_message(self.Left(self.kind))
        elif event.key == "tab":
            self.action_cursor_right()
            self.action_end()
        else:
            return
        event.prevent_default()
        event.stop()
