"""The way to one engine. Every method blocks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cockpit.backends.local.start import LOOK_SECONDS, connect, start
from cockpit.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.backends.local.channel import Channel
    from cockpit.config.places import EnginePaths

RESTART_SECONDS = 5.0
STOPPED = "The engine was stopped; `cockpit engine start` starts it, and so does any change."


def reach_back(ways: Sequence[EngineDialer]) -> Channel:
    """Connect by the first way that reaches an engine again; an engine that is being restarted is waited for. Raises
    `Unreachable`."""
    deadline = time.monotonic() + RESTART_SECONDS
    while True:
        for way in ways:
            try:
                return way.reach_again()
            except Unreachable as error:
                last = error
        if time.monotonic() > deadline:
            raise last
        time.sleep(LOOK_SECONDS)


class EngineDialer:
    """Connects to the engine at `places`: the user's own, which is started if needed, or the machine-wide one."""

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
        """Connect again after a lost connection. An engine that was stopped in order is not started again.

        It removes its socket then; one that was killed leaves it, and is started anew. A socket that only comes while
        we look is another engine's.
        """
        left = self._places.socket.exists()
        channel = connect(self._places, system=self._system)
        if channel is not None:
            return channel
        if not self._system and left and self._places.socket.exists():
            return start(self._places)
        raise Unreachable(STOPPED)
