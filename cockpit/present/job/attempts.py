"""The earlier attempts of a job: how each ended, and why there were several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.model.attempt import EndCause
from cockpit.model.resilience import OnSlow
from cockpit.present.folding import id_text
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.safe import safe
from cockpit.present.states import ended_words, exit_sentence, retry_words
from cockpit.present.units import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.model.attempt import Attempt, ExitStatus, Replica
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.spec import JobSpec
    from cockpit.present.columns import Context

MOST: Final = 5
"""Number of attempts that are listed, the last ones."""


def attempt_id(row: JobRow) -> str:
    """Return the job's id, followed by its attempt from the second one on: `123`, `123#2`."""
    return f"{id_text(row)}#{row.attempt}" if row.attempt > 1 else id_text(row)


def attempt_facts(detail: JobDetail, context: Context) -> Iterator[tuple[str, str]]:
    """Yield label and text of each line: what happens after a failure, and how earlier attempts ended; nothing without
    either."""
    if follows := _after_failure(detail.job.spec):
        yield "on failure", follows
    if (resume := detail.job.spec.resume) is not None and resume.performance is not None:
        moves = ", and it resumes on other nodes" if resume.performance.action is OnSlow.RESCHEDULE else ""
        yield "when slow", f"alert above {resume.performance.threshold:g} of an iteration's time{moves}"
    earlier = detail.job.earlier
    if not earlier:
        return
    retries = f" · {retry_words(detail.row.retries)}" if detail.row.retries is not None else ""
    yield "attempts", f"{len(earlier) + 1}{retries}"
    # The last ones: they led to the present attempt.
    for attempt in earlier[-MOST:]:
        yield f"attempt #{attempt.number}", _outcome_text(attempt, context)


def _after_failure(spec: JobSpec) -> str:
    if spec.resume is not None:
        return f"resumes, {_times(spec.most_retries)}; has {duration(spec.resume.grace_seconds)} for a checkpoint"
    worker = spec.most_worker_retries
    begins = [f"begins again, {_times(spec.most_retries)}"] if spec.most_retries else []
    begins += [f"another worker takes the place of one, {_times(worker)}"] if worker else []
    return "; ".join(begins)


def _times(count: int) -> str:
    return "once" if count == 1 else f"up to {count} times"


def _outcome_text(attempt: Attempt, context: Context) -> str:
    # An attempt may end before any of its containers started.
    starts = [each.started_at for each in attempt.replicas if each.started_at is not None]
    lasted = "never started"
    if starts:
        moments = (min(starts), attempt.ended_at or context.now)
        lasted = "from {} to {}".format(*(clock(each, context.now, context.zone) for each in moments))
    nodes = listed(dict.fromkeys(safe(part.node) for part in attempt.placement))
    return " · ".join(filter(None, (f"on {nodes}", lasted, _why_over(attempt))))


def _why_over(attempt: Attempt) -> str:
    """Return why an attempt ended: the exit of the first replica that failed, or another cause."""
    # What ended the attempt is its cause; the exit codes of the replicas then only follow from it.
    if attempt.cause is not EndCause.EXIT and attempt.cause is not None:
        lost = _first_end(each for each in attempt.replicas if each.exit is not None and each.exit.lost)
        return safe(lost.lost) if lost is not None else ended_words(attempt.cause)
    first = _first_end(each for each in attempt.replicas if each.exit is not None and not each.exit.ok)
    return exit_sentence(first) if first is not None else ""


def _first_end(replicas: Iterable[Replica]) -> ExitStatus | None:
    """Return the exit of the replica that ended first: the others are mostly ended because of it."""
    first = min(replicas, key=lambda each: (each.ended_at or 0, each.rank), default=None)
    return first.exit if first is not None else None
