"""Words for a predicted start: the only table from a forecast to its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from cockpit.model.forecast import (
    CameAhead,
    Edited,
    EndedEarly,
    EngineRestarted,
    Forecast,
    LeftQueue,
    LimitFreed,
    MoveCause,
    MovedUp,
    NoBound,
    NodeLost,
    NodeReturned,
    NodesTaken,
    OtherEdited,
    RanLonger,
    Replanned,
    RulesChanged,
    SharesLimit,
    StartMove,
)
from cockpit.model.ids import JobId, Millis
from cockpit.present.columns import Context
from cockpit.present.moments import clock
from cockpit.present.references import job_shown
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, Line, Span, line

MINUTE_MS: Final = 60_000
Named = Callable[[JobId], str]
"""A function that returns the words for a job in a sentence."""

WHY_NO_BOUND: Final[dict[NoBound, str]] = {
    NoBound.PRIORITIES_CHANGE: "priorities change while jobs wait",
    NoBound.LATER_SUBMISSIONS: "jobs that are submitted later may come ahead",
    NoBound.PREEMPTION: "other jobs may take the resources that it waits for",
    NoBound.BORROWED_QUOTA: "it needs quota of other queues, which these use first",
    NoBound.OTHER_CLUSTERS: "the clusters of the fleet have queues of their own",
    NoBound.CONDITION_AHEAD: "a job ahead is being requeued, or waits for another job, a begin time or a limit",
    NoBound.SHARED_LIMIT: "jobs ahead of it may use up a limit that it shares with them",
    NoBound.ROUNDED: "the scheduler rounds its plan (resolution), and jobs ahead may start sooner on other nodes",
    NoBound.NO_RESERVATION: "the scheduler has reserved no start for it yet",
    NoBound.NOTHING_RESERVED: "the scheduler holds nothing back for it; another job that fits first is started",
    NoBound.ADMISSION_CHECKS: "once it has its quota, admission checks come before its start",
    NoBound.NODES_UNSEEN: "you may see no nodes, so that only its quota is known",
    NoBound.NO_TIME_LIMIT: "jobs without a time limit have what it waits for",
}


def likely_words(forecast: Forecast, context: Context) -> str:
    """Return the likely start, which must be known, such as `15:23`. Every list, panel, page and command shows this
    figure."""
    assert forecast.likely_at is not None
    return clock(forecast.likely_at, context.now, context.zone)


def spread_words(forecast: Forecast, context: Context) -> tuple[str, str] | None:
    """Return a label and the moments between which the job starts: `no later than`, `16:05` where the policy promises a
    latest start, else `likely`, `14:40–17:10`. None: neither is known."""
    # A promise says more than a range: it holds, the range is what four of five jobs keep to.
    if forecast.latest_at is not None:
        return "no later than", _rounded_up(forecast.latest_at, context)
    if forecast.likely_from is None or forecast.likely_to is None:
        return None
    # The end of the range is rounded up like a bound, its beginning down: the range on the screen contains the real
    # one.
    first, last = clock(forecast.likely_from, context.now, context.zone), _rounded_up(forecast.likely_to, context)
    return "likely", f"{first}–{last}"


def job_named(job: JobId) -> str:
    """Return `job 4722`, or `job -` for a job that the user may not see."""
    return f"job {job_shown(job)}"


def bound_lines(forecast: Forecast, context: Context, named: Named = job_named) -> Iterator[Line]:
    """Yield the line that says why the start has moved; no line where it has not."""
    if (move := last_move(forecast)) is not None:
        yield line(Span(f"  {move_words(forecast, move, context)}: ", MUTED), *_causes(move, context, named))


def no_bound_lines(forecast: Forecast) -> Iterator[Line]:
    """Yield the line that says why no latest start is promised; no line where one is, or where no start is known."""
    if forecast.no_bound is not None:
        yield line(Span("  no guaranteed latest start: ", MUTED), WHY_NO_BOUND[forecast.no_bound])


def last_move(forecast: Forecast) -> StartMove | None:
    """Return the last change of the latest start, or else of the likely one, that is visible on a clock with minutes;
    None: there is none."""
    return last_visible(forecast.moves) or last_visible(forecast.likely_moves)


def last_visible(moves: Sequence[StartMove]) -> StartMove | None:
    """Return the last of these changes that is visible on a clock with minutes; None: there is none."""
    return next((each for each in reversed(moves) if _is_visible(each)), None)


def move_words(forecast: Forecast, move: StartMove, context: Context) -> str:
    """Return the words for one of the forecast's changes: `latest start moved from 15:40 to 16:05 at 14:02`."""
    at = clock(move.at, context.now, context.zone)
    if move not in forecast.moves:
        before, after = (move.before, move.after or move.before)
        moved = " to ".join(clock(each, context.now, context.zone) for each in (before, after))
        return f"likely start moved from {moved} at {at}"
    if move.after is None:
        return f"latest start {_rounded_up(move.before, context)} no longer guaranteed since {at}"
    return f"latest start moved from {_rounded_up(move.before, context)} to {_rounded_up(move.after, context)} at {at}"


def cause_words(cause: MoveCause, context: Context, named: Named = job_named) -> str:
    """Return the words for what moved a predicted start: `job 4722 came ahead of it`."""
    return _CAUSES[type(cause)](cause, context, named)


def _causes(move: StartMove, context: Context, named: Named) -> Line:
    return line("; ".join(cause_words(each, context, named) for each in move.causes))


def _is_visible(move: StartMove) -> bool:
    return move.after is None or _minute_after(move.before) != _minute_after(move.after)


def _minute_after(moment: Millis) -> int:
    return -(-moment // MINUTE_MS)


def _rounded_up(moment: Millis, context: Context) -> str:
    """Return the clock at the end of the moment's minute: a bound that is cut to 16:05 would be exceeded at
    16:05:30."""
    return clock(Millis(_minute_after(moment) * MINUTE_MS), context.now, context.zone)


def _ran_longer(cause: RanLonger, context: Context, named: Named) -> str:
    sentence = f"{named(cause.job)} keeps its resources longer than planned"
    # An expected end that has passed would be a wrong figure.
    if cause.until is None or cause.until <= context.now:
        return sentence
    return f"{sentence}, until {_rounded_up(cause.until, context)}"


_CAUSES: Final[dict[type[MoveCause], Callable[[Any, Context, Named], str]]] = {
    CameAhead: lambda cause, _, named: f"{named(cause.job)} came ahead of it",
    LimitFreed: lambda cause, _, named: f"no rule stops {named(cause.job)} any more, which is ahead of it",
    SharesLimit: lambda cause, _, named: f"{named(cause.job)} uses up a limit that it, or a job ahead of it, shares",
    RanLonger: _ran_longer,
    MovedUp: lambda cause, _, named: f"{named(cause.job)} moved up to an earlier start",
    NodeLost: lambda cause, *_: f"node {safe(cause.node)} went out of service",
    NodesTaken: lambda cause, *_: f"reservation {safe(cause.reservation)} was made",
    EndedEarly: lambda cause, _, named: f"{named(cause.job)} gives its resources back earlier than planned",
    LeftQueue: lambda cause, _, named: f"{named(cause.job)} is no longer ahead of it",
    NodeReturned: lambda cause, *_: f"node {safe(cause.node)} came into service",
    Edited: lambda *_: "the job was changed",
    OtherEdited: lambda cause, _, named: f"{named(cause.job)} was changed",
    RulesChanged: lambda *_: "the cluster's rules were changed",
    EngineRestarted: lambda *_: "the engine was stopped meanwhile",
    Replanned: lambda *_: "the queue was planned again",
}
