"""The resources that replicas have really used, as measured; an allocation only says what they may use."""

from __future__ import annotations

import msgspec


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """The usage of a replica during an interval. Samples are merged by their lengths. None: not measured."""

    lasted_ms: int
    """The length of the interval."""
    busy_milli: int | None
    """The average CPU usage, in thousandths of a CPU."""
    memory_mib: int | None
    """The peak memory usage."""
    card_percent: int | None
    """The average utilisation of all its cards."""


class ReplicaTotals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The total usage of a replica that has ended. None: it could not be measured."""

    cpu_ms: int | None = None
    """The CPU time of all its processes together."""
    peak_memory_mib: int | None = None
    """The peak memory usage; without a cgroup that counts it, the highest sample."""
    card_percent: int | None = None
    """The average utilisation of its cards, over all of them and the whole time."""
    peak_card_percent: int | None = None
    """The highest sampled utilisation of its cards."""
    peak_card_memory_mib: int | None = None
    """The highest sampled memory usage of all its cards together."""
    log_left_out_mib: int | None = None
    """The part of its logs that was dropped because they exceeded their limit."""
