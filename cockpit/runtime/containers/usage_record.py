"""The recorded usage of one replica over time, in a limited number of samples.

When there are too many samples, neighbouring ones are joined in pairs, so that each covers twice the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.model.jobdetail import ReplicaUse
from cockpit.model.usage import Sample
from cockpit.runtime.containers.measuring import NOTHING, Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.runtime.cards.metering import CardReading

PERIOD_MS: Final = 5_000
"""Interval between two measurements."""
MOST_SAMPLES: Final = 120
"""Most samples of one replica: ten minutes at the shortest period; for longer jobs each sample covers a longer time."""


class UsageRecord(msgspec.Struct):
    """The usage record of one replica. It is stored in the attempt's folder, so that the next engine continues it."""

    at: int
    """Time of the last measurement in milliseconds since boot; no container outlives a boot."""
    last: tuple[int | None, int | None, int | None] = NOTHING
    cards: tuple[int | None, int | None] = (None, None)
    peak_memory_mib: int | None = None
    peak_card_percent: int | None = None
    peak_card_memory_mib: int | None = None
    stretch_ms: int = PERIOD_MS
    samples: list[Sample] = []

    def look(self, at: int, reading: Reading, cards: Sequence[CardReading]) -> None:
        """Add a measurement."""
        percent, memory = _mean([each.percent for each in cards]), _sum([each.memory_mib for each in cards])
        self._add(Sample(at - self.at, self._busy(at, reading), reading.memory_mib, percent))
        self.peak_memory_mib = _most(self.peak_memory_mib, reading.memory_mib, reading.peak_memory_mib)
        self.peak_card_percent = _most(self.peak_card_percent, percent)
        self.peak_card_memory_mib = _most(self.peak_card_memory_mib, memory)
        # The CPU time never falls, although a sum over processes does: a child that was never waited for takes its time
        # with it.
        self.at, self.last, self.cards = at, (_most(self.last[0], reading.cpu_ms), *reading[1:]), (percent, memory)

    def end(self, reading: Reading) -> None:
        """Add the last figures, after the command has ended."""
        self.last = _most(self.last[0], reading.cpu_ms), None, None
        self.cards = None, None
        self.peak_memory_mib = _most(self.peak_memory_mib, reading.peak_memory_mib)

    def use(self, rank: int) -> ReplicaUse:
        percent, card_memory = self.cards
        return ReplicaUse(
            rank,
            cpu_ms=self.last[0],
            memory_mib=self.last[1],
            peak_memory_mib=self.peak_memory_mib,
            card_percent=percent,
            card_memory_mib=card_memory,
            mean_card_percent=_mean_over_time(self.samples),
            peak_card_percent=self.peak_card_percent,
            peak_card_memory_mib=self.peak_card_memory_mib,
            course=tuple(self.samples),
        )

    def _busy(self, at: int, reading: Reading) -> int | None:
        # The counter was 0 when the holder started, which is the time at which a new record begins.
        before = self.last[0] if self.samples else 0
        if reading.cpu_ms is None or before is None or at <= self.at:
            return None
        return max(0, reading.cpu_ms - before) * 1000 // (at - self.at)

    def _add(self, sample: Sample) -> None:
        if sample.lasted_ms <= 0:
            return
        # Joined while it still covers less than the period. Half of the new sample decides, so that lengths stay near
        # it.
        joins = bool(self.samples) and self.samples[-1].lasted_ms + sample.lasted_ms // 2 < self.stretch_ms
        if joins:
            self.samples[-1] = join_samples(self.samples[-1], sample)
        else:
            self.samples.append(sample)
        # Halving keeps the whole history, in a bounded size and at half of the resolution.
        if len(self.samples) > MOST_SAMPLES:
            pairs = zip(self.samples[::2], self.samples[1::2], strict=False)
            odd = self.samples[-1:] if len(self.samples) % 2 else []
            self.samples = [*(join_samples(*pair) for pair in pairs), *odd]
            self.stretch_ms *= 2


def join_samples(before: Sample, after: Sample) -> Sample:
    """Join two samples, one after the other, to one."""
    memory = _most(before.memory_mib, after.memory_mib)
    busy, card = (
        _mean_over([(getattr(each, name), each.lasted_ms) for each in (before, after)])
        for name in ("busy_milli", "card_percent")
    )
    return Sample(before.lasted_ms + after.lasted_ms, busy, memory, card)


def _mean_over_time(samples: Sequence[Sample]) -> int | None:
    return _mean_over([(each.card_percent, each.lasted_ms) for each in samples])


def _mean_over(parts: Sequence[tuple[int | None, int]]) -> int | None:
    """Return the weighted mean of the known figures; None if there is none."""
    known = [(figure, weight) for figure, weight in parts if figure is not None]
    weights = sum(weight for _, weight in known)
    return round(sum(figure * weight for figure, weight in known) / weights) if weights else None


def _mean(figures: Sequence[int | None]) -> int | None:
    return _mean_over([(figure, 1) for figure in figures])


def _sum(figures: Sequence[int | None]) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def _most(*figures: int | None) -> int | None:
    return max((figure for figure in figures if figure is not None), default=None)
