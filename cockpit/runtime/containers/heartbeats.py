"""Monitor the heartbeats of elastic jobs' workers, and what they report of their training.

A worker that has sent a heartbeat must continue to send them: it is the modification time of a file that the worker
touches, see `cockpit.elastic`. No task runs while there is no elastic job.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cockpit.launch.world import PULSE_PATH
from cockpit.runtime.clock import NANOS_PER_MILLI, running_nanos, wall_nanos
from cockpit.runtime.containers.step_reports import FOLDER as PULSE
from cockpit.runtime.containers.step_reports import step_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.engine.effects import StartReplica
    from cockpit.engine.ports import Observer
    from cockpit.model.ids import ReplicaId
    from cockpit.model.steps import StepReport
    from cockpit.runtime.containers.shim.attempt import Attempt
    from cockpit.runtime.tasks import Tasks


CHECK_SECONDS = 1.0
"""Interval between two checks, and so the precision with which silence is measured."""
_NAME = PULSE_PATH.rpartition("/")[2]


class Worker(NamedTuple):
    """A monitored worker."""

    attempt: Attempt
    wait_ms: int | None
    """Longest time between two heartbeats; None: it need not send any."""


class _LastBeat(NamedTuple):
    """The last heartbeat of a worker, as a check has seen it."""

    mtime_ns: int | None
    """The time of the heartbeat file, by which a new heartbeat is recognised; None: there was none yet."""
    silent_ms: int
    """How old the heartbeat was when it was first seen."""
    seen_ns: int
    """When it was first seen, by `running_nanos`."""


class Heartbeats:
    """The heartbeats of one executor's workers. `every`: seconds between two checks."""

    def __init__(self, tasks: Tasks, observer: Observer, every: float = CHECK_SECONDS) -> None:
        self._tasks, self._observer, self._every = tasks, observer, every
        self._workers: dict[ReplicaId, Worker] = {}
        self._beats: dict[ReplicaId, _LastBeat] = {}
        self._reports: dict[ReplicaId, StepReport] = {}
        """The last report of each worker that has made one."""
        self._checking: asyncio.Task[None] | None = None

    def follow(self, effect: StartReplica, attempt: Attempt) -> None:
        """Monitor a replica whose container is being made or was adopted, if it is a worker of an elastic job."""
        spec = effect.spec
        # Ranks below the first worker belong to a launcher, which is no worker itself.
        if spec.elastic is None or effect.replica.rank < spec.first_worker:
            return
        wait_ms = 1000 * spec.elastic.max_wait_seconds if spec.suspends else None
        self._workers[effect.replica] = Worker(attempt, wait_ms)
        if self._checking is None:
            self._checking = self._tasks.start(self._check_forever(), "heartbeats of workers")

    def leave(self, replica: ReplicaId) -> None:
        """Stop monitoring a replica, which has ended, after its last report."""
        worker = self._workers.pop(replica, None)
        if worker is not None:
            self._report(replica, worker.attempt)
        self._beats.pop(replica, None)
        self._reports.pop(replica, None)

    def close(self) -> None:
        if self._checking is not None:
            self._checking.cancel()

    async def _check_forever(self) -> None:
        while self._workers:
            await asyncio.sleep(self._every)
            self.check()
        self._checking = None

    def check(self) -> None:
        """Report every worker that has been silent for too long, and every one whose container is still being made.

        A started worker that never sent a heartbeat is not reported: its script may not use `cockpit.elastic`. What
        a worker reports of its training is passed on whenever it has changed.
        """
        for replica, worker in list(self._workers.items()):
            self._report(replica, worker.attempt)
            if worker.wait_ms is None:
                continue
            silent_ms = self._silence_ms(replica, worker.attempt)
            started = worker.attempt.read("started.json") is not None
            if silent_ms is None and not started:
                self._observer.worker_silent(replica, None)
            elif silent_ms is not None and silent_ms >= worker.wait_ms:
                self._observer.worker_silent(replica, silent_ms)

    def _report(self, replica: ReplicaId, attempt: Attempt) -> None:
        report = step_report(attempt)
        if report is not None and report != self._reports.get(replica):
            self._reports[replica] = report
            self._observer.worker_stepped(replica, report)

    def _silence_ms(self, replica: ReplicaId, attempt: Attempt) -> int | None:
        """Return the milliseconds since the worker's last heartbeat, or None without one.

        Only the time while the machine runs counts: a wall clock that is set, or a machine that was suspended, must not
        make all workers look silent at once.
        """
        now, mtime = running_nanos(), _beat_nanos(attempt)
        known = self._beats.get(replica)
        if known is None or known.mtime_ns != mtime:
            # At the first look, after a time without an engine, only the wall clock tells how old the heartbeat is.
            # A later one has come since the last look.
            silent_ms = (silence_ms(attempt, wall_nanos()) or 0) if known is None else 0
            known = self._beats[replica] = _LastBeat(mtime, silent_ms, now)
        return None if mtime is None else known.silent_ms + (now - known.seen_ns) // NANOS_PER_MILLI


def silence_ms(attempt: Attempt, now: int) -> int | None:
    """Return the milliseconds since the worker's last heartbeat, or None without one. `now`: wall clock in ns."""
    mtime = _beat_nanos(attempt)
    # Never negative: the wall clock may have been set back since the heartbeat.
    return None if mtime is None else max(0, (now - mtime) // NANOS_PER_MILLI)


def _beat_nanos(attempt: Attempt) -> int | None:
    """Return when the worker's heartbeat file was touched, by the wall clock, from which file systems take their times;
    None if it was never touched."""
    try:
        return Path(attempt.file(PULSE, _NAME)).stat().st_mtime_ns
    except OSError:
        return None


def show(attempt: Attempt, files: Mapping[str, bytes]) -> None:
    """Write the files, each in one step, readable for every process of the container.

    The first call must come before the container is made, since it creates the folders that are mounted.
    """
    Path(attempt.path).mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = _make_folder(Path(attempt.file("world")), 0o755)
    # Writable for all: its owner is the engine, and the worker that touches the file is the submitter.
    _make_folder(Path(attempt.file(PULSE)), 0o777)
    for name, content in files.items():
        # By a rename, so that no worker reads a half-written list.
        draft = folder / f".{name}.new"
        draft.write_bytes(content)
        draft.chmod(0o644)
        draft.replace(folder / name)


def _make_folder(folder: Path, mode: int) -> Path:
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    return folder
