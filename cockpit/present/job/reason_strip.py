"""The strip of reasons over a job's waiting time: what blocked the job, when, and for how long."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cockpit.model.reasons import SchedulerReason
from cockpit.present import units
from cockpit.present.bars import apportioned
from cockpit.present.moments import clock
from cockpit.present.reasons import reason_wording
from cockpit.present.spans import INDENT, MUTED, Line, Span, line
from cockpit.present.waits.periods import ReasonPeriod, reason_periods, waiting_time
from cockpit.present.width import pad, widest

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.reasons import Reason
    from cockpit.present.job.answer import PanelContext

MOST_COLUMNS: Final = 100
MOST_LINES: Final = 12
"""Number of changes that are listed in words; the strip shows all."""
BLOCK: Final = "▆"
ROLES: Final = tuple(f"hue{number}" for number in range(8))
"""Colour roles of the kinds of reasons, in the order in which the kinds first occurred."""
UNSEEN: Final = "·"
UNSEEN_WORDS: Final = "not seen by this engine"
UNRECORDED_WORDS: Final = "no cockpit was connected"
RECORDED: Final = "as a cockpit saw it while it was connected"
NOTHING_RECORDED: Final = "no cockpit saw anything happen to it while one was connected"


Signs = dict[Hashable, Span]


def strip_lines(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the strip and its legend; no lines for a job that did not wait, or without any recorded reason."""
    since, until = waiting_time(detail, panel.context.now)
    stretches = list(reason_periods(detail, since, until))
    if until <= since or not any(each.reason for each in stretches):
        return
    signs = _signs(stretches, letters=panel.letters)
    waited = units.spoken((until - since) // 1000)
    verb = "has waited for" if detail.row.queued else "waited for"
    source = Span(f", {RECORDED}" if detail.recorded else "", MUTED)
    yield line(Span(f"{INDENT}{verb} ", MUTED), waited, source)
    columns = min(panel.columns - 2 * len(INDENT), MOST_COLUMNS)
    yield (Span(INDENT), *_strip(stretches, signs, columns))
    unseen = UNRECORDED_WORDS if detail.recorded else UNSEEN_WORDS
    yield from _legend(stretches, signs, panel, unseen)
    yield line()


def _signs(stretches: Sequence[ReasonPeriod], *, letters: bool) -> Signs:
    """Return the sign of each kind of reason."""
    kinds = dict.fromkeys(_kind(each.reason) for each in stretches if each.reason is not None)
    signs: Signs = {None: Span(UNSEEN, "free")}
    for number, kind in enumerate(kinds):
        signs[kind] = Span(chr(ord("a") + number) if letters else BLOCK, ROLES[number % len(ROLES)])
    return signs


def _sign(stretch: ReasonPeriod, signs: Signs) -> Span:
    return signs[None if stretch.reason is None else _kind(stretch.reason)]


def _kind(reason: Reason) -> Hashable:
    """Return the kind of a reason, which decides its colour: the code for another scheduler's reasons, else the
    type."""
    return reason.code if isinstance(reason, SchedulerReason) else type(reason)


def _strip(stretches: Sequence[ReasonPeriod], signs: Signs, columns: int) -> Iterator[Span]:
    """Yield the strip's spans, each as long as its part of the time and at least one column."""
    # At least one column, as a reason of a minute would vanish in a wait of days.
    counts = apportioned([max(each.until - each.since, 1) for each in stretches], columns, least=1)
    for each, count in zip(stretches, counts, strict=True):
        sign = _sign(each, signs)
        yield Span(sign.text * count, sign.role)


def _legend(stretches: Sequence[ReasonPeriod], signs: Signs, panel: PanelContext, unseen: str) -> Iterator[Line]:
    """Yield a line for each of the last parts of the wait; unrecorded parts below a minute are left out."""
    context = panel.context
    # The scheduler looks at a new job within a moment: that gap is not worth a line.
    entries = [each for each in stretches if each.reason is not None or each.until - each.since >= 60_000]
    if len(entries) > MOST_LINES:
        yield line(Span(f"{INDENT}… {len(entries) - MOST_LINES} before that", MUTED))
    shown = entries[-MOST_LINES:]
    clocks = [clock(each.since, context.now, context.zone) for each in shown]
    lengths = [units.spoken((each.until - each.since) // 1000) for each in shown]
    room = widest(lengths)
    for each, at, length in zip(shown, clocks, lengths, strict=True):
        words = reason_wording(each.reason, context.now, context.zone).brief if each.reason else unseen
        yield line(Span(INDENT), _sign(each, signs), Span(f" {at}  {pad(length, room)}  ", MUTED), Span(words))
