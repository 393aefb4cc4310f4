"""The panel about the queue under the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.model.view import QueueKind, QueueRow
from cockpit.present import units
from cockpit.present.cells.queues import BORROWED, KEPT, OWN
from cockpit.present.columns import Context
from cockpit.present.filters import quoted
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.tables.queues import RESOURCES, amount_text, amount_words, borrowed_words, queue_title, share

INDENT = "  "
NO_TREE = "There is no quota tree. For administrators: cockpit quota apply FILE"


def queue_answer(
    row: QueueRow,
    rows: Sequence[QueueRow],
    context: Context,
    keys: Mapping[str, str],
    columns: int,
    *,
    brief: bool = False,
    takes_tree: bool = True,
) -> Iterator[Line]:
    """Harmless lines. `rows`: all queues; `keys`: of actions by id. `brief`: three lines, of signs the last.
    `takes_tree`: there could be a quota tree."""
    where = "queue" if row.kind is QueueKind.QUOTA else str(row.kind)
    title = safe(row.path) if row.kind is QueueKind.QUOTA else queue_title(row)
    left = line(Span(f"{where} {title}", ACCENT), Span(f"  {_verdict(row, context)}", STRONG))
    yield spread(left, line(Span(keys.get("queue_jobs", "Enter"), ACCENT), Span(" its jobs", MUTED)), columns)
    if not brief:
        yield line(Span(f"{INDENT}jobs      ", MUTED), _jobs(row))
    yield line(Span(f"{INDENT}holds     ", MUTED), ", ".join(_holds(row)) or "nothing")
    if brief and any(each.kind is QueueKind.QUOTA for each in rows):
        yield line(Span(f"{INDENT}signs  ", MUTED), *legend_line())
    if row.kind is not QueueKind.QUOTA:
        if takes_tree and not any(each.kind is QueueKind.QUOTA for each in rows):
            yield line(Span(f"{INDENT}{NO_TREE}", MUTED))
        return
    if lent := ", ".join(_lent(row)):
        yield line(Span(f"{INDENT}lends     ", MUTED), f"{lent}, and gets it back as soon as its jobs ask for it")
    if row.projects:
        yield line(Span(f"{INDENT}projects  ", MUTED), safe(", ".join(row.projects)))
    if row.since is not None:
        age = units.spoken(max(0, (context.now - row.since) // 1000))
        yield line(Span(f"{INDENT}name      ", MUTED), safe(row.name), Span(f", there for {age}", MUTED))


def jobs_filter(row: QueueRow, below: Sequence[QueueRow]) -> str | None:
    """What shows the jobs of a queue and of those below it in the list of jobs; None: none can belong to it."""
    if row.kind is QueueKind.PARTITION:
        return f"partition:{quoted(row.path)}" if row.path else ""
    if row.kind is QueueKind.LICENCE:
        return None
    projects = [project for each in below for project in each.projects]
    return f"project:{','.join(map(quoted, projects))}" if projects else None


def legend_line() -> Line:
    """What the bars say."""
    return line(
        Span(f"   {OWN} ", "running"),
        Span("its own   ", MUTED),
        Span(f"{BORROWED} ", "tight"),
        Span("borrowed   ", MUTED),
        Span(f"{KEPT} ", "idle"),
        Span("its own, not in use", MUTED),
    )


def _verdict(row: QueueRow, context: Context) -> str:
    if row.kind is not QueueKind.QUOTA:
        place = "here" if row.kind is QueueKind.PARTITION else "for it"
        return f"{units.counted(row.waiting, 'job')} wait{'s' if row.waiting == 1 else ''} {place}."
    borrowed = borrowed_words(row, context)
    if borrowed:
        return f"borrows {', '.join(borrowed)}; lenders may take it back."
    if row.waiting and row.max_jobs is not None and row.running >= row.max_jobs:
        return f"lets {units.counted(row.max_jobs, 'job')} run at a time."
    if not row.level:
        return "is what all queues share."
    return "holds no more than its own." if any(row.used.values()) else "holds nothing."


def _jobs(row: QueueRow) -> str:
    most = f", at most {units.grouped(row.max_jobs)} at once" if row.max_jobs is not None else ""
    return f"{row.running} running, {row.waiting} waiting{most}"


def _holds(row: QueueRow) -> Iterator[str]:
    for resource, name in RESOURCES.items():
        held = share(row, resource)
        if held.used or held.min or held.max:
            bound = f" of {amount_text(resource, held.max)}" if held.max is not None else ""
            own = f" ({amount_text(resource, held.min)} its own)" if held.min and row.level else ""
            yield f"{amount_text(resource, held.used)}{bound} {name}{own}"


def _lent(row: QueueRow) -> Iterator[str]:
    """What is kept for it and idle; the root has nobody to lend to."""
    for resource in RESOURCES if row.level else ():
        held = share(row, resource)
        if held.min > held.used:
            yield amount_words(resource, held.min - held.used)
