"""The wait report as lines: a bar by cause with its legend, what would have shortened the wait, and who was ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cockpit.present import units
from cockpit.present.bars import apportioned
from cockpit.present.folding import id_text
from cockpit.present.phrases import listed
from cockpit.present.reasons import reason_wording
from cockpit.present.references import job_shown
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, line
from cockpit.present.waits.causes import TITLES, WaitCause
from cockpit.present.waits.hints import hints
from cockpit.present.width import pad, widest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.ids import JobId
    from cockpit.model.jobrow import JobRow
    from cockpit.present.columns import Context
    from cockpit.present.waits.report import WaitReport

BAR_COLUMNS: Final = 60
MOST_NAMED: Final = 5
_SIGNS: Final = dict(zip(WaitCause, "▇▇▇▇▇▇▇·", strict=True))
_LETTERS: Final = dict(zip(WaitCause, "JLDHBNS·", strict=True))
_ROLES: Final = {cause: f"hue{number}" for number, cause in enumerate(WaitCause)} | {WaitCause.UNKNOWN: "free"}


def wait_lines(
    report: WaitReport, context: Context, columns: int, others: Callable[[JobId], JobRow | None], *, letters: bool
) -> Iterator[Line]:
    """Yield the report: a bar by cause with its legend, what would have shortened the wait, and who was ahead."""
    if not report.parts:
        return
    waits = "has waited" if report.detail.row.queued else "waited"
    yield line(Span(f"{INDENT}{waits} ", MUTED), Span(units.spoken(report.seconds), STRONG))
    # Parts below a second are left out, unless there is nothing else.
    every = report.by_cause()
    lasted = {cause: length for cause, length in every.items() if length >= 1000} or every
    signs = _LETTERS if letters else _SIGNS
    counts = apportioned(list(lasted.values()), max(min(columns - 2 * len(INDENT), BAR_COLUMNS), len(lasted)), least=1)
    yield line(
        INDENT,
        *(Span(signs[cause] * count, _ROLES[cause]) for cause, count in zip(lasted, counts, strict=True)),
    )
    spoken = {cause: units.spoken(each // 1000) for cause, each in lasted.items()}
    room, titles = widest(list(spoken.values())), widest([TITLES[cause] for cause in lasted])
    whole = sum(lasted.values())
    for cause, length in sorted(lasted.items(), key=lambda item: -item[1]):
        yield line(
            INDENT,
            Span(signs[cause], _ROLES[cause]),
            f" {pad(TITLES[cause], titles)}  ",
            f"{pad(spoken[cause], room)} ",
            Span(f"{length / whole:>4.0%}", MUTED),
            *_longest(report, cause, context),
        )
    for advice in hints(report, context):
        yield line(Span(f"{INDENT}shorter ", MUTED), advice)
    if words := _ahead_words(report, others):
        yield line(Span(f"{INDENT}ahead ", MUTED), Span(words, ACCENT))
    if report.made_room:
        yield line(Span(f"{INDENT}room ", MUTED), f"{_rows_words(report.made_room)} ended")
    if words := _overtaken_words(report):
        yield line(Span(f"{INDENT}meanwhile ", MUTED), words)


def _longest(report: WaitReport, cause: WaitCause, context: Context) -> Line:
    """Return the reason in words that lasted longest of a cause; empty where none was recorded."""
    lasted: dict[str, int] = {}
    for part in report.parts:
        if part.cause is cause and part.reason is not None:
            words = reason_wording(part.reason, context.now, context.zone).brief
            lasted[words] = lasted.get(words, 0) + part.until - part.since
    return line(Span(f"  {max(lasted, key=lambda words: lasted[words])}", MUTED)) if lasted else ()


def _ahead_words(report: WaitReport, others: Callable[[JobId], JobRow | None]) -> str:
    jobs = report.ahead
    named = [_job_words(job, others(job)) for job in jobs[:MOST_NAMED]]
    return listed([*named, f"{len(jobs) - len(named)} more"]) if len(jobs) > len(named) else listed(named)


def _job_words(job: JobId, row: JobRow | None) -> str:
    return job_shown(job) if row is None else f"{id_text(row)} ({safe(row.user)}, {_held(row)})"


def _held(row: JobRow) -> str:
    return units.counted_cards(row.card_milli) if row.card_milli else units.counted(row.cpus, "CPU")


def _overtaken_words(report: WaitReport) -> str:
    """Return which jobs started while it waited, and how many of them had been submitted after it."""
    rows = report.overtaken_by
    if not rows:
        return ""
    later = sum(row.submitted_at > report.detail.row.submitted_at for row in rows)
    behind = f"; {later} of them came after it" if later else ""
    return f"{_rows_words(rows)} started{behind}"


def _rows_words(rows: Sequence[JobRow]) -> str:
    named = [_job_words(row.id, row) for row in rows[:MOST_NAMED]]
    more = [f"{len(rows) - len(named)} more"] if len(rows) > len(named) else []
    return listed([*named, *more])
