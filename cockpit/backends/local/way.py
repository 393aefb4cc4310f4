"""The way to one engine. Every method blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.local.start import connect, start
from cockpit.errors import Unreachable

if TYPE_CHECKING:
    from cockpit.backends.local.channel import Channel
    from cockpit.config.places import EnginePaths


class Way:
    """To the engine at `places`. `owner`: whose it is; `starts`: whether this user may start it."""

    def __init__(self, places: EnginePaths, *, owner: int, starts: bool) -> None:
        self._places = places
        self._owner = owner
        self._starts = starts

    def reach(self) -> Channel:
        """A connection; where no engine runs, one is started as by any command. Raises `Unreachable`."""
        channel = connect(self._places, owner=self._owner)
        if channel is not None:
            return channel
        if self._starts:
            return start(self._places)
        raise Unreachable("The machine-wide engine does not run; root starts it with `cockpit engine start --system`.")

    def reach_again(self) -> Channel:
        """The same for who was connected before: an engine that ended in order stays as it is.

        It removes its socket then; one that was killed leaves it, and is started anew.
        """
        channel = connect(self._places, owner=self._owner)
        if channel is not None:
            return channel
        if self._starts and self._places.socket.exists():
            return start(self._places)
        raise Unreachable("The engine was stopped; `cockpit engine start` starts it, and so does any change.")
