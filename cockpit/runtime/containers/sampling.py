"""Measure every running replica every few seconds, in a thread, and record the results in the attempt's folder.

No task runs while there is no replica. A restarted engine continues the record; the kernel's counters cover the time
without an engine.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cockpit.runtime.cards.metering import card_meter
from cockpit.runtime.clock import NANOS_PER_MILLI, boot_nanos
from cockpit.runtime.containers.measuring import last_reading, reading
from cockpit.runtime.containers.usage_record import PERIOD_MS, UsageRecord
from cockpit.runtime.probe_command import probe_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cockpit.model.ids import ReplicaId
    from cockpit.model.jobdetail import ReplicaUse
    from cockpit.model.usage import ReplicaTotals
    from cockpit.runtime.cards.metering import CardMeter, CardReading
    from cockpit.runtime.containers.shim.attempt import Attempt
    from cockpit.runtime.tasks import Tasks

RECORD = "use.json"
_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(UsageRecord)


def boot_millis() -> int:
    return boot_nanos() // NANOS_PER_MILLI


class FollowedReplica(NamedTuple):
    """A replica whose command runs, with the UUIDs of its cards and the record of its usage."""

    attempt: Attempt
    cards: tuple[str, ...]
    record: UsageRecord


class Sampler:
    """The sampler of one executor. `meter` is called for the first replica with real cards."""

    def __init__(
        self,
        tasks: Tasks,
        meter: Callable[[], CardMeter] = lambda: card_meter(probe_command),
        now: Callable[[], int] = boot_millis,
    ) -> None:
        self._tasks = tasks
        self._make_meter = meter
        self._meter: CardMeter | None = None
        self._now = now
        self._followed: dict[ReplicaId, FollowedReplica] = {}
        self._lock = Lock()
        """Guards `_followed`, which the event loop and threads use."""
        self._looking: asyncio.Task[None] | None = None

    def follow(self, replica: ReplicaId, attempt: Attempt) -> None:
        """Measure a replica from now on: its command has started."""
        plan = attempt.read("plan.json") or {}
        # A record in the folder is of an engine before this one; the kernel's counters have gone on meanwhile.
        record = read_record(attempt) or UsageRecord(_began(attempt))
        with self._lock:
            self._followed[replica] = FollowedReplica(attempt, tuple(plan.get("cards", ())), record)
        if self._looking is None:
            self._looking = self._tasks.start(self._look_forever(), "measuring")

    def leave(self, replica: ReplicaId) -> ReplicaTotals | None:
        """Stop measuring a replica, whose command has ended; return its total usage, or None if it was not measured."""
        with self._lock:
            followed = self._followed.pop(replica, None)
            if followed is None:
                return None
            # Before the groups are removed, which ends their counters.
            followed.record.end(last_reading(followed.attempt))
            _keep(followed)
            return followed.record.use(replica.rank).total

    async def used(self, replica: ReplicaId, attempt: Attempt) -> ReplicaUse | None:
        """Return a replica's usage as of now, or as of its end; None if nothing is known."""
        return await asyncio.to_thread(self._read_use, replica, attempt)

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    def look(self) -> None:
        """Measure every replica and record the results. Blocks."""
        with self._lock:
            replicas, followed = list(self._followed), list(self._followed.values())
        # Outside of the lock, since a vendor's tool may take long; `leave` is called in the event loop.
        cards = self._cards(followed)
        for replica in replicas:
            with self._lock:
                found = self._followed.get(replica)
                # It may have ended while the cards were read.
                if found is not None:
                    self._look_at(found, cards)
                    _keep(found)

    async def _look_forever(self) -> None:
        try:
            while self._followed:
                await asyncio.sleep(PERIOD_MS / 1000)
                await asyncio.to_thread(self.look)
        finally:
            self._looking = None

    def _read_use(self, replica: ReplicaId, attempt: Attempt) -> ReplicaUse | None:
        followed = self._followed.get(replica)
        if followed is None:
            record = read_record(attempt)
            return None if record is None else record.use(replica.rank)
        cards = self._cards([followed])
        with self._lock:
            self._look_at(followed, cards)
            return followed.record.use(replica.rank)

    def _look_at(self, followed: FollowedReplica, cards: Mapping[str, CardReading]) -> None:
        followed.record.look(
            self._now(), reading(followed.attempt), [cards[uuid] for uuid in followed.cards if uuid in cards]
        )

    def _cards(self, followed: list[FollowedReplica]) -> Mapping[str, CardReading]:
        # No tool of a vendor is run for jobs without cards.
        if not any(each_followed.cards for each_followed in followed):
            return {}
        if self._meter is None:
            self._meter = self._make_meter()
        return self._meter.read()


def read_record(attempt: Attempt) -> UsageRecord | None:
    """Return the recorded usage of the attempt."""
    with suppress(OSError, msgspec.DecodeError):
        return _decoder.decode(Path(attempt.file(RECORD)).read_bytes())
    return None


def _began(attempt: Attempt) -> int:
    """Return when the attempt's holder started, in milliseconds since boot."""
    identity = attempt.read("shim.json") or {"start_time": 0}
    return int(identity["start_time"]) * 1000 // os.sysconf("SC_CLK_TCK")


def _keep(followed: FollowedReplica) -> None:
    with suppress(OSError):  # a full disk, or a container that is being removed: the next sample is recorded again
        followed.attempt.write_bytes(RECORD, _encoder.encode(followed.record), durable=False)
