"""What a cockpit saw of a cluster that tells others no history, while it was connected: one bounded file a cluster.

Of several cockpits of one person that look at the same cluster one writes; the others read what it wrote.
"""

from __future__ import annotations

import fcntl
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
"""A larger file keeps its newer half."""
HEARTBEAT_MS = 60_000
"""So often it is written that a cockpit still looks; what is silent for longer was not looked at."""
SILENCE_MS = 3 * HEARTBEAT_MS


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the file: why a job waits from now on, something that happened, or only that somebody looks."""

    at: Millis
    job: JobId | None = None
    reason: Reason | None = None
    seq: int = 0
    event: EventBody | None = None
    begins: bool = False
    """Nobody looked before."""


class Look(msgspec.Struct):
    """A time in which somebody looked."""

    since: Millis
    until: Millis


class ObservedHistory:
    """Of one cluster. `who`: whose scheduler it is, and so the actor of every event. A file that cannot be written is
    none: what was seen is remembered as long as this cockpit runs."""

    def __init__(self, path: Path | None, who: str) -> None:
        self._path, self._who = path, who
        self._writer: int | None = None
        self._read_to = 0
        self._looks: list[Look] = []
        self._reasons: dict[JobId, list[Waited]] = {}
        self._events: list[EventRecord] = []

    def note(
        self, reasons: Iterable[tuple[JobId, Reason]], happened: Iterable[tuple[Millis, EventBody]], now: Millis
    ) -> None:
        """What a look at the cluster showed: jobs' reasons, and what has happened since the last look."""
        if not self._writes():
            return
        begins = not self._looks or now - self._looks[-1].until >= SILENCE_MS
        lines = [Line(now, begins=True)] if begins else []
        lines += [Line(now, job, reason) for job, reason in reasons if self._differs(job, reason)]
        last = self._events[-1].seq if self._events else 0
        new = sorted(happened, key=lambda each: each[0])
        lines += [Line(min(at, now), seq=last + place, event=body) for place, (at, body) in enumerate(new, 1)]
        if not lines and now - self._looks[-1].until >= HEARTBEAT_MS:
            lines = [Line(now)]
        for each in lines:
            self._take(each)
        self._append(lines)

    def waited(self, jobs: Iterable[JobId], now: Millis) -> tuple[Waited, ...]:
        """What the job under these ids waited for, the oldest first; None: nobody looked from then on."""
        self._refresh()
        notes = sorted((each for job in jobs for each in self._reasons.get(job, ())), key=lambda each: each.since)
        return tuple(self._with_gaps(notes, now)) if notes else ()

    def events(self, jobs: Iterable[JobId] = (), *, after: int = -1) -> list[EventRecord]:
        """Of these jobs, or of all; those behind that number."""
        self._refresh()
        wanted = set(jobs)
        return [
            each
            for each in self._events
            if each.seq > after and (not wanted or getattr(each.body, "job", None) in wanted)
        ]

    def close(self) -> None:
        """Others may write."""
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None

    def _with_gaps(self, notes: list[Waited], now: Millis) -> Iterator[Waited]:
        for look in self._looks:
            known = [each.reason for each in notes if each.since <= look.since][-1:]
            if known:
                yield Waited(look.since, known[0])
            yield from (each for each in notes if look.since < each.since <= look.until)
            looks_still = look is self._looks[-1] and now - look.until < SILENCE_MS
            if not looks_still and any(each.since <= look.until for each in notes):
                yield Waited(look.until, None)

    def _differs(self, job: JobId, reason: Reason) -> bool:
        known = self._reasons.get(job)
        return not known or reason_kind(known[-1].reason) != reason_kind(reason)

    def _take(self, line: Line) -> None:
        if line.begins or not self._looks:
            self._looks.append(Look(line.at, line.at))
        self._looks[-1].until = max(self._looks[-1].until, line.at)
        if line.job is not None and line.reason is not None:
            self._reasons.setdefault(line.job, []).append(Waited(line.at, line.reason))
        if line.event is not None:
            self._events.append(
                EventRecord(seq=line.seq, at=line.at, actor=self._who, origin=RECORDED, body=line.event)
            )

    def _writes(self) -> bool:
        """Whether this cockpit is the one that writes."""
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
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
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
                self._read_to = file.tell()

    def _halve(self) -> None:
        """What the file forgets is forgotten here too."""
        assert self._path is not None
        kept = self._path.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")[2]
        draft = self._path.with_suffix(".new")
        draft.write_bytes(kept)
        draft.replace(self._path)
        self._looks, self._reasons, self._events = [], {}, []
        self._take_all(kept)

    def _refresh(self) -> None:
        """Read what came since: at first everything, later what another cockpit wrote."""
        if self._path is None or self._writer is not None:
            return
        with suppress(OSError):
            size = self._path.stat().st_size
            if size < self._read_to:
                self._looks, self._reasons, self._events, self._read_to = [], {}, [], 0
            if size > self._read_to:
                with self._path.open("rb") as file:
                    file.seek(self._read_to)
                    self._take_all(file.read())
                self._read_to = size

    def _take_all(self, data: bytes) -> None:
        decoder = msgspec.json.Decoder(Line)
        for each in data.splitlines():
            with suppress(msgspec.DecodeError):  # cut off, or of another version
                self._take(decoder.decode(each))
