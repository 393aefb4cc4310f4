"""What was used in the past: jobs that have ended, and what was held from when to when, by whom."""

from __future__ import annotations

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.jobrow import JobRow


class EndedJob(msgspec.Struct, frozen=True):
    """A job that has ended, with what it held and used in all its attempts. None: nobody measured it."""

    row: JobRow
    attempts: int
    elapsed_ms: int
    """Of all attempts, one after the other."""
    cpu_held_ms: int
    """CPUs that it held × time."""
    card_milli_ms: int
    """Thousandths of a card that it held × time."""
    cpu_ms: int | None
    """CPU time that its processes used."""
    peak_memory_mib: int | None
    """Of the replica that had most."""
    card_percent: int | None
    """How busy its cards were, on average."""


class Span(msgspec.Struct, frozen=True):
    """What one attempt of a job held, from when to when, used or not."""

    job: JobId
    attempt: int
    user: str
    account: str
    project: str
    qos: str
    from_at: Millis
    until_at: Millis
    cpus: int
    card_milli: int


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """A sum over all that has these names in common. `user` and `project` are empty where the asker may not know."""

    user: str
    account: str
    project: str
    qos: str
    card_milli_ms: int
    cpu_ms: int
    """Of CPUs that were held."""


class Spending(msgspec.Struct, frozen=True):
    """What was held in each stretch of time, running jobs included up to now."""

    edges: tuple[Millis, ...]
    """Where the stretches begin, in order, and where the last one ends."""
    stretches: tuple[tuple[Spent, ...], ...]
    missing: str = ""
    """Why ended jobs are left out, as a sentence; empty: they are counted."""
