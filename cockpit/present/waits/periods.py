"""The periods of a job's wait: from when until when it waited, and the recorded reason of each part of that time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.model.job import JobState

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.reasons import Reason


class ReasonPeriod(NamedTuple):
    """A part of the waiting time with one reason; None: the reason was not recorded."""

    since: Millis
    until: Millis
    reason: Reason | None


_WAITS_AGAIN: Final = events.JobRequeued | events.PrologFailed | events.PrecheckFailed


def waiting_time(detail: JobDetail, now: Millis) -> tuple[Millis, Millis]:
    """Return the start and end of the job's last wait: from when it was queued to its placement, else its end, else
    now."""
    # A job that was requeued or evicted waits several times; the strip is about the last wait.
    job, attempt = detail.job, detail.job.attempt
    again = (each.at for each in detail.events if isinstance(each.body, _WAITS_AGAIN))
    queued = [job.submitted_at, *again]
    if job.state is JobState.QUEUED:
        return queued[-1], now
    if attempt is None:
        return queued[-1], job.ended_at or now
    # A requeue behind the placement begins another wait, which is not that of this attempt.
    return max(at for at in queued if at <= attempt.placed_at), attempt.placed_at


def reason_periods(detail: JobDetail, since: Millis, until: Millis) -> Iterator[ReasonPeriod]:
    """Yield the parts of the time between two moments with one reason each, in order and without gaps."""
    seen = [(each.since, each.reason) for each in detail.waited if each.since < until]
    # What applied when the wait began may have been recorded before it.
    begun = [reason for at, reason in seen if at <= since][-1:]
    later = [(at, reason) for at, reason in seen if at > since]
    marks: list[tuple[Millis, Reason | None]] = [(since, begun[0] if begun else None), *later]
    for (start, reason), (end, _) in pairwise([*marks, (until, None)]):
        yield ReasonPeriod(start, end, reason)
