"""What replicas have really used: measured, where resources that were given are only held."""

from __future__ import annotations

import msgspec


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One stretch of a replica's life; several become one by their time. None: not measured."""

    lasted_ms: int
    busy_milli: int | None
    """Thousandths of a CPU, on average."""
    memory_mib: int | None
    """The most of it."""
    card_percent: int | None
    """Of all its cards, on average."""


class Used(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a replica that has ended. None: nobody could measure it."""

    cpu_ms: int | None = None
    """Of all its processes together."""
    peak_memory_mib: int | None = None
    """The most that it had at any moment; where no cgroup counts, the most that was seen."""
    card_percent: int | None = None
    """How busy its cards were, on average over all of them and the whole time."""
    peak_card_percent: int | None = None
    """The most that was seen."""
    peak_card_memory_mib: int | None = None
    """Of all its cards together, the most that was seen."""
    log_left_out_mib: int | None = None
    """Of its logs, where they were longer than their limit."""
