"""Queues and the quota tree: their columns for every output, their bars, and the panel about a queue.

A bar has three signs, which differ without colours too: `━` used within the guarantee, `═` borrowed, `╌` guaranteed and
not used. It is full at the queue's max, or without one at the max of the nearest queue above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from cockpit.model.view import QueueKind, QueueRow
from cockpit.present import units
from cockpit.present.bars import TRACK, TRACK_ROLE
from cockpit.present.columns import NOTHING, Cell, Column, Context, TableView, ValueKind
from cockpit.present.filters import quoted
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, key_hint, line, spread
from cockpit.sched.rules.tres import LICENCES

CPUS: Final = "cpu"
MEMORY: Final = "mem"
CARDS: Final = "gres/gpu"
RESOURCES: Final = {CARDS: "cards", CPUS: "CPUs", MEMORY: "memory", LICENCES: "licences"}
ALL_NODES: Final = "(all nodes)"
"""Name of the queue of a cluster without partitions."""


OWN, BORROWED, UNUSED = "━", "═", "╌"
OWN_ROLE, BORROWED_ROLE, UNUSED_ROLE, FULL_ROLE = "running", "tight", "idle", "error"
LEAST_BAR, MOST_BAR = 6, 40
GAP = 1

Bounds = Mapping[str, int]
"""Amount at which a queue's bar is full, by resource, in thousandths."""


NO_TREE = "There is no quota tree. For administrators: cockpit quota apply FILE"


class Held(msgspec.Struct, frozen=True):
    """Amounts of one resource that a queue uses, is guaranteed and may hold: CPUs, MiB or cards."""

    used: int | float
    min: int | float
    max: int | float | None
    """Most that the queue may hold; None: unlimited."""


_SHARE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"used": {"type": "number"}, "min": {"type": "number"}, "max": {"type": ["number", "null"]}},
    "required": ["used", "min", "max"],
}


def whole(thousandths: int) -> int | float:
    """Return thousandths as whole units: an integer where it is one, else a fraction."""
    return thousandths / 1000 if thousandths % 1000 else thousandths // 1000


def share(row: QueueRow, resource: str) -> Held:
    most = row.max.get(resource)
    used, least = row.used.get(resource, 0), row.min.get(resource, 0)
    return Held(whole(used), whole(least), None if most is None else whole(most))


def borrowed(row: QueueRow, resource: str) -> int | float:
    """Return the amount that the queue uses beyond its guarantee; 0 for the root and for a partition, which cannot
    borrow."""
    # The root has all there is, and what no quota bounds has no guarantee to be beyond.
    if resource not in row.bounded or row.is_shared:
        return 0
    return whole(max(0, row.used.get(resource, 0) - row.min.get(resource, 0)))


def amount_text(resource: str, amount: float | None) -> str:
    """Return an amount: memory in its largest unit, other resources exactly up to a million and with four digits from
    there; a dash: unlimited."""
    if amount is None:
        return NOTHING
    if resource == MEMORY and amount:
        return units.memory(round(amount))
    for unit, size in (("E", 10**18), ("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6)):
        if amount >= size:
            return f"{amount / size:.4g}{unit}"
    # Ten digits: all of a million with thousandths, and no tail of a binary fraction.
    return f"{amount:.10g}"


def borrowed_words(row: QueueRow) -> tuple[str, ...]:
    """Return the amounts that the queue borrows: `4 cards`, `16 CPUs`, `64G memory`."""
    amounts = ((resource, borrowed(row, resource)) for resource in RESOURCES)
    return tuple(amount_words(resource, amount) for resource, amount in amounts if amount)


def amount_words(resource: str, amount: float) -> str:
    """Return an amount with its resource: `4 cards`, `1 CPU`, `64G memory`."""
    name = RESOURCES[resource]
    return f"{amount_text(resource, amount)} {name.removesuffix('s') if amount == 1 else name}"


def queue_title(row: QueueRow) -> str:
    """Return the queue's name; for a queue in the quota tree the last part of its path."""
    return safe(row.path.rpartition("/")[2] if row.kind is QueueKind.QUOTA else row.name) or ALL_NODES


def _age(row: QueueRow, context: Context) -> int | None:
    return None if row.since is None else max(0, (context.now - row.since) // 1000)


def _held_text(resource: str) -> Callable[[QueueRow, Context], str]:
    def text(row: QueueRow, _: Context) -> str:
        # Licences are rows of their own; no queue and no partition holds any.
        if resource == LICENCES and row.kind is not QueueKind.LICENCE:
            return NOTHING
        held = share(row, resource)
        return "/".join(amount_text(resource, amount) for amount in (held.used, held.min, held.max))

    return text


def bounds_of(rows: list[QueueRow]) -> dict[str, Bounds]:
    """Return the bounds of each queue by row id: its own max, else that of the nearest queue above. Parents come first
    in `rows`."""
    bounds: dict[str, Bounds] = {}
    for row in rows:
        # A queue without a max of its own may hold what the queue above it may.
        above = bounds.get(row_id(row, row.path.rpartition("/")[0]), {})
        bounds[row_id(row)] = {**above, **row.max}
    return bounds


def row_id(row: QueueRow, path: str | None = None) -> str:
    """Return an id that differs between a partition and a queue of the tree with equal names."""
    return f"{row.kind}:{row.path if path is None else path}"


def bar(row: QueueRow, resource: str, full: int, columns: int) -> Line:
    """Return the bar of a resource. Every part above 0 takes at least one column while there are enough columns."""
    used, guaranteed = row.used.get(resource, 0), row.min.get(resource, 0)
    borrows = resource in row.bounded and not row.is_shared
    own = min(used, guaranteed) if borrows else used
    parts = (
        (OWN, OWN_ROLE, own),
        (BORROWED, BORROWED_ROLE, used - own),
        (UNUSED, UNUSED_ROLE, guaranteed - own if borrows else 0),
    )
    # More may be in use than the bound allows, after it was lowered; and without any there must be no division by 0.
    top, amount, drawn, spans = max(full, used, guaranteed, 1), 0, 0, list[Span]()
    for sign, role, part in parts:
        amount += part
        # Edges are rounded, not widths, so that errors do not add up; and a part that exists is drawn.
        end = min(columns, max(drawn + (part > 0), round(columns * amount / top)))
        spans.append(Span(sign * (end - drawn), role))
        drawn = end
    return (*spans, Span(TRACK * (columns - drawn), TRACK_ROLE))


def _resource_cell(resource: str, digits: int) -> Callable[[QueueRow, Bounds, int], Line]:
    """Return a function that makes the cell of a resource: used/min/max, and a bar where there is room."""

    def cell(row: QueueRow, bounds: Bounds, columns: int) -> Line:
        full = bounds.get(resource)
        if not full and not row.used.get(resource):
            return line(Span(NOTHING.rjust(digits), MUTED))
        held = share(row, resource)
        used, rest = amount_text(resource, held.used), (amount_text(resource, each) for each in (held.min, held.max))
        tail = "".join(f"/{each}" for each in rest)
        taken = max(digits, len(used) + len(tail))
        wide = max(0, min(MOST_BAR, columns - taken - GAP))
        text = (Span(used.rjust(max(0, digits - len(tail)))), Span(tail, MUTED))
        if not full and not held.min:
            return text  # nothing bounds it: there is no whole to take a part of
        return (*text, Span(" " * GAP), *bar(row, resource, full or 0, wide))

    return cell


def _name_cell(row: QueueRow, _: Bounds) -> Line:
    name = Span(f"{INDENT * row.level}{queue_title(row)}", STRONG)
    if row.kind is QueueKind.LICENCE:
        held = share(row, LICENCES)
        return name, Span(f" {held.used}/{held.max}  licence", MUTED)
    if row.kind is QueueKind.PARTITION:
        return name, Span("  partition", MUTED)
    return (name, Span("  stopped", FULL_ROLE)) if row.stopped else (name,)


def _running_cell(row: QueueRow, _: Bounds) -> Line:
    """Return the cell with the number of running jobs, and the bound on jobs where it is below a million."""
    # A bound of a million jobs or more is none in practice, and would only take the place.
    if row.max_jobs is None or row.max_jobs >= 10**6:
        return line(Span(str(row.running), "running" if row.running else MUTED))
    role = FULL_ROLE if row.running >= row.max_jobs else "running" if row.running else MUTED
    return line(Span(str(row.running), role), Span(f"/{row.max_jobs}", MUTED))


def _borrowed_cell(row: QueueRow, _: Bounds) -> Line:
    words = ", ".join(borrowed_words(row))
    return line(Span(words, BORROWED_ROLE) if words else Span(NOTHING, MUTED))


def _resource(resource: str, column: str, about: str, cell: Cell | None = None) -> Column:
    """Return the column of a resource."""
    return Column(
        column,
        f"{column.upper()} USED/MIN/MAX",
        f"{about}: held, guaranteed, and at most (null: unlimited; of a partition what its nodes have)",
        ValueKind.RECORD,
        derive=lambda row, _: share(row, resource),
        words=_held_text(resource),
        schema=_SHARE,
        cell=cell,
    )


def _shares_cell(column: str, resource: str, digits: int, **more: Any) -> Cell:  # noqa: ANN401 - further fields of `Cell`
    least, title = digits + GAP, f"{column.upper()} used/min/max"
    return Cell(
        least + LEAST_BAR, fill=_resource_cell(resource, digits), title=title, grows=2, most=least + MOST_BAR, **more
    )


_SHARES: Final = (
    _resource(CPUS, "cpus", "CPUs", _shares_cell("cpus", CPUS, 14)),
    _resource(MEMORY, "memory", "Memory in MiB", _shares_cell("memory", MEMORY, 14, need=110)),
    _resource(CARDS, "cards", "Cards, 0.5 is half of one", _shares_cell("cards", CARDS, 13, after="running")),
)
# The records of used, min and max as plain numbers, which filters can compare: `cards_borrowed>0`.
_FIGURES: Final = tuple(
    Column(f"{name}_{what}", f"{name.upper()} {what.upper()}", about, ValueKind.NUMBER, derive=derive, wide=True)
    for name, resource in (("cpus", CPUS), ("memory_mib", MEMORY), ("cards", CARDS))
    for what, about, derive in (
        # The default argument binds the resource of this turn of the loop; a closure would see the last one.
        ("used", "Held now", lambda row, _, resource=resource: share(row, resource).used),
        ("borrowed", "Held beyond what is guaranteed", lambda row, _, resource=resource: borrowed(row, resource)),
    )
)


def _licences(row: QueueRow, _: Context) -> Held | None:
    return share(row, LICENCES) if row.kind is QueueKind.LICENCE else None


_RUNNING: Final = Column(
    "running", "RUNNING", "Jobs that run", ValueKind.INTEGER, cell=Cell(6, _running_cell, title="RUN")
)
_MAX_JOBS: Final = Column(
    "max_jobs", "MAX JOBS", "So many run at once; none: no bound", ValueKind.INTEGER, nullable=True
)
_PATH: Final = Column("path", "PATH", "Its place in the quota tree", wide=True)
_KIND: Final = Column("kind", "KIND", "quota: a node of the quota tree; partition; licence", values=QueueKind)
_PROJECTS: Final = Column(
    "projects",
    "PROJECTS",
    "Of a leaf: whose jobs wait here",
    ValueKind.WORDS,
    aliases=("project", "namespaces", "namespace"),
    cell=Cell(12, lambda row, _: line(Span(safe(", ".join(row.projects)), MUTED)), grows=1, need=170),
)

_STOPPED: Final = Column("stopped", "STOPPED", "Why it admits no job at present; empty: it does", wide=True)

QUEUES: Final = TableView(
    name="queues",
    identity=("kind", "path"),
    help="Queues: one for each node of the quota tree, and the partitions",
    empty="No queues.",
    columns=(
        Column(
            "name",
            "NAME",
            "The queue",
            derive=lambda row, _: row.name or ALL_NODES,
            aliases=("queue",),
            cell=Cell(16, _name_cell, title="QUEUE", grows=1, most=36),
        ),
        _KIND,
        Column("age", "AGE", "How long it has been there", ValueKind.SECONDS, derive=_age, nullable=True),
        Column(
            "depth",
            "DEPTH",
            "Jobs that wait in it",
            ValueKind.INTEGER,
            field="waiting",
            aliases=("waiting",),
            cell=Cell(5, lambda row, _: line(Span(str(row.waiting), "queued" if row.waiting else MUTED)), title="WAIT"),
        ),
        _RUNNING,
        _MAX_JOBS,
        *_SHARES,
        msgspec.structs.replace(
            _resource(LICENCES, "licences", "Licences"), derive=_licences, rare=True, nullable=True
        ),
        *_FIGURES,
        _PATH,
        msgspec.structs.replace(_PROJECTS, wide=True),
        _STOPPED,
    ),
    screen_only=(
        Column(
            "borrowed",
            "BORROWED",
            "Held beyond what is guaranteed",
            ValueKind.WORDS,
            cell=Cell(22, _borrowed_cell, grows=1, most=34, need=150, after="memory"),
        ),
    ),
    key=row_id,
)

QUOTA: Final = TableView(
    name="quota",
    identity=("path",),
    help="The quota tree: what each node holds, is guaranteed, may hold at most, and borrows",
    empty="No quota tree: no quotas apply. An administrator applies it with: cockpit quota apply FILE",
    columns=(
        Column(
            "queue",
            "QUEUE",
            "The node of the tree",
            derive=lambda row, _: row.path.rpartition("/")[2],
            words=lambda row, _: f"{INDENT * row.level}{queue_title(row)}",
        ),
        *_SHARES,
        Column(
            "borrowed",
            "BORROWED",
            "Held beyond what is guaranteed",
            ValueKind.WORDS,
            derive=lambda row, _: borrowed_words(row),
        ),
        Column("waiting", "WAITING", "Jobs that wait", ValueKind.INTEGER, aliases=("pending",)),
        _RUNNING,
        _MAX_JOBS,
        _PROJECTS,
        *_FIGURES,
        _PATH,
        Column("name", "NAME", "Its queue", wide=True),
        _STOPPED,
    ),
)


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
    """Yield harmless lines about a queue. `rows`: all queues; `keys`: the first key of each action by the action's id;
    `brief`: three lines, the last of which explains the signs; `takes_tree`: whether the cluster can have a quota tree.
    """
    where = "queue" if row.kind is QueueKind.QUOTA else str(row.kind)
    title = safe(row.path) if row.kind is QueueKind.QUOTA else queue_title(row)
    left = line(Span(f"{where} {title}", ACCENT), Span(f"  {_verdict(row)}", STRONG))
    yield spread(left, key_hint(keys.get("queue_jobs", "Enter"), "its jobs"), columns)
    if not brief:
        yield line(Span(f"{INDENT}jobs      ", MUTED), _jobs_words(row))
    yield line(Span(f"{INDENT}holds     ", MUTED), ", ".join(_holds_words(row)) or "nothing")
    # The small panel is the only place for the signs where the row of views has no room for them.
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
    """Return the filter that shows the jobs of the queue and of those below it; None: no job can belong to it."""
    if row.kind is QueueKind.PARTITION:
        return f"partition:{quoted(row.path)}" if row.path else ""
    if row.kind is QueueKind.LICENCE:
        # None and not an empty filter, which would show every job.
        return None
    # Jobs belong to the leaves; those of an inner queue are those of all leaves below.
    if row.by_name:
        return f"partition:{','.join(quoted(each.name) for each in below)}"
    projects = [project for each in below for project in each.projects]
    return f"project:{','.join(map(quoted, projects))}" if projects else None


def legend_line() -> Line:
    """Return the line that explains the signs of the bars."""
    return line(
        Span(f"   {OWN} ", "running"),
        Span("its own   ", MUTED),
        Span(f"{BORROWED} ", "tight"),
        Span("borrowed   ", MUTED),
        Span(f"{UNUSED} ", "idle"),
        Span("its own, not in use", MUTED),
    )


def _verdict(row: QueueRow) -> str:
    """Return the sentence that says what matters most about the queue now."""
    if row.kind is not QueueKind.QUOTA:
        place = "here" if row.kind is QueueKind.PARTITION else "for it"
        return f"{units.counted(row.waiting, 'job')} wait{'s' if row.waiting == 1 else ''} {place}."
    if row.stopped:
        return f"admits no job: {safe(row.stopped)}."
    borrowed = borrowed_words(row)
    if borrowed:
        return f"borrows {', '.join(borrowed)}; lenders may take it back."
    if row.waiting and row.max_jobs is not None and row.running >= row.max_jobs:
        return f"lets {units.counted(row.max_jobs, 'job')} run at a time."
    if row.is_shared:
        return "is what all queues share."
    return "holds no more than its own." if any(row.used.values()) else "holds nothing."


def _jobs_words(row: QueueRow) -> str:
    most = f", at most {units.grouped(row.max_jobs)} at once" if row.max_jobs is not None else ""
    return f"{row.running} running, {row.waiting} waiting{most}"


def _holds_words(row: QueueRow) -> Iterator[str]:
    for resource, name in RESOURCES.items():
        held = share(row, resource)
        if held.used or held.min or held.max:
            bound = f" of {amount_text(resource, held.max)}" if held.max is not None else ""
            own = f" ({amount_text(resource, held.min)} its own)" if held.min and not row.is_shared else ""
            yield f"{amount_text(resource, held.used)}{bound} {name}{own}"


def _lent(row: QueueRow) -> Iterator[str]:
    """Yield the guaranteed amounts that the queue does not use; none for the root, which cannot lend."""
    for resource in () if row.is_shared else RESOURCES:
        held = share(row, resource)
        if held.min > held.used:
            yield amount_words(resource, held.min - held.used)
