"""Measure how long a job's iterations take, from lines that it prints while it runs (EL-13):

this iteration hardware time is 2201.521 and e2e time is 3317.794921875 ms.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from cockpit.engine import faults
from cockpit.model.asking import LogStream
from cockpit.model.attempt import Slow
from cockpit.model.events import PerformanceFell
from cockpit.model.ids import Millis, ReplicaId
from cockpit.runtime.faultpatrol import BY
from cockpit.runtime.logs import log_path, skip_left_out

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.runtime.host import Host

_NUMBER: Final = rb"(\d{1,15}(?:\.\d{1,20})?)"
_LINE: Final = re.compile(rb"this iteration hardware time is " + _NUMBER + rb" and e2e time is " + _NUMBER + rb" ms")
LOOK_MS: Final = 1000
"""Interval between two readings of the logs."""
PIECE: Final = 1 << 20
"""Most bytes that are read of a log at once; the rest is read the next time."""
_LONGEST: Final = 4096
"""Most bytes that are kept of an unfinished line."""


class Iterations:
    """One log, of which each call reads the part that was added since the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._unread = b""

    def read_on(self) -> Iterator[tuple[float, float]]:
        """Yield hardware and end-to-end time in milliseconds of each iteration in the next piece of the log. Blocks."""
        try:
            with self._path.open("rb") as file:
                # What was dropped from the log is skipped, and not read as zeros.
                self._at = file.seek(skip_left_out(file.fileno(), self._at))
                data = file.read(PIECE)
        except OSError:  # nothing has been printed yet, or it has been forgotten
            return
        self._at += len(data)
        *lines, rest = (self._unread + data).split(b"\n")
        # A line without end is cut at its beginning: the figures are at the end of a line.
        self._unread = rest[-_LONGEST:]
        for match in (each for line in lines for each in _LINE.finditer(line)):
            hardware, e2e = float(match[1]), float(match[2])
            if e2e > 0:
                yield hardware, e2e


class Watch:
    """Watches the logs of all jobs with alerts. `alert` is called for each slow job, after the event is journalled."""

    def __init__(self, host: Host, logs: Path, alert: Callable[[PerformanceFell], Awaitable[None]]) -> None:
        self._host = host
        self._logs = logs
        self._alert = alert
        self._read: dict[tuple[ReplicaId, LogStream], Iterations] = {}

    async def read_periodically(self) -> None:
        """Read the logs at each interval, until cancelled."""
        while True:
            await self._host.clock.wait_until(Millis(self._host.clock.now() + LOOK_MS))
            await self.look()

    async def look(self) -> None:
        """Read each of the logs once."""
        requested = dict(self._watched_replicas())
        # Logs of replicas that have ended are forgotten.
        self._read = {(replica, stream): each for (replica, stream), each in self._read.items() if replica in requested}
        for replica, threshold in requested.items():
            slow = await asyncio.to_thread(self._slow, replica, threshold)
            if slow is not None:
                await self._record_and_alert(replica, slow)

    def _watched_replicas(self) -> Iterator[tuple[ReplicaId, float]]:
        """Yield each watched replica with its threshold."""
        for job in faults.watched_jobs(self._host.machine):
            performance = job.spec.resume.performance if job.spec.resume is not None else None
            # Each attempt alerts once.
            if performance is not None and job.attempt is not None and job.attempt.slow is None:
                yield from ((each, performance.threshold) for each in job.attempt.replica_ids(job.id))

    def _slow(self, replica: ReplicaId, threshold: float) -> Slow | None:
        for stream in LogStream:
            log = self._read.setdefault((replica, stream), Iterations(log_path(self._logs, replica, stream)))
            for hardware, e2e in log.read_on():
                if hardware / e2e > threshold:
                    return Slow(rank=replica.rank, hardware_ms=hardware, e2e_ms=e2e)
        return None

    async def _record_and_alert(self, replica: ReplicaId, slow: Slow) -> None:
        events: list[EventBody] = []

        def decide(machine: Machine, now: Millis) -> list[EventBody]:
            # Replaced as a whole, since the decision is made again if the journal refuses the event.
            events[:] = faults.report_slow(machine, replica, slow, now)
            return events

        await self._host.act_until_stored(decide, BY)
        for fell in events:
            if isinstance(fell, PerformanceFell):
                await self._alert(fell)
