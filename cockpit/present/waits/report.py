"""The report on a job's last wait: how long each cause kept it, what would have shortened it, and who was ahead.

It is made from what was recorded: the reasons over time, and the job's own events. Time for which neither says
anything is reported as not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from cockpit.model import events
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.jobdetail import JobDetail
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Reason
from cockpit.present.waits.causes import WaitCause, cause_of
from cockpit.present.waits.periods import ReasonPeriod, reason_periods, waiting_time

FIRST_LOOK_MS: Final = 60_000
"""A gap before the first recorded reason counts as the scheduler's up to this length; a longer one is not known."""


AT_ONCE_MS: Final = 3_000
"""A whole wait without any reason counts as the scheduler's up to this length: the job started at its first look."""


class WaitPart(NamedTuple):
    """A part of the wait with one cause and, where it was recorded, one reason."""

    since: Millis
    until: Millis
    cause: WaitCause
    reason: Reason | None
    ahead: tuple[JobId, ...] = ()

    @property
    def seconds(self) -> int:
        return (self.until - self.since) // 1000


class WaitReport(NamedTuple):
    """Where the time of a job's last wait went."""

    detail: JobDetail
    since: Millis
    until: Millis
    parts: tuple[WaitPart, ...]
    overtaken_by: tuple[JobRow, ...] = ()
    """Jobs that started while it waited, as far as they are known and visible, in order of their starts."""
    made_room: tuple[JobRow, ...] = ()
    """Jobs that ran when the wait began and ended during it, the last one first: it freed what the job needed, if it
    waited for other jobs."""

    @property
    def seconds(self) -> int:
        return (self.until - self.since) // 1000

    def by_cause(self) -> dict[WaitCause, int]:
        """Return the milliseconds of each cause that occurred, in the order of the causes."""
        sums = dict.fromkeys(WaitCause, 0)
        for part in self.parts:
            sums[part.cause] += part.until - part.since
        return {cause: lasted for cause, lasted in sums.items() if lasted}

    @property
    def ahead(self) -> tuple[JobId, ...]:
        """The jobs that were recorded before it in the queue, in the order in which they were first seen there."""
        return tuple(dict.fromkeys(job for part in self.parts for job in part.ahead))


def wait_report(detail: JobDetail, now: Millis, rows: Sequence[JobRow] = ()) -> WaitReport:
    """Return the report on the job's last wait; of a job that still waits, up to now. `rows`: jobs among which those
    are found that started meanwhile."""
    since, until = waiting_time(detail, now)
    until = max(since, until)
    parts = tuple(_parts(detail, since, until)) if until > since else ()
    meanwhile = [row for row in rows if row.started_at and since <= row.started_at < until and row.id != detail.row.id]
    meanwhile.sort(key=lambda row: (row.started_at or 0, row.id))
    ran = [row for row in rows if row.started_at and row.started_at < since < (row.ended_at or 0) <= until]
    # Of no interest to a job that waited for something else.
    waited_for_jobs = any(part.cause is WaitCause.JOBS for part in parts)
    ran = [row for row in ran if row.id != detail.row.id] if waited_for_jobs else []
    ran.sort(key=lambda row: (-(row.ended_at or 0), row.id))
    return WaitReport(detail, since, until, parts, tuple(meanwhile), tuple(ran))


def _parts(detail: JobDetail, since: Millis, until: Millis) -> Iterator[WaitPart]:
    ahead = {each.since: each.ahead for each in detail.waited}
    # What applied when the wait began may have been recorded before it.
    earlier = [each.ahead for each in detail.waited if each.since <= since][-1:]
    for period in reason_periods(detail, since, until):
        if period.reason is None:
            yield from _unrecorded(detail, period, _is_first_look(period, since, until))
        else:
            front = ahead.get(period.since, earlier[0] if earlier else ())
            cause = cause_of(period.reason)
            yield WaitPart(period.since, period.until, cause, period.reason, front if cause is WaitCause.JOBS else ())


def _is_first_look(period: ReasonPeriod, since: Millis, until: Millis) -> bool:
    """Return whether the scheduler had not looked at the job in this time: it begins the wait and is brief, and a
    reason follows; where none does, nothing may have been recorded at all."""
    lasted = period.until - period.since
    return period.since == since and lasted <= (FIRST_LOOK_MS if period.until < until else AT_ONCE_MS)


def _unrecorded(detail: JobDetail, period: ReasonPeriod, is_first_look: bool) -> Iterator[WaitPart]:
    """Divide a time without recorded reasons by the job's own events: when it was held, when its dependencies were met
    and when its begin time came."""
    spans = list(_spans_of_events(detail, period.until))
    edges = sorted({period.since, period.until, *(at for span in spans for at in span[:2])})
    edges = [at for at in edges if period.since <= at <= period.until]
    otherwise = WaitCause.SCHEDULER if is_first_look else WaitCause.UNKNOWN
    last: WaitPart | None = None
    for begin, end in pairwise(edges):
        cause = next((cause for start, stop, cause in spans if start <= begin and end <= stop), otherwise)
        if last is not None and last.cause is cause:
            last = last._replace(until=Millis(end))
            continue
        if last is not None:
            yield last
        last = WaitPart(Millis(begin), Millis(end), cause, None)
    if last is not None:
        yield last


def _spans_of_events(detail: JobDetail, until: Millis) -> Iterator[tuple[int, int, WaitCause]]:
    """Yield the times in which the job was held, then waited for its dependencies, then for its begin time."""
    spec, begun = detail.job.spec, detail.job.submitted_at
    held_since = begun if spec.hold else None
    met: int | None = None
    for each in detail.events:
        match each.body:
            case events.JobHeld():
                held_since = each.at if held_since is None else held_since
            case events.JobReleased() if held_since is not None:
                yield held_since, each.at, WaitCause.HELD
                held_since = None
            case events.DependencyMet():
                met = each.at
    if held_since is not None and detail.job.state is JobState.QUEUED:
        yield held_since, until, WaitCause.HELD
    if met is not None:
        yield begun, met, WaitCause.DEPENDENCIES
    if spec.begin_at is not None and spec.begin_at > begun:
        yield begun, spec.begin_at, WaitCause.BEGIN_TIME
