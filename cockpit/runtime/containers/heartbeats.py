"""Listens for the workers of elastic jobs: whoever has answered once is expected to go on answering.

A worker answers by touching a file, see `cockpit.elastic`. Nothing runs while no elastic job does.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cockpit.launch.world import PULSE_PATH
from cockpit.runtime.clock import NANOS_PER_MILLI, wall_nanos
from cockpit.runtime.containers.world import PULSE

if TYPE_CHECKING:
    from cockpit.engine.effects import StartReplica
    from cockpit.engine.ports import Observer
    from cockpit.model.ids import ReplicaId
    from cockpit.runtime.containers.shim.attempt import Attempt
    from cockpit.runtime.tasks import Tasks

LISTEN_SECONDS = 1.0
_NAME = PULSE_PATH.rpartition("/")[2]


class Heard(NamedTuple):
    """A worker, and for how long it may be silent."""

    attempt: Attempt
    wait_ms: int


class Heartbeats:
    """Of one executor. `every`: seconds between two looks."""

    def __init__(self, tasks: Tasks, observer: Observer, every: float = LISTEN_SECONDS) -> None:
        self._tasks, self._observer, self._every = tasks, observer, every
        self._heard: dict[ReplicaId, Heard] = {}
        self._listening: asyncio.Task[None] | None = None

    def follow(self, effect: StartReplica, attempt: Attempt) -> None:
        """Its container is being made, or was found again. Launchers, and jobs that are not elastic, answer nobody."""
        spec = effect.spec
        if spec.elastic is None or not spec.suspends or effect.replica.rank < spec.first_worker:
            return
        self._heard[effect.replica] = Heard(attempt, 1000 * spec.elastic.max_wait_seconds)
        if self._listening is None:
            self._listening = self._tasks.start(self._listen(), "pulses of workers")

    def leave(self, replica: ReplicaId) -> None:
        """It has ended."""
        self._heard.pop(replica, None)

    def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()

    async def _listen(self) -> None:
        while self._heard:
            await asyncio.sleep(self._every)
            self.listen()
        self._listening = None

    def listen(self) -> None:
        """Tell of everybody who has been silent for too long."""
        now = wall_nanos()
        for replica, heard in list(self._heard.items()):
            silent_ms = silence_ms(heard.attempt, now)
            begun = heard.attempt.read("started.json") is not None
            if silent_ms is None and not begun:
                self._observer.worker_silent(replica, None)
            elif silent_ms is not None and silent_ms >= heard.wait_ms:
                self._observer.worker_silent(replica, silent_ms)


def silence_ms(attempt: Attempt, now: int) -> int | None:
    """Since the worker answered last; None: it never has. `now`: nanoseconds, as the machine tells the time of day."""
    try:
        return max(0, (now - Path(attempt.file(PULSE, _NAME)).stat().st_mtime_ns) // NANOS_PER_MILLI)
    except OSError:
        return None
