"""The answer panel: what stands in the way of the job under the cursor, how it gets on, or how it ended."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.model.job import JobState
from cockpit.model.reasons import NotEnoughFree
from cockpit.model.view import JobDetail, JobRow
from cockpit.present import units
from cockpit.present.columns import Context
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.safe import safe, safe_lines
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.present.states import seconds_left
from cockpit.present.tables.jobs import elapsed_seconds, why

PROGRESS_COLUMNS = 30
TAIL_LINES = 3


def answer(row: JobRow, detail: JobDetail | None, context: Context) -> Iterator[Line]:
    """Harmless lines, the sentence first. `detail` may come later than the row, or be of an older version of it."""
    yield _head(row, context)
    match row.state:
        case JobState.QUEUED:
            yield from _waiting(row, detail, context)
        case JobState.SUCCEEDED | JobState.STOPPED | JobState.ERROR | JobState.EXPIRED:
            yield from _ended(row, detail, context)
        case _:
            yield from _occupying(row, detail, context)


def _head(row: JobRow, context: Context) -> Line:
    sentence = why(row, context) or _plain(row)
    role = str(row.state) if row.ended_at is not None else STRONG
    return line(Span(f"{row.id} ", MUTED), Span(safe(row.name), ACCENT), Span(f"  {sentence}", role))


def _plain(row: JobRow) -> str:
    where = f" on {listed(row.placed_on)}" if row.placed_on else ""
    words = {
        JobState.SUCCEEDED: "succeeded",
        JobState.STARTING: f"is being started{where}",
        JobState.RUNNING: f"runs{where}",
    }
    return words.get(row.state, str(row.state))


def _waiting(row: JobRow, detail: JobDetail | None, context: Context) -> Iterator[Line]:
    explanation = detail.explanation if detail is not None else None
    if explanation is not None:
        yield line(Span("place ", MUTED), f"{explanation.position}", Span(" in the queue", MUTED), *_ahead(detail))
        if explanation.reserved_at is not None:
            at = clock(explanation.reserved_at, context.now, context.zone)
            yield line(Span("starts no later than ", MUTED), Span(at, STRONG))
    yield line(Span("waits since ", MUTED), clock(row.submitted_at, context.now, context.zone), *_asks(row))
    if isinstance(row.reason, NotEnoughFree) and row.reason.other_models_free:
        other = units.counted(row.reason.other_models_free, "card")
        yield line(Span("other models  ", MUTED), f"{other} of models that it does not accept are free")


def _ahead(detail: JobDetail | None) -> Iterator[Span]:
    ahead = detail.explanation.ahead if detail is not None and detail.explanation is not None else ()
    if ahead:
        yield Span(f"   ahead of it: {listed(map(str, ahead))}", MUTED)


def _asks(row: JobRow) -> Iterator[Span]:
    models = listed(row.card_models, "or")
    cards = f", {units.cards(row.card_milli)} {models or 'cards'}" if row.card_milli else ""
    yield Span(
        f"   asks for {units.counted(row.nodes, 'node')}, {units.counted(row.cpus, 'CPU')}, "
        f"{units.memory(row.memory_mib)}{cards}",
        MUTED,
    )


def _occupying(row: JobRow, detail: JobDetail | None, context: Context) -> Iterator[Line]:
    elapsed = elapsed_seconds(row, context) or 0
    part = elapsed / row.time_limit_seconds
    filled = units.bar(part, PROGRESS_COLUMNS)
    left = units.spoken(max(row.time_limit_seconds - elapsed, 0) // 60 * 60 or 60)
    yield line(
        Span(f"{units.spoken(elapsed // 60 * 60) if elapsed >= 60 else 'just started'} ", "text"),
        Span(filled, str(row.state)),
        Span(f" of {units.spoken(row.time_limit_seconds)}, {left} left", MUTED),
    )
    yield line(
        Span("started ", MUTED), clock(row.started_at or row.state_since, context.now, context.zone), *_asks(row)
    )
    yield from _tail(detail)


def _ended(row: JobRow, detail: JobDetail | None, context: Context) -> Iterator[Line]:
    if row.held_until is not None:
        left = units.countdown(seconds_left(row.held_until, context.now))
        until = clock(row.held_until, context.now, context.zone)
        yield line(Span("its container is kept for a look inside until ", MUTED), Span(f"{until}, {left} left", "held"))
    if row.ended_at is not None:
        elapsed = units.spoken(elapsed_seconds(row, context) or 0)
        yield line(
            Span("ended ", MUTED), clock(row.ended_at, context.now, context.zone), Span(f" after {elapsed}", MUTED)
        )
    yield from _tail(detail)


def _tail(detail: JobDetail | None) -> Iterator[Line]:
    if detail is None or not detail.log_tail.strip():
        return
    for text in safe_lines(detail.log_tail).rstrip("\n").split("\n")[-TAIL_LINES:]:
        yield line(Span("│ ", MUTED), Span(text, "text"))
