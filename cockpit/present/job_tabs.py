"""The tabs of a job's page as lines with roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present import job_page
from cockpit.present.answer import answer
from cockpit.present.columns import Context
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.present.states import GLYPHS
from cockpit.present.tables.jobs import state_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.view import JobDetail

TABS = ("why", "logs", "spec", "replicas", "events")


def head_line(detail: JobDetail, context: Context) -> Line:
    """Which job, whose, in what state."""
    row = detail.row
    state = Span(f"{GLYPHS[row.state]} {state_text(row, context)}", str(row.state))
    return line(Span(f" {row.id} ", MUTED), Span(safe(row.name), ACCENT), Span(f"  {safe(row.user)}  ", MUTED), state)


def tab_lines(tab: str, detail: JobDetail, context: Context) -> list[Line]:
    """The lines of a tab other than the logs, which are followed."""
    makers = {"why": _why, "spec": _spec, "replicas": _replicas, "events": _events}
    return list(makers[tab](detail, context))


def _why(detail: JobDetail, context: Context) -> Iterator[Line]:
    yield from answer(detail.row, detail, context)
    yield line()
    yield from map(_fact, job_page.facts(detail, context))
    kept = list(job_page.kept(detail, context))
    if kept:
        yield line()
        yield line(Span(kept[0], "held"))
        yield line(
            Span("  s", ACCENT),
            " look inside   ",
            Span("+", ACCENT),
            " keep longer   ",
            Span("-", ACCENT),
            " remove now",
        )


def _spec(detail: JobDetail, context: Context) -> Iterator[Line]:
    del context
    for name, value in _flat("", _as_table(detail)):
        yield line(Span(f"{name:<28}", MUTED), value)


def _as_table(detail: JobDetail) -> dict[str, object]:
    import msgspec

    table = msgspec.to_builtins(detail.job.spec)
    assert isinstance(table, dict)
    return table


def _flat(prefix: str, value: object) -> Iterator[tuple[str, str]]:
    """`specs[0].cpus`, `4` …: one line per plain value."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), item)
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from _flat(f"{prefix}[{index}]", item)
    else:
        yield safe(prefix), safe("–" if value in (None, "", [], ()) else str(value))


def _replicas(detail: JobDetail, context: Context) -> Iterator[Line]:
    lines = list(job_page.replicas(detail, context))
    if not lines:
        yield line(Span("It has not been placed yet.", MUTED))
    for number, text in enumerate(lines):
        yield line(Span(text, STRONG if number == 0 else "text"))


def _events(detail: JobDetail, context: Context) -> Iterator[Line]:
    for text in list(job_page.events(detail, context))[1:]:
        at, _, rest = text.strip().partition("  ")
        yield line(Span(f"{at:<12}", MUTED), rest)


def _fact(text: str) -> Line:
    return line(Span(text[: job_page.LABEL_ROOM], MUTED), text[job_page.LABEL_ROOM :])
