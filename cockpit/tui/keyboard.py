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
"""How often a `KeyTaken` message follows a key through the widgets: in the first round the key takes effect, in the
second the messages that widgets then send each other are handled."""
ASKS = "asks"
"""Name of the attribute of screens that ask a question, which keys typed before the screen opened must not answer."""
LOST_SECONDS = 0.5
"""Longest wait of the next key, as a key may remove the widget that would report its end."""


class KeyTaken(Message):
    """A message that is sent after a key to the widget with the focus and bubbles up to the app behind it."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds


class KeysInTurn(TightPainting):
    """An app that handles a key only after the previous one has had its effect, such as a change of the focus."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - Textual's own
        super().__init__(**options)
        self._keys_waiting: deque[Key] = deque()
        self._key_came_at: float | None = None
        """When the present key came, by the event loop's clock; None: no key is being handled."""
        self._screen_of_key: Screen[Any] | None = None

    @property
    def keys_are_done(self) -> bool:
        """Whether every key has had its effect."""
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
        for _ in range(2):  # let the task begin that an action may have started
            await asyncio.sleep(0)
        if message.rounds > 1:
            self.call_later(self._follow_key, message.rounds - 1)
        else:
            self.call_later(self._take_next_key)

    async def _take_next_key(self) -> None:
        self._key_came_at = None
        if getattr(self.screen, ASKS, False) and self.screen is not self._screen_of_key:
            self._keys_waiting.clear()  # keys typed before the question was visible must not answer it
        if self._keys_waiting:
            await self._take_key(self._keys_waiting.popleft())
