"""The tabs of a job's page, as lines with colour roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cockpit.model.masking import masked, masked_spec
from cockpit.present.events.sentences import event_sentence
from cockpit.present.fleet_placement import fleet_lines
from cockpit.present.job import page
from cockpit.present.job.answer import PanelContext, verdict
from cockpit.present.job.attempts import attempt_id
from cockpit.present.job.batch_tasks import batch_lines, trial_lines
from cockpit.present.job.launch import replicas_tab
from cockpit.present.job.priority import priority_tab
from cockpit.present.job.reason_strip import NOTHING_RECORDED, RECORDED, strip_lines
from cockpit.present.job.terminal import terminal_tab
from cockpit.present.job.usage import usage_tab
from cockpit.present.job_values import state_text
from cockpit.present.moments import clock
from cockpit.present.priority import priority_lines
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, hung, line, small_table, spread
from cockpit.present.states import GLYPHS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cockpit.model.jobdetail import JobDetail

TABS = ("why", "priority", "spec", "replicas", "logs", "events", "usage", "terminal", "record")
SHORT_WAIT_SECONDS: Final = 10
"""A shorter wait is not worth a report on the job's page."""
_AS_WRITTEN: Final = frozenset({"spec", "replicas", "record"})
"""Tabs whose lines are not wrapped, so that each line of the original stays one line."""


def head_line(detail: JobDetail, panel: PanelContext) -> Line:
    """Return the line with the job's id, name, user and state; at the right its place in the queue."""
    row = detail.row
    state = Span(f"{GLYPHS[row.state]} {state_text(row, panel.context)}", str(row.state))
    left = line(
        Span(f" {attempt_id(row)} ", MUTED), Span(safe(row.name), ACCENT), Span(f"  {safe(row.user)}  ", MUTED), state
    )
    if detail.explanation is None or detail.explanation.place is None:
        return left
    place = line(Span("place ", MUTED), Span(str(detail.explanation.place), STRONG), Span(" in the queue ", MUTED))
    return spread(left, place, panel.columns)


def tab_lines(tab: str, detail: JobDetail, panel: PanelContext) -> list[Line]:
    """Return the lines of a tab other than the logs, which are followed live. Sentences are wrapped at the edge."""
    lines = _MAKERS[tab](detail, panel)
    return list(lines) if tab in _AS_WRITTEN else [each for whole in lines for each in hung(whole, panel.columns)]


def _why(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the Why tab: the panel's text, the priority, the facts, and the tasks or trials."""
    # Without the priority in one line, as its parts follow in lines of their own.
    yield from verdict(detail.row, msgspec.structs.replace(detail, priority=()), panel)
    yield line()
    if made_of := list(priority_lines(detail)):
        yield from (*made_of, line())
    for text in page.facts(detail, panel.context):
        yield line(Span(INDENT + text[: page.LABEL_ROOM], MUTED), text[page.LABEL_ROOM :])
    if waited := list(_wait(detail, panel)):
        yield from (line(), *waited)
    if of_fleet := list(fleet_lines(detail, panel.context)):
        yield line()
        yield from (line(text) for text in of_fleet)
    if tasks := list(batch_lines(detail, panel.context)):
        yield from (line(), *tasks)
    if trials := list(trial_lines(detail, panel.context)):
        yield from (line(), *trials)
    if detail.row.held_until is not None:
        yield line()
        yield line(Span(f"{INDENT}From a shell:", MUTED))
        yield from (line(Span(INDENT + text, MUTED)) for text in list(page.held_container(detail, panel.context))[1:])


def _wait(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield where the waiting time of a job went that has started or ended, if it waited and anything was recorded."""
    # Late: most screens open no tab of a job.
    from cockpit.present.waits.causes import WaitCause
    from cockpit.present.waits.lines import wait_lines
    from cockpit.present.waits.report import wait_report

    report = wait_report(detail, panel.context.now)
    known = any(part.cause is not WaitCause.UNKNOWN for part in report.parts)
    # Of a job in the queue, the tab begins with why it waits now.
    if not detail.row.queued and known and report.seconds >= SHORT_WAIT_SECONDS:
        yield from wait_lines(report, panel.context, panel.columns, panel.others, letters=panel.letters)


def _spec(detail: JobDetail, _: PanelContext) -> Iterator[Line]:
    """Yield the job file that would submit an equal job, as `cockpit submit` reads it."""
    from cockpit.formats.job.specfile import spec_as_yaml

    attempt, specs = detail.job.attempt, detail.job.spec.specs
    # The file has all alternatives, and the job only one.
    if attempt is not None and len(specs) > 1:
        placed = f"Spec {attempt.spec_index + 1} of {len(specs)} was placed; the others are withdrawn."
        yield line(Span(f"{INDENT}{placed}", MUTED))
        yield line()
    # As a whole: a secret may have several lines.
    for text in masked(spec_as_yaml(masked_spec(detail.job.spec))).rstrip("\n").split("\n"):
        yield _yaml_line(safe(text))


def _record(detail: JobDetail, _: PanelContext) -> Iterator[Line]:
    """Yield the engine's record of the job as indented JSON."""
    text = masked(msgspec.json.format(msgspec.json.encode(detail.job), indent=2).decode())
    for each in text.split("\n"):
        name, colon, value = each.partition(": ")
        if colon and name.endswith('"'):
            yield line(Span(INDENT + safe(name), ACCENT), Span(colon, MUTED), safe(value))
        else:
            yield line(Span(INDENT + safe(each)))


def _yaml_line(text: str) -> Line:
    """Return a line of YAML with roles: the field's name in the accent, its value as text, list marks and
    blocks muted."""
    # A line of YAML is coloured without a parser: the text was written by `spec_as_yaml` in one style.
    rest = text.lstrip(" -")
    lead, (name, colon, value) = text[: len(text) - len(rest)], rest.partition(":")
    is_field = colon and name.replace("_", "").isalnum() and (not value or value.startswith(" "))
    if not is_field:
        return line(Span(INDENT + lead, MUTED), rest)
    return line(Span(INDENT + lead, MUTED), Span(name, ACCENT), Span(colon, MUTED), value)


def _events(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the Events tab: the strip of reasons, then the job's events."""
    context = panel.context
    yield from strip_lines(detail, panel)
    rows = [
        (clock(each.at, context.now, context.zone), safe(each.actor), event_sentence(each, context.zone))
        for each in detail.events
    ]
    if detail.recorded:
        yield line(Span(f"{INDENT}{RECORDED if rows else NOTHING_RECORDED}", MUTED))
    # An empty table would read as if nothing had happened.
    if detail.recorded and not rows:
        return
    yield from small_table(("WHEN", "WHO", "WHAT"), rows)


_MAKERS: Final[Mapping[str, Callable[[JobDetail, PanelContext], Iterator[Line]]]] = {
    "why": _why,
    "priority": priority_tab,
    "spec": _spec,
    "replicas": replicas_tab,
    "events": _events,
    "usage": usage_tab,
    "terminal": terminal_tab,
    "record": _record,
}
