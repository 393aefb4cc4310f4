"""Past use of the cluster: ended jobs, and the resources that were allocated from when to when, by user."""

from __future__ import annotations

import msgspec

from cockpit.model.ids import JobId, Millis
from cockpit.model.jobrow import JobRow


class EndedJob(msgspec.Struct, frozen=True):
    """An ended job with what it held and used in all its attempts. Figures that are None were not measured."""

    row: JobRow
    attempts: int
    elapsed_ms: int
    """Elapsed time of all attempts together."""
    cpu_held_ms: int
    """CPUs that it held × time."""
    card_milli_ms: int
    """Thousandths of a card that it held × time."""
    cpu_ms: int | None
    """CPU time that its processes used."""
    peak_memory_mib: int | None
    """Peak memory of the replica that used most."""
    card_percent: int | None
    """Average utilization of its cards."""
    above_min_card_milli_ms: int = 0
    """Of an elastic job: thousandths of a card × time that it had above its least number of workers."""
    above_min_cpu_ms: int = 0
    """Of an elastic job: CPUs × time that it had above its least number of workers."""


# Not cut at days: where a day begins depends on the time zone of the user who asks.
class Span(msgspec.Struct, frozen=True):
    """The resources that one attempt of a job held, from when to when, whether it used them or not."""

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
    above_min_card_milli: int | None = 0
    """Of an elastic job: what of `card_milli` was above its least number of workers, on average over the time; None:
    not recorded, as in old stores."""


class UsageSum(msgspec.Struct, frozen=True, array_like=True):
    """A sum over all that has these names in common. `user` and `project` are empty where the user may not know."""

    user: str
    account: str
    project: str
    qos: str
    card_milli_ms: int
    cpu_ms: int
    """CPU time of the CPUs that were held."""
    above_min_card_milli_ms: int = 0
    """Part of `card_milli_ms` that elastic jobs had above their least numbers of workers."""


class Spending(msgspec.Struct, frozen=True):
    """The resources held in each time interval, including running jobs up to now."""

    edges: tuple[Millis, ...]
    """The starts of the intervals in order, and the end of the last one."""
    stretches: tuple[tuple[UsageSum, ...], ...]
    missing: str = ""
    """Why ended jobs are left out, as a sentence; empty: they are counted."""
