"""What would have shortened a job's wait, from the figures that were recorded with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.model import reasons
from cockpit.model.spec import NO_LIMIT_SECONDS
from cockpit.present import units
from cockpit.present.moments import clock
from cockpit.present.reasons import reason_wording
from cockpit.present.references import job_shown
from cockpit.present.safe import safe
from cockpit.present.waits.causes import WaitCause

if TYPE_CHECKING:
    from cockpit.present.columns import Context
    from cockpit.present.waits.report import WaitPart, WaitReport

MOST_HINTS: Final = 4
PRIORITY: Final = "With a higher priority, or a request for fewer resources"
_EARLIER: Final = "earlier"
_OF_CAUSE: Final = {
    WaitCause.HELD: "With an earlier release",
    WaitCause.BEGIN_TIME: "With an earlier begin time",
    WaitCause.DEPENDENCIES: "With an earlier end of the jobs that it depends on",
}


class Hint(NamedTuple):
    """What would have shortened a wait."""

    kind: str
    """Hints of one kind are shown once, with the sum of what they save."""
    saved: int
    """The most that it would have saved, in seconds."""
    words: str


def hints(report: WaitReport, context: Context) -> list[str]:
    """Return sentences about what would have shortened the wait, the most effective first."""
    best: dict[str, Hint] = {}
    for part in report.parts:
        for hint in _hints_of(part, report, context):
            known = best.get(hint.kind)
            if known is None:
                best[hint.kind] = hint
            # Reasons that come back add up; an earlier start counts from its first chance alone.
            elif hint.kind != _EARLIER:
                best[hint.kind] = known._replace(saved=known.saved + hint.saved)
    # Below a minute nothing is worth an advice.
    ranked = sorted((each for each in best.values() if each.saved >= units.MINUTE), key=lambda each: -each.saved)
    return [f"{each.words} (up to {units.spoken(each.saved)} less)." for each in ranked[:MOST_HINTS]]


def _hints_of(part: WaitPart, report: WaitReport, context: Context) -> Iterator[Hint]:
    """Yield what would have shortened the wait at one part of it."""
    match part.reason:
        case reasons.WouldDelay() as reason:
            yield from _shorter_limit(reason, part, report, context)
        case reasons.NotEnoughFree() as reason:
            yield _smaller_request(reason, part, clock(part.since, context.now, context.zone))
        case reasons.BehindHead():
            yield Hint("priority", part.seconds, PRIORITY)
        case reasons.LimitReached() | reasons.QuotaFull() | reasons.QuotaMaxJobs() | reasons.ArrayFull() as reason:
            words = f"With a higher limit: {reason_wording(reason, context.now, context.zone).brief}"
            yield Hint(words, part.seconds, words)
        case reasons.WaitsForJob() as reason:
            yield Hint("dependency", part.seconds, f"With an earlier end of job {job_shown(reason.job)}")
        case _ if part.cause in _OF_CAUSE:
            yield Hint(part.cause, part.seconds, _OF_CAUSE[part.cause])


def _shorter_limit(reason: reasons.WouldDelay, part: WaitPart, report: WaitReport, context: Context) -> Iterator[Hint]:
    """Yield the time limit with which the job had started at this moment, as it fitted into the time before another
    job's reservation."""
    room, asked = (reason.reserved_at - part.since) // 1000, report.detail.job.spec.time_limit_seconds
    if 0 < room < asked:
        at = clock(part.since, context.now, context.zone)
        words = (
            f"With a time limit of {units.spoken(room)} instead of {limit_words(asked)} it fitted at {at}, before the "
            f"reserved start of job {job_shown(reason.ahead)}"
        )
        yield Hint(_EARLIER, (report.until - part.since) // 1000, words)


def _smaller_request(reason: reasons.NotEnoughFree, part: WaitPart, at: str) -> Hint:
    nearest = reason.nearest[0] if reason.nearest else None
    if reason.other_models_free >= reason.wanted and reason.card_models:
        return Hint("models", part.seconds, f"With other card models: {reason.other_models_free} were free at {at}")
    if nearest is not None and 0 < nearest.free < reason.wanted and nearest.resource is reason.resource:
        free, wanted = _amount(reason.resource, nearest.free), _amount(reason.resource, reason.wanted)
        words = (
            f"With {free} {_UNITS[reason.resource]} on each node instead of {wanted}: {safe(nearest.node)} had that "
            f"much free at {at}"
        )
        return Hint("smaller", part.seconds, words)
    return Hint("priority", part.seconds, PRIORITY)


def limit_words(seconds: int) -> str:
    return units.spoken(seconds) if seconds < NO_LIMIT_SECONDS else "none"


_UNITS: Final = {
    reasons.Resource.CPUS: "CPUs",
    reasons.Resource.MEMORY: "memory",
    reasons.Resource.CARDS: "cards",
    reasons.Resource.CARD_SHARE: "card",
    reasons.Resource.NODE: "nodes",
}


def _amount(resource: reasons.Resource, amount: int) -> str:
    match resource:
        case reasons.Resource.MEMORY:
            return units.memory(amount)
        case reasons.Resource.CARD_SHARE:
            return str(units.cards(amount))
        case _:
            return str(amount)
