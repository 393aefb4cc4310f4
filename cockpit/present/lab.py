"""The policy lab's result: figures of all jobs and by user, account and queue, today's beside the changed ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import fsum
from typing import Final

import msgspec

from cockpit.engine.replay.lab import NEVER, Outcome, PastJob, bounded_slowdown
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, STRONG, Line, Span, line, small_table

BAR_COLUMNS: Final = 24
MOST_BARS: Final = 6
"""Most users, accounts or queues of one kind in the chart; the table has all."""


class LabGroup(StrEnum):
    """What the jobs of a row have in common."""

    ALL = "all"
    USER = "user"
    ACCOUNT = "account"
    QUEUE = "queue"


class LabFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of some jobs in one schedule. Waits in seconds, of the jobs that start."""

    mean_wait: float
    longest_wait: int
    mean_slowdown: float
    never: int
    """Jobs that never start."""


class LabRow(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a group of jobs: as recorded, as replayed under the present rules, and under the changed ones."""

    group: LabGroup
    name: str
    jobs: int
    recorded_wait: float | None
    """Mean of the waits that were recorded; None: none was."""
    today: LabFigures
    changed: LabFigures


class LabReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the lab."""

    rows: tuple[LabRow, ...]
    today: Outcome
    changed: Outcome
    assumed: int
    """Jobs that had not ended, and that were taken to run until their time limits."""
    changes: tuple[str, ...]
    """What is different, in words."""


def lab_report(past: Sequence[PastJob], today: Outcome, changed: Outcome, changes: Sequence[str]) -> LabReport:
    """Return the report: first the row of all jobs, then by user, account and queue, most jobs first."""
    places: dict[tuple[LabGroup, str], list[int]] = {(LabGroup.ALL, ""): [*range(len(past))]}
    for place, job in enumerate(past):
        for group, name in ((LabGroup.USER, job.user), (LabGroup.ACCOUNT, job.account), (LabGroup.QUEUE, job.queue)):
            if name:
                places.setdefault((group, name), []).append(place)
    order = [*LabGroup]
    keys = sorted(places, key=lambda key: (order.index(key[0]), -len(places[key]), key[1]))
    rows = tuple(_row(group, name, places[group, name], past, today, changed) for group, name in keys)
    assumed = sum(job.is_assumed for job in past)
    return LabReport(rows=rows, today=today, changed=changed, assumed=assumed, changes=tuple(changes))


def _row(
    group: LabGroup, name: str, places: Sequence[int], past: Sequence[PastJob], today: Outcome, changed: Outcome
) -> LabRow:
    recorded = [seconds for place in places if (seconds := past[place].recorded_seconds) is not None]
    return LabRow(
        group=group,
        name=name,
        jobs=len(places),
        recorded_wait=fsum(recorded) / len(recorded) if recorded else None,
        today=_figures(places, past, today),
        changed=_figures(places, past, changed),
    )


def _figures(places: Sequence[int], past: Sequence[PastJob], outcome: Outcome) -> LabFigures:
    started = [place for place in places if outcome.waits[place] != NEVER]
    waits = [outcome.waits[place] for place in started]
    slowdowns = [bounded_slowdown(outcome.waits[place], past[place].arrival.runs_ms // 1000) for place in started]
    return LabFigures(
        mean_wait=fsum(waits) / len(waits) if waits else 0.0,
        longest_wait=max(waits, default=0),
        mean_slowdown=fsum(slowdowns) / len(slowdowns) if slowdowns else 0.0,
        never=len(places) - len(started),
    )


def lab_lines(report: LabReport, columns: int) -> Iterator[Line]:
    """Yield the report as a page: what is different, the whole cluster, and a table and a chart by group."""
    total = report.rows[0]
    yield line(Span("Policy lab", STRONG), f"  {units.counted(total.jobs, 'job')}, today's rules beside: ")
    yield from (line(INDENT, Span(safe(each), STRONG)) for each in report.changes or ("no change",))
    if report.assumed:
        words = f"{units.counted(report.assumed, 'job')} had not ended, taken to run until the time limit"
        yield line(Span(f"{INDENT}{words}", MUTED))
    yield line()
    yield from small_table(("", "TODAY", "CHANGED", ""), list(_whole(report)))
    for group in (LabGroup.USER, LabGroup.ACCOUNT, LabGroup.QUEUE):
        rows = [row for row in report.rows if row.group is group]
        if rows:
            yield line()
            yield from _group(group, rows, columns)


def _whole(report: LabReport) -> Iterator[tuple[str, ...]]:
    """Yield the lines about the whole cluster: title, today, changed, difference."""
    total = report.rows[0]
    today, changed = total.today, total.changed
    yield "mean wait", *_durations(today.mean_wait, changed.mean_wait)
    yield "longest wait", *_durations(today.longest_wait, changed.longest_wait)
    yield "mean bounded slowdown", f"{today.mean_slowdown:.2f}", f"{changed.mean_slowdown:.2f}", ""
    for title, field in (("CPUs in use", "cpu_utilisation"), ("cards in use", "card_utilisation")):
        yield title, *(f"{getattr(each, field):.1%}" for each in (report.today, report.changed)), ""
    hours = (report.today.stranded_card_hours, report.changed.stranded_card_hours)
    yield "card-hours stranded", *map(units.tenths, hours), _signed(hours[1] - hours[0])
    if today.never or changed.never:
        yield "jobs that never start", str(today.never), str(changed.never), _signed(changed.never - today.never)


def _signed(number: float) -> str:
    return "" if not round(number, 1) else f"{'+' if number > 0 else '-'}{units.tenths(abs(number))}"


def _durations(today: float, changed: float) -> tuple[str, str, str]:
    difference = round(changed) - round(today)
    sign = "+" if difference > 0 else "-"
    words = f"{sign}{units.spoken(abs(difference))}" if difference else ""
    return units.spoken(round(today)), units.spoken(round(changed)), words


def _group(group: LabGroup, rows: Sequence[LabRow], columns: int) -> Iterator[Line]:
    """Yield a table of the rows, then a chart: for each name a bar of today's mean wait and one of the changed."""
    cells = [
        (
            safe(row.name),
            str(row.jobs),
            *_durations(row.today.mean_wait, row.changed.mean_wait),
            f"{row.today.mean_slowdown:.2f}",
            f"{row.changed.mean_slowdown:.2f}",
        )
        for row in rows
    ]
    titles = (group.upper(), "JOBS", "WAIT TODAY", "CHANGED", "", "SLOWDOWN TODAY", "CHANGED")
    yield from small_table(titles, cells)
    shown = rows[:MOST_BARS]
    most = max(max(row.today.mean_wait, row.changed.mean_wait) for row in shown)
    cells_of_bar = min(BAR_COLUMNS, max(columns - 40, 8))
    if not most:
        return
    yield line()
    for row in shown:
        for title, figures, role in (("today", row.today, "queued"), ("changed", row.changed, "running")):
            name = safe(row.name) if title == "today" else ""
            yield line(
                Span(f"{INDENT}{name[:16]:<16} ", MUTED),
                f"{title:<8}",
                *bar(figures.mean_wait / most, cells_of_bar, role),
                f" {units.spoken(round(figures.mean_wait))}",
            )
