"""Sums of accounting by account, user, project or QOS: of ended jobs, and of what was held over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.model.spec import WHOLE_CARD

if TYPE_CHECKING:
    from datetime import tzinfo

    from cockpit.model.accounting import EndedJob, Spending, UsageSum

HOUR_MS: Final = 3_600_000
NO_NAME: Final = "-"
"""Name under which jobs without an account, project or QOS are summed."""
OTHERS: Final = "others"
"""Name under which users are summed whose names the user may not see."""


class GroupBy(StrEnum):
    """The field by which sums are grouped."""

    ACCOUNT = "account"
    USER = "user"
    PROJECT = "project"
    QOS = "qos"


class JobSum(NamedTuple):
    """Totals of the ended jobs that share one name."""

    name: str
    jobs: int
    """Number of ended jobs, those that succeeded included; `failed`, `stopped` and `expired` count the others."""
    failed: int
    stopped: int
    expired: int
    elapsed_ms: int
    cpu_ms: int | None
    cpu_held_ms: int
    card_milli_ms: int
    above_min_card_milli_ms: int


class Held(NamedTuple):
    """The CPUs and cards that jobs held under one name, one figure per interval of time."""

    name: str
    card_milli_ms: tuple[int, ...]
    cpu_ms: tuple[int, ...]
    share: float
    """Percent of all card-hours; of all CPU-hours where no job held a card."""
    above_min_card_milli_ms: int = 0
    """Part of the card-hours that elastic jobs had above their least numbers of workers."""


def card_hours(milli_ms: int) -> float:
    return hours(milli_ms / WHOLE_CARD)


def hours(milliseconds: float) -> float:
    """Return milliseconds as hours, rounded to two digits."""
    return round(milliseconds / HOUR_MS, 2)


def job_sums(jobs: Iterable[EndedJob], by: GroupBy) -> list[JobSum]:
    """Return the totals by name, those with the most card-hours first, then those with the most CPU-hours."""
    groups: dict[str, list[EndedJob]] = defaultdict(list)
    for job in jobs:
        groups[str(getattr(job.row, by)) or NO_NAME].append(job)
    sums = (_sum(name, group) for name, group in groups.items())
    # The name last, so that equal sums have one order in every run.
    return sorted(sums, key=lambda each: (-each.card_milli_ms, -each.cpu_held_ms, each.name))


def held_by(spending: Spending, by: GroupBy) -> list[Held]:
    """Return what was held by name, those with the most card-hours first, then those with the most CPU-hours."""
    cards = _by_stretch(spending, by, lambda each: each.card_milli_ms)
    cpus = _by_stretch(spending, by, lambda each: each.cpu_ms)
    # Shares are of one resource for all rows: that of the cards where the cluster has used any.
    parts = cards if any(map(any, cards.values())) else cpus
    whole = sum(map(sum, parts.values()))
    above = _by_stretch(spending, by, lambda each: each.above_min_card_milli_ms)
    rows = [
        Held(
            name,
            tuple(cards[name]),
            tuple(cpus[name]),
            round(100 * sum(parts[name]) / whole, 1) if whole else 0.0,
            sum(above[name]),
        )
        for name in cpus
    ]
    return sorted(rows, key=lambda each: (-sum(each.card_milli_ms), -sum(each.cpu_ms), each.name))


def days_until(now: Millis, days: int, zone: tzinfo | None) -> list[Millis]:
    """Return the midnights at which each of the last `days` days began, today included, and then now. Midnights are
    local, so a day on which the clocks change is shorter or longer."""
    # Days are subtracted on the wall clock; only then a midnight becomes a moment, with the offset of its own day.
    today = datetime.fromtimestamp(now / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    starts = (today - timedelta(days=back) for back in reversed(range(days)))
    midnights = [Millis(int(each.replace(tzinfo=zone).timestamp() * 1000)) for each in starts]
    # At midnight itself the last interval would be empty, and intervals must have a length.
    return [*midnights, Millis(max(now, midnights[-1] + 1))]


def _by_stretch(spending: Spending, by: GroupBy, figure: Callable[[UsageSum], int]) -> dict[str, list[int]]:
    totals: dict[str, list[int]] = defaultdict(lambda: [0] * len(spending.stretches))
    for place, stretch in enumerate(spending.stretches):
        for each in stretch:
            totals[_name(each, by)][place] += figure(each)
    return totals


def _name(each: UsageSum, by: GroupBy) -> str:
    # An empty user means that the name is hidden from who asks, an empty account that there is none.
    unknown = OTHERS if by in {GroupBy.USER, GroupBy.PROJECT} and not each.user else NO_NAME
    return str(getattr(each, by)) or unknown


def _sum(name: str, jobs: Sequence[EndedJob]) -> JobSum:
    """Return the totals of these ended jobs; CPU time is None where it was measured for none of them."""
    cpu = [each.cpu_ms for each in jobs if each.cpu_ms is not None]
    ended_as = Counter(each.row.state for each in jobs)
    return JobSum(
        name=name,
        jobs=len(jobs),
        failed=ended_as[JobState.ERROR],
        stopped=ended_as[JobState.STOPPED],
        expired=ended_as[JobState.EXPIRED],
        elapsed_ms=sum(each.elapsed_ms for each in jobs),
        cpu_ms=sum(cpu) if cpu else None,
        cpu_held_ms=sum(each.cpu_held_ms for each in jobs),
        card_milli_ms=sum(each.card_milli_ms for each in jobs),
        above_min_card_milli_ms=sum(each.above_min_card_milli_ms for each in jobs),
    )
