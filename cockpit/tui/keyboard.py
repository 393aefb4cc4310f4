"""Keys are done one after the other, however fast they come.

Textual hands a key to whatever has the focus when the key arrives, while what the key before it does happens later. So
of a `/state:queued` that comes in one piece over a slow line only `/` would be meant for the list, and `q` would leave
the cockpit. Here a key waits until the one before it has had its effect.

A click goes to what the user sees at its place. Where that has been removed since it was drawn, Textual fails; here
such a click does nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from textual import on
from textual.errors import NoWidget
from textual.events import Event, Key, MouseEvent
from textual.message import Message

from cockpit.tui.painting import TightPainting

if TYPE_CHECKING:
    from textual.screen import Screen

ROUNDS = 2
"""Along the way of a key: it acts at the end of the first; what widgets tell each other then is over with the next."""
ASKS = "asks"
"""A screen with this attribute asks a question: keys that were typed before it came are no answer to it."""
LOST_SECONDS = 0.5
"""The widget that a key went to may have gone with it; the next key does not wait for longer."""


class KeyTaken(Message):
    """Follows a key on its way, from the widget with the focus up to the app."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds


class KeysInTurn(TightPainting):
    """An app in which a key sees the focus that the key before it has set."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(**options)
        self._keys_waiting: deque[Key] = deque()
        self._key_came_at: float | None = None
        """None: no key is under way."""
        self._screen_of_key: Screen[Any] | None = None

    @property
    def keys_are_done(self) -> bool:
        """Every key that has come has had its effect."""
        return not self._key_is_under_way()

    async def on_event(self, event: Event) -> None:
        if isinstance(event, MouseEvent) and self._is_on_removed_widget(event):
            return
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._key_is_under_way():
            self._keys_waiting.append(event)
        else:
            await self._take_key(event)

    def _is_on_removed_widget(self, event: MouseEvent) -> bool:
        if event.is_forwarded or self.mouse_captured is not None:
            return False
        try:
            widget, _ = self.get_widget_at(event.x, event.y)
        except NoWidget:
            return False
        return not widget.is_attached

    def _key_is_under_way(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self._key_came_at is not None and now - self._key_came_at < LOST_SECONDS

    async def _take_key(self, event: Key) -> None:
        self._key_came_at = asyncio.get_running_loop().time()
        self._screen_of_key = self.screen
        await super().on_event(event)
        self._follow_key(ROUNDS)

    def _follow_key(self, rounds: int) -> None:
        (self.focused or self.screen).post_message(KeyTaken(rounds))

    @on(KeyTaken)
    async def _key_taken(self, message: KeyTaken) -> None:
        message.stop()
        for _ in range(2):  # a deed is a task of its own: it begins
            await asyncio.sleep(0)
        if message.rounds > 1:
            self.call_later(self._follow_key, message.rounds - 1)
        else:
            self.call_later(self._take_next_key)

    async def _take_next_key(self) -> None:
        self._key_came_at = None
        if getattr(self.screen, ASKS, False) and self.screen is not self._screen_of_key:
            self._keys_waiting.clear()  # what was typed before a question was seen is no answer to it
        if self._keys_waiting:
            await self._take_key(self._keys_waiting.popleft())
