"""The way to one engine. Every method blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.local.start import connect, start
from cockpit.errors import Unreachable

if TYPE_CHECKING:
    from cockpit.backends.local.channel import Channel
    from cockpit.config.places import EnginePaths


class Way:
    """To the engine at `places`: this user's own, which is started where none runs, or the machine-wide one."""

    def __init__(self, places: EnginePaths, *, system: bool = False) -> None:
        self._places = places
        self._system = system

    def reach(self) -> Channel:
        """A connection; where no engine runs, one is started as by any command. Raises `Unreachable`."""
        channel = connect(self._places, system=self._system)
        if channel is not None:
            return channel
        if not self._system:
            return start(self._places)
        raise Unreachable("The machine-wide engine does not run; root starts it with `cockpit engine start --system`.")

    def reach_again(self) -> Channel:
        """The same for who was connected before: an engine that ended in order stays as it is.

        It removes its socket then; one that was killed leaves it, and is started anew.
        """
        channel = connect(self._places, system=self._system)
        if channel is not None:
            return channel
        if not self._system and self._places.socket.exists():
            return start(self._places)
        raise Unreachable("The engine was stopped; `cockpit engine start` starts it, and so does any change.")
