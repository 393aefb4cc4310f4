"""The panel about the card, or the part of one, under the cursor; and what the map's signs mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cockpit.model.ids import job_words
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import NodeRow
from cockpit.present import units
from cockpit.present.card_map import BAR, SHAPES
from cockpit.present.card_rows import CardRow, CardState
from cockpit.present.columns import Context
from cockpit.present.moments import clock
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.states import GLYPHS
from cockpit.present.tables.cards import in_use_words, usage

INDENT = "  "


def card_answer(
    part: CardRow, row: NodeRow, job: JobRow | None, context: Context, columns: int, *, brief: bool
) -> Iterator[Line]:
    """Harmless lines, two where it is to be `brief`. `row`: its node; `job`: who holds it, where the asker may see
    that."""
    place = line(Span(f"{safe(part.node.name)} ", ACCENT), Span(safe(usage(part, context)), ACCENT))
    left = (*place, Span(f"  {_sentence(part, job, context)}", STRONG))
    yield spread(left, line(Span("Enter", ACCENT), Span(" its job", MUTED)) if part.job else (), columns)
    in_use = in_use_words(part, context)
    yield line(Span(f"{INDENT}card    ", MUTED), _hardware(part), Span("   in use  ", MUTED), in_use)
    if not brief:
        if job is not None:
            yield line(Span(f"{INDENT}job     ", MUTED), *_job(job, context))
        yield line(Span(f"{INDENT}node    ", MUTED), _beside(row))
        yield ()


def legend(colours: str, key: str) -> Line:
    """Return the line that explains the signs; `colours` says what colours stand for, `key` switches it."""
    signs = [
        (BAR, "text", "alloc"),
        (GLYPHS[JobState.ERROR], "held", "held"),
        *((SHAPES[state], role, str(state)) for state, role in _EMPTY),
    ]
    spans = [span for sign, role, word in signs for span in (Span(sign, role), Span(f" {word}  ", MUTED))]
    return line(Span(f"{INDENT}signs   ", MUTED), *spans, Span(f" {colours} ", MUTED), Span(f"({key})", ACCENT))


def totals(parts: Iterable[CardRow], *, words: bool) -> Line:
    """Return how much of all cards is allocated, free and stranded; without `words` in the shortest form."""
    milli = dict.fromkeys(CardState, 0)
    for part in parts:
        milli[part.state] += part.milli
    given, total = milli[CardState.ALLOCATED] + milli[CardState.KEPT], sum(milli.values())
    said = [
        Span(
            f"{units.cards(given)} of {units.counted_cards(total)} allocated"
            if words
            else f"{units.cards(given)} alloc"
        )
    ]
    for state in (CardState.FREE, CardState.STRANDED, *((CardState.OUT,) if words else ())):
        if milli[state]:
            role = "warning" if state is CardState.STRANDED else "text"
            said += [Span(" · ", MUTED), Span(f"{units.cards(milli[state])} {state}", role)]
    return tuple(said)


_EMPTY = ((CardState.FREE, "free"), (CardState.STRANDED, "stranded"), (CardState.OUT, "drained"))


def _sentence(part: CardRow, job: JobRow | None, context: Context) -> str:
    size = "the whole card" if part.whole else f"{part.milli}/{WHOLE_CARD} of card {part.card.index + 1}"
    match part.state:
        case CardState.ALLOCATED | CardState.KEPT:
            kept = ", held by its failed container" if part.state is CardState.KEPT else ""
            return f"{safe(part.user)}  {size}{_since(job, context)}{kept}"
        case CardState.STRANDED:
            return f"{size} is free, but no job that waits or runs could use it."
        case CardState.OUT:
            reason = f": {safe(part.node.state_reason)}" if part.node.state_reason else ""
            return f"{size} is free, but the node is {part.node.state}{reason}."
    return f"{size} is free."


def _since(job: JobRow | None, context: Context) -> str:
    if job is None or job.started_at is None:
        return ""
    return f" since {clock(job.started_at, context.now, context.zone)}"


def _job(job: JobRow, context: Context) -> Line:
    state = Span(f"{GLYPHS[job.state]} {job.state}", str(job.state))
    if job.started_at is None:
        return line(f"{job_words(job.id)} {safe(job.name)}  ", state)
    ran = units.duration(((job.ended_at or context.now) - job.started_at) // 1000)
    return line(
        f"{job_words(job.id)} {safe(job.name)}  ", state, f"  {ran} of {units.duration(job.time_limit_seconds)}"
    )


def _beside(row: NodeRow) -> str:
    cpus, memory_mib = max(row.node.cpus - row.used_cpus, 0), max(row.node.memory_mib - row.used_memory_mib, 0)
    pool = f", pool {safe(row.node.pool)}" if row.node.pool else ""
    return f"{units.counted(cpus, 'CPU')} and {units.memory(memory_mib)} of memory free{pool}"


def _hardware(part: CardRow) -> str:
    memory = f" {units.memory(part.card.memory_mib)}" if part.card.memory_mib else ""
    cut = f", cut into {part.card.slices}" if part.card.slices else ""
    return f"{safe(part.card.model)}{memory}{cut}"
