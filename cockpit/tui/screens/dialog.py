"""Dialogs that close themselves and no other screen.

Textual's `dismiss` closes the top screen, whichever that is, each time that it is called. A second click that was
queued behind the first then closed the screen below, and ended the application where that was the last one.
"""

from __future__ import annotations

from typing import Any, TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette
from textual.screen import ModalScreen, Screen
from textual.worker import Worker

Result = TypeVar("Result")


class Closable(Screen[Result]):
    """A screen that may be closed before its widgets are there: by a key or a click right behind the one that opened
    it."""

    async def on_event(self, event: events.Event) -> None:
        """Skip the making of a screen that is closed already: what it makes would find none of its widgets."""
        if is_open(self) or not isinstance(event, events.Compose | events.Mount):
            await super().on_event(event)


class Dialog(Closable[Result], ModalScreen[Result]):
    """The base of every dialog."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this dialog with its result. Does nothing once it is closed."""
        return super().dismiss(result) if _close_above(self) else AwaitComplete()


class Palette(CommandPalette):
    """Textual's command palette."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the palette. Does nothing once it is closed."""
        return super().dismiss(result) if _close_above(self) else AwaitComplete()

    def _gather_commands(self, search_value: str) -> Worker[None] | None:  # type: ignore[override]  # Textual's result is unused
        """Look for commands, unless the palette is closed: what was typed into it last may arrive after that."""
        return super()._gather_commands(search_value) if is_open(self) else None


def is_open(screen: Screen[Any]) -> bool:
    """Return whether the screen is still open, so that its widgets can be drawn.

    An answer for which it has waited may arrive after the user has left it, when its widgets are gone already.
    """
    return screen.app.is_running and screen in screen.app.screen_stack


def _close_above(screen: Screen[Any]) -> bool:
    """Close the screens above this one, without a result, so that it is on top; return whether it is still open."""
    if not is_open(screen):
        return False
    while screen.app.screen is not screen:
        screen.app.screen.dismiss(None)
    return True
