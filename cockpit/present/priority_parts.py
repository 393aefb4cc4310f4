"""The parts of a priority as a stacked bar: each factor has a colour role, and a letter for screens without colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from cockpit.model.cluster import Weights
from cockpit.model.ids import JobId
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.view import PriorityRow
from cockpit.present.bars import apportioned
from cockpit.present.spans import Line, Span

BETWEEN: Final = ", "
"""Separator between the names of partitions."""
BLOCK: Final = "▆"
NICE: Final = "nice"
NICE_LETTER: Final = "n"


class FactorStyle(NamedTuple):
    """Colour, letter and words that identify a factor in the bars and columns."""

    name: FactorName
    letter: str
    role: str
    title: str
    word: str
    column: str
    """Column of the table `priority` by which filters and sorting name the factor."""
    means: str
    """Explanation of what makes the factor large."""


SIGNS: Final[Mapping[FactorName, FactorStyle]] = {
    sign.name: sign
    for sign in (
        FactorStyle(FactorName.AGE, "a", "age", "AGE", "age", "age", "the longer it waits"),
        FactorStyle(
            FactorName.FAIRSHARE, "F", "fair_share", "FAIR", "fair share", "fairshare", "the less its share was used"
        ),
        FactorStyle(FactorName.JOB_SIZE, "s", "size", "SIZE", "size", "jobsize", "by the nodes and CPUs it asks for"),
        FactorStyle(
            FactorName.PARTITION, "p", "partition", "PART", "partition", "partition_factor", "what its queue counts"
        ),
        FactorStyle(FactorName.QOS, "q", "qos", "QOS", "QOS", "qos_factor", "what its QOS counts"),
        FactorStyle(FactorName.ASSOC, "c", "association", "ASSOC", "association", "assoc", "what its account counts"),
        FactorStyle(FactorName.TRES, "t", "tres", "TRES", "resources", "tres", "the more of them it asks for"),
        FactorStyle(FactorName.SITE, "x", "site", "SITE", "site", "site", "what the site adds"),
    )
}
"""The factors' signs, in the order of the bar."""


class Amounts(NamedTuple):
    """Amounts of one factor in one job's priority; all resources are one factor together."""

    raw: float
    weight: float
    contribution: float


def amounts(breakdown: Breakdown) -> dict[FactorName, Amounts]:
    """Return the amounts by factor, in the order of the bar. The raw value of the resources is their contribution
    divided by their weight."""
    by_factor: dict[FactorName, Amounts] = {}
    for part in breakdown.parts:
        before = by_factor.get(part.name)
        if before is None:
            by_factor[part.name] = Amounts(part.raw, part.weight, part.contribution)
        else:
            weight, added = before.weight + part.weight, before.contribution + part.contribution
            by_factor[part.name] = Amounts(added / weight if weight else 0.0, weight, added)
    return {name: by_factor[name] for name in SIGNS if name in by_factor}


def added(breakdown: Breakdown) -> float:
    """Return the sum of what the factors and a negative nice add, before a positive nice is subtracted."""
    return sum(max(part.contribution, 0.0) for part in breakdown.parts) + max(-breakdown.nice, 0)


def of_jobs(rows: Iterable[PriorityRow]) -> list[PriorityRow]:
    """Return one row per job that has the same place and figures in all its partitions, with their names joined; other
    jobs keep one row per partition."""
    rows = list(rows)
    # The usual cluster, where each job waits in one partition.
    if len({row.job for row in rows}) == len(rows):
        return rows
    alike: dict[tuple[JobId, object], list[str]] = {}
    for row in rows:
        alike.setdefault(_place_key(row), []).append(row.partition)
    several = {job for job, count in Counter(job for job, _ in alike).items() if count > 1}
    by_job: dict[object, PriorityRow] = {}
    for number, row in enumerate(rows):
        # Jobs that one may not see all have the id 0, and are not one job.
        whole = row.job and row.job not in several
        names = alike[_place_key(row)] if whole else [row.partition]
        by_job.setdefault(_place_key(row) if whole else number, replace(row, partition=BETWEEN.join(names)))
    return list(by_job.values())


def _place_key(row: PriorityRow) -> tuple[JobId, object]:
    breakdown = replace(row.breakdown, partition="") if row.breakdown is not None else None
    return row.job, (row.position, breakdown, row.position_before, row.total_before)


def longest(rows: Iterable[PriorityRow]) -> float:
    """Return the amount that a whole bar represents: the most that the factors of one job add."""
    computed = (row.breakdown for row in rows if row.breakdown is not None and row.breakdown.parts)
    # With a positive nice added back: the bar shows what was taken off as well.
    return max((each.total + max(each.nice, 0) for each in computed), default=0)


def weight_of(weights: Weights, name: FactorName) -> float:
    """Return the factor's weight; for resources the sum of their weights, for the site's factor 0, as it has none."""
    match name:
        case FactorName.TRES:
            return sum(weights.tres.values())
        case FactorName.SITE:
            return 0
        case _:
            return float(getattr(weights, name.value))


def counting_factors(weights: Weights, rows: Iterable[PriorityRow]) -> tuple[FactorName, ...]:
    """Return the factors with a weight, and the site's factor where it adds anything."""
    names = [name for name in SIGNS if weight_of(weights, name)]
    computed = (row.breakdown for row in rows if row.breakdown is not None and row.breakdown.parts)
    # The site factor has no weight: only what it adds tells whether the cluster uses it.
    site = any(_has_site_factor(each.parts) for each in computed)
    return (*names, FactorName.SITE) if site else tuple(names)


def _has_site_factor(parts: Sequence[Part]) -> bool:
    """Return whether the site's factor adds anything; it is the first part, as in sprio."""
    return parts[0].name is FactorName.SITE and bool(parts[0].contribution)


def stacked(breakdown: Breakdown, whole: float, columns: int, *, letters: bool) -> Line:
    """Return the stacked bar of the parts, in which `columns` represent `whole`; what nice subtracts is hatched at the
    end. `letters`: use letters instead of blocks, for screens without colours."""
    pieces = [(sign, max(amount, 0.0)) for sign, amount in _pieces(breakdown)]
    # A nice above 0 lowers the priority: the bar ends where the priority does, and shows hatched what was taken off.
    reached = sum(amount for _, amount in pieces)
    left = min(max(added(breakdown) - max(breakdown.nice, 0), 0.0), reached)
    filled = _column(left, whole, columns)
    # What nice subtracts is cut from the end of the bar, so the last parts are shortened first.
    ends = [min(end, left) for end in accumulate((amount for _, amount in pieces), initial=0.0)]
    cells = apportioned([after - before for before, after in pairwise(ends)], filled)
    signs = [(letter if letters else BLOCK, role) for (letter, role), _ in pieces]
    spans = [Span(sign * count, role) for (sign, role), count in zip(signs, cells, strict=True) if count]
    hatched = _column(reached, whole, columns) - filled
    return (*spans, Span(("-" if letters else "░") * hatched, NICE))


def _pieces(breakdown: Breakdown) -> Sequence[tuple[tuple[str, str], float]]:
    pieces = [
        ((SIGNS[name].letter, SIGNS[name].role), amount.contribution) for name, amount in amounts(breakdown).items()
    ]
    return [*pieces, ((NICE_LETTER, NICE), -breakdown.nice)] if breakdown.nice < 0 else pieces


def _column(reached: float, whole: float, columns: int) -> int:
    return min(columns, round(reached / whole * columns)) if whole > 0 else 0


def swatch(name: FactorName, *, letters: bool) -> Span:
    """Return the sign of the factor as the bars show it."""
    sign = SIGNS[name]
    return Span(sign.letter if letters else BLOCK, sign.role)
