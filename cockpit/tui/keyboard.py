"""Handles keys one after the other, however fast they arrive.

Textual hands a key to the widget that has the focus when the key arrives, while the effect of the key before it may
come later. When `/state:queued` arrives in one piece over a slow line, only `/` would reach the list, and `q` would
quit the cockpit. Here a key waits until the previous one has had its effect:

1. `KeyQueue.take` handles a key, or stores it while another one is under way.
2. Behind each key a `KeyTaken` message follows it through the widgets, twice (`ROUNDS`).
3. When the message has arrived at the app for the last time, the next stored key is handled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from textual.errors import NoWidget
from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import App
    from textual.events import Event, Key, MouseEvent
    from textual.screen import Screen

ROUNDS = 2
"""The number of times that a `KeyTaken` message follows a key through the widgets: in the first round the key takes
effect, in the second the messages that widgets then send each other are handled."""
ASKS = "asks"
"""Name of the attribute of screens that ask a question, which keys typed before the screen opened must not answer."""
LOST_SECONDS = 0.5
"""Longest wait of the next key, as a key may remove the widget that would report its end."""


class KeyTaken(Message):
    """A message that is sent after a key to the widget with the focus and bubbles up to the app behind it."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds


class KeyQueue:
    """Hands a key to the app only after the previous one has had its effect, such as a change of the focus."""

    def __init__(self, app: App[Any], handle: Callable[[Event], Awaitable[None]]) -> None:
        """Make the queue; `handle` is Textual's own handling of an event."""
        self._app = app
        self._handle = handle
        self._waiting: deque[Key] = deque()
        self._came_at: float | None = None
        """When the present key came, by the event loop's clock; None: no key is being handled."""
        self._screen_of_key: Screen[Any] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether every key has had its effect."""
        now = asyncio.get_running_loop().time()
        return self._came_at is None or now - self._came_at >= LOST_SECONDS

    async def take(self, key: Key) -> None:
        """Handle this key, or store it while another one is under way."""
        if self.is_idle:
            await self._handle_key(key)
        else:
            self._waiting.append(key)

    async def _handle_key(self, key: Key) -> None:
        # Before anything is awaited: a key that arrives meanwhile has to see that this one is under way.
        self._came_at = asyncio.get_running_loop().time()
        self._screen_of_key = self._app.screen
        await self._handle(key)
        self._follow_key(ROUNDS)

    def _follow_key(self, rounds: int) -> None:
        # A widget handles its messages in order, so this one is handled after the key; bubbling up it then waits in
        # each parent's queue, behind what the key made these do.
        (self._app.focused or self._app.screen).post_message(KeyTaken(rounds))

    async def key_taken(self, message: KeyTaken) -> None:
        """Start the next round, or after the last one the next key: the message has come back to the app."""
        message.stop()
        for _ in range(2):  # let the task begin that an action may have started
            await asyncio.sleep(0)
        # Not at once: behind the callbacks that the key has put into the queue of the app.
        if message.rounds > 1:
            self._app.call_later(self._follow_key, message.rounds - 1)
        else:
            self._app.call_later(self._take_next)

    async def _take_next(self) -> None:
        self._came_at = None
        if getattr(self._app.screen, ASKS, False) and self._app.screen is not self._screen_of_key:
            self._waiting.clear()  # keys typed before the question was visible must not answer it
        if self._waiting:
            await self._handle_key(self._waiting.popleft())


def is_on_removed_widget(app: App[Any], event: MouseEvent) -> bool:
    """Return whether the user clicked something that has been removed since it was drawn, at which Textual fails."""
    if event.is_forwarded or app.mouse_captured is not None:
        return False
    try:
        widget, _ = app.get_widget_at(event.x, event.y)
    except NoWidget:
        return False
    return not widget.is_attached
