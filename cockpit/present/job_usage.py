"""The Usage tab of a job's page: what it was given, for how long, and what it really used where that is measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model import events
from cockpit.model.job import OCCUPYING
from cockpit.model.spec import WHOLE_CARD
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.job_page import asked_for
from cockpit.present.moments import clock
from cockpit.present.safe import safe
from cockpit.present.small_table import small_table
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.present.tables.jobs import elapsed_seconds

if TYPE_CHECKING:
    from cockpit.model.ids import Millis
    from cockpit.model.job import Attempt
    from cockpit.model.node import Allocation, Placement
    from cockpit.model.view import JobDetail, ReplicaUse
    from cockpit.present.answer import Around

INDENT: Final = "  "
LABEL: Final = 12
BAR_COLUMNS: Final = 30
HOUR_MS: Final = 3_600_000
UNKNOWN: Final = "n/a"
NOT_YET: Final = "It has been given nothing yet: the first tab says why."
GONE: Final = "What it really used is not known: that is measured only while its containers are there."
UNMEASURED: Final = "What it really uses is not known: nobody measures its containers here."
NO_CGROUP: Final = "What it really uses is not known: no cgroup counts it"


class Given(NamedTuple):
    """One attempt: what it held, and from when to when."""

    number: int
    placement: Placement
    since: Millis
    until: Millis
    held_ms: int
    """For how long each of its replicas held its part, all together."""

    @property
    def shares(self) -> float:
        """So many times one replica's part, for as long as the attempt."""
        return self.held_ms / HOUR_MS / max(1, len(self.placement))


def usage_tab(detail: JobDetail, around: Around) -> Iterator[Line]:
    """Harmless lines."""
    row = detail.row
    yield _fact("asked for", asked_for(detail.job))
    attempts = list(given(detail, around.context.now))
    if not attempts:
        yield line()
        yield line(Span(INDENT + NOT_YET, MUTED))
        return
    holds = row.state in OCCUPYING
    yield _fact("holds" if holds else "held", " · ".join(map(_allocation, attempts[-1].placement)))
    yield from _time(detail, around)
    yield line()
    titles = ("ATTEMPT", "FROM", "RAN", "CPU-HOURS", "CARD-HOURS")
    yield from small_table(titles, _hours(attempts, around), right=(2, 3, 4))
    yield line()
    yield from _measured(detail, around)


def given(detail: JobDetail, now: Millis) -> Iterator[Given]:
    """Every attempt that the record or the events still tell of, the first one first."""
    attempt = detail.job.attempt
    if attempt is None:
        return
    for record in detail.events:
        body = record.body
        if isinstance(body, events.JobPlaced) and body.attempt < attempt.number:
            until = _ended(detail, body.attempt, record.at)
            yield Given(body.attempt, body.placement, record.at, until, len(body.placement) * (until - record.at))
    starts = [each.started_at for each in attempt.replicas if each.started_at is not None]
    ends = [each.ended_at for each in attempt.replicas if each.ended_at is not None]
    over = detail.row.state not in OCCUPYING
    until = max(ends, default=detail.job.ended_at or attempt.placed_at) if over else now
    since = min(starts, default=attempt.placed_at)
    yield Given(attempt.number, attempt.placement, since, until, _held_ms(attempt, since, until))


def _held_ms(attempt: Attempt, since: Millis, until: Millis) -> int:
    """An elastic job's workers come and go; what one holds, each of them does."""
    if attempt.resized_at is None:
        return len(attempt.placement) * (until - since)
    return sum((each.left_at or until) - (each.started_at or until) for each in attempt.replicas)


def _ended(detail: JobDetail, attempt: int, placed: Millis) -> Millis:
    ends = (each for each in detail.events if isinstance(each.body, events.ReplicaEnded))
    return max((each.at for each in ends if getattr(each.body, "attempt", 0) == attempt), default=placed)


def _time(detail: JobDetail, around: Around) -> Iterator[Line]:
    row = detail.row
    elapsed = elapsed_seconds(row, around.context)
    if elapsed is None:
        return
    limit = row.time_limit_seconds
    filled = bar(elapsed / limit, BAR_COLUMNS, str(row.state))
    label = Span(f"{INDENT}{'time':<{LABEL}}", MUTED)
    share = Span(f" of {units.duration(limit)}, {min(elapsed * 100 // limit, 100)} %", MUTED)
    yield (label, Span(f"{units.duration(elapsed)} "), *filled, share)


def _hours(attempts: list[Given], around: Around) -> list[tuple[str, ...]]:
    """A row an attempt; what is given counts, used or not."""
    context = around.context
    return [
        (
            str(each.number),
            clock(each.since, context.now, context.zone),
            units.duration((each.until - each.since) // 1000),
            f"{sum(part.cpus for part in each.placement) * each.shares:.2f}",
            f"{sum(part.card_milli for part in each.placement) / WHOLE_CARD * each.shares:.2f}",
        )
        for each in attempts
    ]


def _measured(detail: JobDetail, around: Around) -> Iterator[Line]:
    attempt = detail.job.attempt
    if not detail.use or attempt is None:
        yield line(Span(f"{INDENT}{_why_unknown(detail)}", MUTED))
        return
    yield line(Span(f"{INDENT}Measured by the kernel", STRONG))
    places = {each.rank: each for each in attempt.placement}
    begun = {each.rank: each.started_at for each in attempt.replicas}
    ends = {each.rank: each.ended_at for each in attempt.replicas}
    rows = []
    for use in detail.use:
        since = begun.get(use.rank)
        ran = (ends.get(use.rank) or around.context.now) - since if since is not None else 0
        rows.append(_use(use, places[use.rank], ran))
    titles = ("RANK", "NODE", "CPU TIME", "CPUS BUSY", "MEMORY NOW", "AT MOST", "OF")
    yield from small_table(titles, rows, right=(2, 3, 4, 5, 6))


def _use(use: ReplicaUse, place: Allocation, ran_ms: int) -> tuple[str, ...]:
    busy = f"{use.cpu_ms / ran_ms:.1f} of {place.cpus}" if use.cpu_ms is not None and ran_ms > 0 else UNKNOWN
    return (
        str(use.rank),
        safe(place.node),
        UNKNOWN if use.cpu_ms is None else units.duration(use.cpu_ms // 1000),
        busy,
        *(UNKNOWN if each is None else units.memory(each) for each in (use.memory_mib, use.peak_memory_mib)),
        units.memory(place.memory_mib),
    )


def _why_unknown(detail: JobDetail) -> str:
    if detail.row.state not in OCCUPYING:
        return GONE
    attempt = detail.job.attempt
    limits = next((each.limits for each in attempt.replicas if each.limits), "") if attempt is not None else ""
    return f"{NO_CGROUP} (limits: {safe(limits)})." if limits.startswith("soft") else UNMEASURED


def _allocation(part: Allocation) -> str:
    """`n01: 4 CPUs, 16G, 2 cards`."""
    words = [units.counted(part.cpus, "CPU"), units.memory(part.memory_mib)]
    if part.card_milli:
        number = units.cards(part.card_milli)
        words.append(f"{number} {'card' if part.card_milli == WHOLE_CARD else 'cards' if number > 1 else 'of a card'}")
    return f"{safe(part.node)}: {', '.join(words)}"


def _fact(label: str, text: str) -> Line:
    return line(Span(f"{INDENT}{label:<{LABEL}}", MUTED), text)
