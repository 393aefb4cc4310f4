"""The Usage tab of a job's page: its allocations, for how long it held them, and its measured use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model import events
from cockpit.model.spec import WHOLE_CARD
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.job.page import asked_for
from cockpit.present.job_values import elapsed_seconds
from cockpit.present.measured import measured, measured_lines
from cockpit.present.moments import clock
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, Line, Span, line, small_table

if TYPE_CHECKING:
    from cockpit.model.ids import Millis
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.node import Allocation, Placement
    from cockpit.present.job.answer import PanelContext

LABEL: Final = 12
BAR_COLUMNS: Final = 30
HOUR_MS: Final = 3_600_000
NOT_YET: Final = "No resources are allocated yet: the Why tab says why."
GONE: Final = "Its use is not known: it was not measured."
UNMEASURED: Final = "Its use is not known: containers are not measured here."
NO_CGROUP: Final = "What it really uses is not known: no cgroup counts it"


class AttemptUse(NamedTuple):
    """One attempt with its allocations and the time that it held them."""

    number: int
    placement: Placement
    since: Millis
    until: Millis
    parts: Sequence[tuple[Allocation, int]]
    """Each replica's allocation, and the milliseconds for which it held it."""

    def hours(self, amount: Callable[[Allocation], float]) -> str:
        """Return the sum over the replicas of an amount times the hours held, with two digits."""
        # Workers of an elastic job come and go, so that each counts for the time that it was there.
        return f"{sum(amount(part) * held_ms for part, held_ms in self.parts) / HOUR_MS:.2f}"


def usage_tab(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the tab's harmless lines."""
    row = detail.row
    yield _fact("asked for", asked_for(detail.job))
    attempts = list(attempt_uses(detail, panel.context.now))
    if not attempts:
        yield line()
        yield line(Span(INDENT + NOT_YET, MUTED))
        return
    holds = row.holds
    yield _fact("holds" if holds else "held", " · ".join(map(_allocation, attempts[-1].placement)))
    yield from _time(detail, panel)
    yield line()
    titles = ("ATTEMPT", "FROM", "RAN", "CPU-HOURS", "CARD-HOURS")
    yield from small_table(titles, _hours(attempts, panel), right=(2, 3, 4))
    yield line()
    yield from _measured(detail, panel)


def attempt_uses(detail: JobDetail, now: Millis) -> Iterator[AttemptUse]:
    """Yield each attempt that the record or the events still contain, the first one first."""
    attempt = detail.job.attempt
    if attempt is None:
        return
    # Earlier attempts are known only by their events: the record of the job has the last one.
    for record in detail.events:
        body = record.body
        if isinstance(body, events.JobPlaced) and body.attempt < attempt.number:
            until = _ended(detail, body.attempt, record.at)
            parts = [(part, until - record.at) for part in body.placement]
            yield AttemptUse(body.attempt, body.placement, record.at, until, parts)
    starts = [each.started_at for each in attempt.replicas if each.started_at is not None]
    ends = [each.ended_at for each in attempt.replicas if each.ended_at is not None]
    # A job that no longer holds anything has stopped counting, even if a replica has no end of its own.
    over = not detail.row.holds
    until = max(ends, default=detail.job.ended_at or attempt.placed_at) if over else now
    since = min(starts, default=attempt.placed_at)
    yield AttemptUse(attempt.number, attempt.placement, since, until, attempt.held(since, until))


def _ended(detail: JobDetail, attempt: int, placed: Millis) -> Millis:
    # The last replica to end gives the resources of the attempt back; without any it held them for no time.
    ends = (each for each in detail.events if isinstance(each.body, events.ReplicaEnded))
    return max((each.at for each in ends if getattr(each.body, "attempt", 0) == attempt), default=placed)


def _time(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the run time with its part of the time limit; no line for a job that has not started."""
    row = detail.row
    elapsed = elapsed_seconds(row, panel.context)
    if elapsed is None:
        return
    limit = row.time_limit_seconds
    if not row.has_time_limit:
        yield line(Span(f"{INDENT}{'time':<{LABEL}}", MUTED), units.duration(elapsed))
        return
    filled = bar(elapsed / limit, BAR_COLUMNS, str(row.state))
    label = Span(f"{INDENT}{'time':<{LABEL}}", MUTED)
    share = Span(f" of {units.duration(limit)}, {min(elapsed * 100 // limit, 100)} %", MUTED)
    yield (label, Span(f"{units.duration(elapsed)} "), *filled, share)


def _hours(attempts: list[AttemptUse], panel: PanelContext) -> list[tuple[str, ...]]:
    """Return one row per attempt; what was allocated counts, busy or not."""
    context = panel.context
    return [
        (
            str(each.number),
            clock(each.since, context.now, context.zone),
            units.duration((each.until - each.since) // 1000),
            each.hours(lambda part: part.cpus),
            each.hours(lambda part: part.card_milli / WHOLE_CARD),
        )
        for each in attempts
    ]


def _measured(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    replicas = measured(detail, panel.context.now)
    if replicas:
        yield from measured_lines(replicas, panel.columns, panel.node)
    else:
        yield line(Span(f"{INDENT}{why_unknown(detail)}", MUTED))


def why_unknown(detail: JobDetail) -> str:
    """Return the sentence that says why the job's use is not known."""
    if not detail.row.holds:
        return GONE
    attempt = detail.job.attempt
    limits = next((each.limits for each in attempt.replicas if each.limits), "") if attempt is not None else ""
    return f"{NO_CGROUP} (limits: {safe(limits)})." if limits.startswith("soft") else UNMEASURED


def _allocation(part: Allocation) -> str:
    """Return an allocation: `n01: 4 CPUs, 16G, 2 cards`."""
    words = [units.counted(part.cpus, "CPU"), units.memory(part.memory_mib)]
    if part.card_milli:
        number = units.cards(part.card_milli)
        words.append(f"{number} {'card' if part.card_milli == WHOLE_CARD else 'cards' if number > 1 else 'of a card'}")
    return f"{safe(part.node)}: {', '.join(words)}"


def _fact(label: str, text: str) -> Line:
    return line(Span(f"{INDENT}{label:<{LABEL}}", MUTED), text)
