"""Record what cockpit observes of a cluster that has no readable history, in one bounded file per cluster.

It holds the pending reasons of jobs and the events that happened while a cockpit was connected. If one user runs
several cockpits on the same cluster, one of them writes the file and the others read it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from cockpit.model.events import RECORDED, EventBody, EventRecord
from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import Reason, Waited
from cockpit.runtime.reason_history import reason_kind

MOST_BYTES = 4 << 20
"""Largest size of the file in bytes; then its older half is removed."""
HEARTBEAT_MS = 60_000
"""Interval at which a line is written even if nothing happens, to show that a cockpit is still observing."""
SILENCE_MS = 3 * HEARTBEAT_MS
"""Time without any line after which the cluster counts as not observed."""


def history_file(folder: Path, name: str, whose: str) -> Path:
    """Return the history file of a cluster; its hash keeps clusters of the same name apart by how they are reached."""
    readable = "".join(each if each.isalnum() or each in "-." else "_" for each in name)[:60]
    return folder / f"{readable}-{hashlib.sha256(whose.encode()).hexdigest()[:8]}.jsonl"


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file: a job's new pending reason, an event, or a heartbeat with neither."""

    at: Millis
    job: JobId | None = None
    reason: Reason | None = None
    seq: int = 0
    event: EventBody | None = None
    begins: bool = False
    """Whether this line begins a new period of observation."""


class Period(msgspec.Struct):
    """A time span during which a cockpit observed the cluster."""

    since: Millis
    until: Millis


class ObservedHistory:
    """The observed history of one cluster. `who`: the name of its scheduler, which becomes the actor of every event.

    Without a path, or if the file cannot be written, the history is kept in memory while this cockpit runs.
    """

    def __init__(self, path: Path | None, who: str) -> None:
        self._path, self._who = path, who
        self._writer: int | None = None
        self._read_to = 0
        self._periods: list[Period] = []
        self._reasons: dict[JobId, list[Waited]] = {}
        self._events: list[EventRecord] = []

    def note(
        self, reasons: Iterable[tuple[JobId, Reason]], happened: Iterable[tuple[Millis, EventBody]], now: Millis
    ) -> None:
        """Record one observation of the cluster: the jobs' pending reasons, and the events since the last one."""
        if not self._writes():
            return
        # After a silence nothing is known of the time in between, which the page shows as a gap.
        begins = not self._periods or now - self._periods[-1].until >= SILENCE_MS
        lines = [Line(now, begins=True)] if begins else []
        lines += [Line(now, job, reason) for job, reason in reasons if self._differs(job, reason)]
        last = self._events[-1].seq if self._events else 0
        new = sorted(happened, key=lambda each: each[0])
        # Never in the future, although the cluster's clock may be ahead of this machine's.
        lines += [Line(min(at, now), seq=last + place, event=body) for place, (at, body) in enumerate(new, 1)]
        if not lines and now - self._periods[-1].until >= HEARTBEAT_MS:
            lines = [Line(now)]
        # Written first: where the file is halved, the memory is read from it again, and has these lines only then.
        self._append(lines)
        for line in lines:
            self._take(line)

    def waited(self, jobs: Iterable[JobId], now: Millis) -> tuple[Waited, ...]:
        """Return what the job with these ids waited for, oldest first. A reason None: not observed from then on."""
        self._refresh()
        notes = sorted((each for job in jobs for each in self._reasons.get(job, ())), key=lambda each: each.since)
        return tuple(self._with_gaps(notes, now)) if notes else ()

    def events(self, jobs: Iterable[JobId] = (), *, after: int = -1) -> list[EventRecord]:
        """Return the events of these jobs, or of all, with sequence numbers above `after`."""
        self._refresh()
        wanted = set(jobs)
        return [
            each
            for each in self._events
            if each.seq > after and (not wanted or getattr(each.body, "job", None) in wanted)
        ]

    def close(self) -> None:
        """Release the write lock, so that another cockpit may write."""
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None

    def _with_gaps(self, notes: list[Waited], now: Millis) -> Iterator[Waited]:
        """Yield the notes in order, again at the start of each period, and a None where a period without one begins."""
        for period in self._periods:
            # The last reason before the period still held when observation began again.
            known = [each.reason for each in notes if each.since <= period.since][-1:]
            if known:
                yield Waited(period.since, known[0])
            yield from (each for each in notes if period.since < each.since <= period.until)
            still_observed = period is self._periods[-1] and now - period.until < SILENCE_MS
            if not still_observed and any(each.since <= period.until for each in notes):
                yield Waited(period.until, None)

    def _differs(self, job: JobId, reason: Reason) -> bool:
        known = self._reasons.get(job)
        return not known or reason_kind(known[-1].reason) != reason_kind(reason)

    def _take(self, line: Line) -> None:
        if line.begins or not self._periods:
            self._periods.append(Period(line.at, line.at))
        self._periods[-1].until = max(self._periods[-1].until, line.at)
        if line.job is not None and line.reason is not None:
            self._reasons.setdefault(line.job, []).append(Waited(line.at, line.reason))
        if line.event is not None:
            self._events.append(
                EventRecord(seq=line.seq, at=line.at, actor=self._who, origin=RECORDED, body=line.event)
            )

    def _writes(self) -> bool:
        """Return whether this cockpit writes the file, after trying to become the writer if it is not."""
        if self._path is None or self._writer is not None:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(
                self._path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
        except OSError:
            self._path = None
            return True
        try:
            # Without waiting: the process that has the lock is another cockpit of this user, and writes for both.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        # What other writers have left is read before this one appends to it.
        self._refresh()
        self._writer = lock
        return True

    def _append(self, lines: list[Line]) -> None:
        if self._path is None or not lines:
            return
        data = b"".join(msgspec.json.encode(each) + b"\n" for each in lines)
        with suppress(OSError):
            if self._path.exists() and self._path.stat().st_size + len(data) > MOST_BYTES:
                self._halve()
            with self._path.open("ab") as file:
                file.write(data)
                # What this process writes is in its memory already.
                self._read_to = file.tell()

    def _halve(self) -> None:
        """Remove the older half of the file, and of the history in memory."""
        assert self._path is not None
        # The first line is most likely cut in the middle, and is left out.
        kept = self._path.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")[2]
        draft = self._path.with_suffix(".new")
        draft.write_bytes(kept)
        draft.replace(self._path)
        self._periods, self._reasons, self._events = [], {}, []
        self._take_all(kept)

    def _refresh(self) -> None:
        """Read what was added to the file: at first everything, later what another cockpit has written."""
        if self._path is None or self._writer is not None:
            return
        with suppress(OSError):
            size = self._path.stat().st_size
            if size < self._read_to:  # the writer has halved the file: read it from its beginning
                self._periods, self._reasons, self._events, self._read_to = [], {}, [], 0
            if size > self._read_to:
                with self._path.open("rb") as file:
                    file.seek(self._read_to)
                    self._take_all(file.read())
                self._read_to = size

    def _take_all(self, data: bytes) -> None:
        decoder = msgspec.json.Decoder(Line)
        for encoded in data.splitlines():
            with suppress(msgspec.DecodeError):  # cut off, or written by another version
                self._take(decoder.decode(encoded))
