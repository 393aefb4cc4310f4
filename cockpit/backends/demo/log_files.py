"""Writes the demo's log files when they are read, as far as the job has come by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.demo.printing import complained, printed
from cockpit.model.asking import LogStream
from cockpit.model.ids import ReplicaId
from cockpit.runtime.logs import log_path

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.backends.demo.scripts import Scripts
    from cockpit.engine.ports import Clock
    from cockpit.model.attempt import Replica
    from cockpit.model.job import Job

UNENDING = 1.3
"""A run that only its time limit ends, printed as if it were so many limits long."""


class LogFiles:
    """The log files below `folder`, where the engine looks for them."""

    def __init__(self, folder: Path, scripts: Scripts, clock: Clock) -> None:
        self._folder = folder
        self._scripts = scripts
        self._clock = clock

    def bring_up(self, job: Job) -> None:
        """Write what the replicas of the job's current attempt have printed by now."""
        for replica in job.attempt.replicas if job.attempt is not None else ():
            if replica.started_at is not None:
                self._append(job, replica, LogStream.STDOUT, self._output(job, replica, replica.started_at))
                self._append(job, replica, LogStream.STDERR, self._errors(job, replica))

    def _append(self, job: Job, replica: Replica, stream: LogStream, text: str) -> None:
        """Append only what is missing, so that a reader's position in the file stays valid."""
        assert job.attempt is not None
        path = log_path(self._folder, ReplicaId(job.id, job.attempt.number, replica.rank), stream)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(text.encode()[file.tell() :])

    def _output(self, job: Job, replica: Replica, started_at: int) -> str:
        script = self._scripts.of(job.spec)
        limit_ms = job.spec.time_limit_seconds * 1000
        total_ms = int(UNENDING * limit_ms) if script.runs_ms is None else script.runs_ms
        if not script.exit.ok:
            total_ms = max(total_ms, limit_ms)
        until = replica.ended_at if replica.ended_at is not None else self._clock.now()
        chance = self._scripts.chance("printed", job.spec.name, replica.rank)
        return printed(script.printing, total_ms, until - started_at, chance)

    def _errors(self, job: Job, replica: Replica) -> str:
        if replica.exit is None:
            return ""
        return complained(replica.exit, self._scripts.chance("complained", job.spec.name))
