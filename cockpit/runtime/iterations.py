"""Measure how long a job's iterations take, from lines that it prints while it runs (EL-13):

this iteration hardware time is 2201.521 and e2e time is 3317.794921875 ms.

1. A job with alerts (`resume.performance`) is alerted of slow iterations.
2. The lines of an elastic job whose script does not report its steps (`cockpit.elastic.step`) are counted in place of
   these, and their times give its speed.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from cockpit.engine import faults
from cockpit.engine.steps import first_worker
from cockpit.engine.workers import live_workers
from cockpit.model.asking import WRITTEN_STREAMS, LogStream
from cockpit.model.attempt import Slow
from cockpit.model.ids import Millis, ReplicaId
from cockpit.model.job import JobState
from cockpit.model.steps import SizeSpeed, StepReport
from cockpit.runtime.faultpatrol import BY
from cockpit.runtime.logs import log_path, skip_left_out

if TYPE_CHECKING:
    from collections.abc import Iterator
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


class _Wanted(NamedTuple):
    """What the log of a replica is read for."""

    threshold: float | None = None
    """The share of the hardware time above which an iteration is slow; None: it is not asked for."""
    workers: int | None = None
    """The number of workers with which it trains, to count its steps; 0: it had others in what is read first; None: its
    steps are not asked for."""


class Watch:
    """Watches the logs of jobs with a threshold, and of elastic jobs that report no steps."""

    def __init__(self, host: Host, logs: Path) -> None:
        self._host = host
        self._logs = logs
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
        for replica, wanted in requested.items():
            # All that was read is looked at, as it is not read a second time.
            found = await asyncio.to_thread(self._new_iterations, replica)
            if wanted.workers is not None and found:
                self._count(replica, wanted.workers, found)
            slow = self._slow(replica, wanted.threshold, found) if wanted.threshold is not None else None
            if slow is not None:
                await self._record(replica, slow)

    def _watched_replicas(self) -> Iterator[tuple[ReplicaId, _Wanted]]:
        """Yield each watched replica with what its log is read for."""
        wanted: dict[ReplicaId, _Wanted] = {}
        for job in faults.watched_jobs(self._host.machine):
            performance = job.spec.resume.performance if job.spec.resume is not None else None
            # Each attempt alerts once.
            if performance is not None and job.attempt is not None and job.attempt.slow is None:
                wanted |= {each: _Wanted(performance.threshold) for each in job.attempt.replica_ids(job.id)}
        for job in self._host.machine.elastic_jobs:
            first = first_worker(job)
            if first is not None and job.state is JobState.RUNNING and self._is_counted(first):
                # An engine that has just started reads lines that may be of an earlier ring.
                begun = self._host.steps.of(first) is not None or job.attempt is None or job.attempt.ring is None
                wanted[first] = wanted.get(first, _Wanted())._replace(workers=len(live_workers(job)) if begun else 0)
        yield from wanted.items()

    def _is_counted(self, replica: ReplicaId) -> bool:
        """Return whether the worker's script reports no steps, so that its lines are counted."""
        report = self._host.steps.of(replica)
        return report is None or report.counted

    def _new_iterations(self, replica: ReplicaId) -> list[tuple[float, float]]:
        """Return the iterations in what was added to the logs of a replica. Blocks."""
        logs = [
            self._read.setdefault((replica, stream), Iterations(log_path(self._logs, replica, stream)))
            for stream in WRITTEN_STREAMS
        ]
        return [each for log in logs for each in log.read_on()]

    def _slow(self, replica: ReplicaId, threshold: float, found: list[tuple[float, float]]) -> Slow | None:
        slow = (Slow(rank=replica.rank, hardware_ms=hardware, e2e_ms=e2e) for hardware, e2e in found)
        return next((each for each in slow if each.part > threshold), None)

    def _count(self, replica: ReplicaId, workers: int, found: list[tuple[float, float]]) -> None:
        """Add iterations to the steps of a worker, and to the speed with this number of workers, if it is known."""
        known = self._host.steps.of(replica) or StepReport(step=0, began=0, counted=True)
        speeds = {each.workers: each for each in known.speeds}
        if workers:
            before = speeds.get(workers, SizeSpeed(workers, 0, 0.0))
            took = sum(e2e for _, e2e in found)
            speeds[workers] = SizeSpeed(workers, before.steps + len(found), before.ms + took)
        steps = known.step + len(found)
        self._host.worker_stepped(replica, replace(known, step=steps, speeds=tuple(speeds.values())))

    async def _record(self, replica: ReplicaId, slow: Slow) -> None:
        def decide(machine: Machine, now: Millis) -> list[EventBody]:
            return faults.report_slow(machine, replica, slow, now)

        await self._host.act_until_stored(decide, BY)
