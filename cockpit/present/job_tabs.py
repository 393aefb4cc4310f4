"""The tabs of a job's page as lines with roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.present import job_page
from cockpit.present.answer import Around, verdict
from cockpit.present.events import event_sentence, exit_sentence
from cockpit.present.folding import id_text
from cockpit.present.moments import clock
from cockpit.present.priority import priority_lines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.states import GLYPHS
from cockpit.present.tables.jobs import state_text
from cockpit.present.width import pad, widest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.model.job import Replica
    from cockpit.model.node import Allocation
    from cockpit.model.view import JobDetail
    from cockpit.present.columns import Context

TABS = ("why", "logs", "spec", "replicas", "events", "record")
INDENT = "  "


def head_line(detail: JobDetail, around: Around) -> Line:
    """Which job, whose, in what state; at the right its place in the queue."""
    row = detail.row
    state = Span(f"{GLYPHS[row.state]} {state_text(row, around.context)}", str(row.state))
    left = line(
        Span(f" {id_text(row)} ", MUTED), Span(safe(row.name), ACCENT), Span(f"  {safe(row.user)}  ", MUTED), state
    )
    if detail.explanation is None:
        return left
    place = line(Span("place ", MUTED), Span(str(detail.explanation.position), STRONG), Span(" in the queue ", MUTED))
    return spread(left, place, around.columns)


def tab_lines(tab: str, detail: JobDetail, around: Around) -> list[Line]:
    """The lines of a tab other than the logs, which are followed."""
    makers = {"why": _why, "spec": _spec, "replicas": _replicas, "events": _events, "record": _record}
    return list(makers[tab](detail, around))


def _why(detail: JobDetail, around: Around) -> Iterator[Line]:
    yield from verdict(detail.row, msgspec.structs.replace(detail, priority=()), around)
    yield line()
    if made_of := list(priority_lines(detail)):
        yield from (*made_of, line())
    for text in job_page.facts(detail, around.context):
        yield line(Span(INDENT + text[: job_page.LABEL_ROOM], MUTED), text[job_page.LABEL_ROOM :])
    if detail.row.held_until is not None:
        yield line()
        yield line(Span(f"{INDENT}From a shell:", MUTED))
        yield from (line(Span(INDENT + text, MUTED)) for text in list(job_page.kept(detail, around.context))[1:])


def _spec(detail: JobDetail, _: Around) -> Iterator[Line]:
    """The job file that would ask for the same, as `cockpit submit` reads it."""
    from cockpit.formats.specfile import spec_as_yaml

    for text in spec_as_yaml(detail.job.spec).rstrip("\n").split("\n"):
        yield _yaml_line(safe(text))


def _record(detail: JobDetail, _: Around) -> Iterator[Line]:
    """What the engine keeps of the job, as it keeps it."""
    text = msgspec.json.format(msgspec.json.encode(detail.job), indent=2).decode()
    for each in text.split("\n"):
        name, colon, value = each.partition(": ")
        if colon and name.endswith('"'):
            yield line(Span(INDENT + safe(name), ACCENT), Span(colon, MUTED), safe(value))
        else:
            yield line(Span(INDENT + safe(each)))


def _yaml_line(text: str) -> Line:
    """A field's name in the accent, its value as text, list marks and blocks quiet."""
    rest = text.lstrip(" -")
    lead, (name, colon, value) = text[: len(text) - len(rest)], rest.partition(":")
    is_field = colon and name.replace("_", "").isalnum() and (not value or value.startswith(" "))
    if not is_field:
        return line(Span(INDENT + lead, MUTED), rest)
    return line(Span(INDENT + lead, MUTED), Span(name, ACCENT), Span(colon, MUTED), value)


def _replicas(detail: JobDetail, around: Around) -> Iterator[Line]:
    attempt = detail.job.attempt
    if attempt is None:
        yield line(Span(f"{INDENT}It has not been placed yet; the first tab says why.", MUTED))
        return
    places = {each.rank: each for each in attempt.placement}
    rows = [_replica(each, places.get(each.rank), around.context) for each in attempt.replicas]
    titles = ("RANK", "NODE", "CARDS", "STARTED", "LIMITS", "STATE")
    if attempt.number > 1:
        yield line(Span(f"{INDENT}Attempt {attempt.number}", STRONG))
    yield from _aligned(titles, rows)


def _replica(replica: Replica, place: Allocation | None, context: Context) -> tuple[str, ...]:
    started = clock(replica.started_at, context.now, context.zone) if replica.started_at is not None else "–"
    ended = exit_sentence(replica.exit) if replica.exit is not None else "runs" if replica.started_at else "not started"
    node = safe(place.node) if place is not None else "–"
    return str(replica.rank), node, _slots(place), started, safe(replica.limits) or "–", ended


def _slots(place: Allocation | None) -> str:
    """`1, 2` whole cards, `1(2)` the second slice of the first."""
    parts = place.slices if place is not None else ()
    return ", ".join(f"{part.card + 1}" + ("" if part.slot is None else f"({part.slot + 1})") for part in parts) or "–"


def _events(detail: JobDetail, around: Around) -> Iterator[Line]:
    context = around.context
    rows = [
        (clock(each.at, context.now, context.zone), safe(each.actor), event_sentence(each, context.zone))
        for each in detail.events
    ]
    yield from _aligned(("WHEN", "WHO", "WHAT"), rows)


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    """A small table, its last column as long as it is."""
    widths = [widest([titles[number], *(row[number] for row in rows)]) for number in range(len(titles) - 1)]

    def cells(texts: Sequence[str]) -> list[str]:
        return [pad(text, width) + INDENT for text, width in zip(texts[:-1], widths, strict=True)]

    yield line(Span(INDENT + "".join(cells(titles)) + titles[-1], MUTED))
    for row in rows:
        yield line(Span(INDENT + "".join(cells(row)), MUTED), row[-1])
