"""The user's last act on the cluster, and the way back from it, which a key takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class WayBack(NamedTuple):
    """What undoes an act."""

    offer: str
    """What the key does, in words that follow its name: `releases it`."""
    go: Callable[[], Awaitable[str]]
    """Undoes the act and returns the sentence about what was done; empty: the user decided against it."""


NOTHING_YET = "There is nothing to undo: you have changed nothing since this cockpit was opened."
UNDONE = "The last act is undone already."
UNDER_WAY = "The last act is being undone."


class LastAct:
    """The part of the application that remembers the last act and undoes it.

    One act, and not a history: on a shared cluster the state before earlier acts has been overtaken by others.
    """

    def __init__(self, notify: Callable[[str], None], key: Callable[[], str]) -> None:
        """`notify` shows a toast; `key` returns the name of the key that undoes, empty where it has none."""
        self._notify = notify
        self._key = key
        self._way: WayBack | None = None
        self.why_not = NOTHING_YET
        """Why the last act cannot be undone, as a sentence; empty: it can."""

    def done(self, sentence: str, way: WayBack | str) -> None:
        """Show the sentence about what was done with the key that undoes it, and remember the way back.

        Where `way` is a text there is none, and the text says why.
        """
        self.remember(way)
        offer = f" · {key} {way.offer}" if not isinstance(way, str) and (key := self._key()) else ""
        self._notify(f"{sentence}{offer}")

    def remember(self, way: WayBack | str) -> None:
        """Remember the way back from an act that has been reported, or why there is none."""
        self._way, self.why_not = (None, way) if isinstance(way, str) else (way, "")

    async def undo(self) -> None:
        """Undo the last act. Raises `CockpitError` where the cluster refuses; it can then be tried again."""
        way = self._way
        if way is None:
            self._notify(self.why_not)
            return
        # Before the first wait: the key may be pressed again meanwhile.
        self._way, self.why_not = None, UNDER_WAY
        sentence = ""
        try:
            sentence = await way.go()
        finally:
            # Another act may have been done meanwhile, which is the last one now.
            if self.why_not == UNDER_WAY:
                self._way, self.why_not = (None, UNDONE) if sentence else (way, "")
        if sentence:
            self._notify(sentence)
