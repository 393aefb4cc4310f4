"""The columns of the queues, and of the quota tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from cockpit.model.view import QueueKind, QueueRow
from cockpit.present import units
from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.sched.rules.tres import LICENCES

CPUS: Final = "cpu"
MEMORY: Final = "mem"
CARDS: Final = "gres/gpu"
RESOURCES: Final = {CARDS: "cards", CPUS: "CPUs", MEMORY: "memory", LICENCES: "licences"}
INDENT: Final = "  "
ALL_NODES: Final = "(all nodes)"
"""The queue of a cluster that has no partitions."""


class Held(msgspec.Struct, frozen=True):
    """Of one resource of one queue: CPUs, MiB or cards."""

    used: int | float
    min: int | float
    max: int | float | None
    """None: unlimited."""


_SHARE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"used": {"type": "number"}, "min": {"type": "number"}, "max": {"type": ["number", "null"]}},
    "required": ["used", "min", "max"],
}


def whole(thousandths: int) -> int | float:
    """As an integer where it is one."""
    return thousandths / 1000 if thousandths % 1000 else thousandths // 1000


def share(row: QueueRow, resource: str) -> Held:
    most = row.max.get(resource)
    used, least = row.used.get(resource, 0), row.min.get(resource, 0)
    return Held(whole(used), whole(least), None if most is None else whole(most))


def borrowed(row: QueueRow, resource: str) -> int | float:
    """Held beyond what is kept for it; the root, and a partition, has nobody to borrow from."""
    if resource not in row.bounded or not row.level:
        return 0
    return whole(max(0, row.used.get(resource, 0) - row.min.get(resource, 0)))


def amount_text(resource: str, amount: float | None) -> str:
    """Shorter than exact from a hundred thousand on; unlimited: a dash."""
    if amount is None:
        return NOTHING
    if resource == MEMORY and amount:
        return units.memory(round(amount))
    for unit, size in (("E", 10**18), ("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6)):
        if amount >= size:
            return f"{amount / size:.4g}{unit}"
    return f"{amount:.10g}"


def borrowed_words(row: QueueRow, _: Context) -> tuple[str, ...]:
    """`4 cards`, `16 CPUs`, `64G memory`."""
    found = ((resource, borrowed(row, resource)) for resource in RESOURCES)
    return tuple(amount_words(resource, amount) for resource, amount in found if amount)


def amount_words(resource: str, amount: float) -> str:
    """`4 cards`, `1 CPU`, `64G memory`."""
    name = RESOURCES[resource]
    return f"{amount_text(resource, amount)} {name.removesuffix('s') if amount == 1 else name}"


def queue_title(row: QueueRow) -> str:
    """Its name; a node's in its tree."""
    return safe(row.path.rpartition("/")[2] if row.kind is QueueKind.QUOTA else row.name) or ALL_NODES


def _name(row: QueueRow, _: Context) -> str:
    return row.name or ALL_NODES


def _tree_name(row: QueueRow, _: Context) -> str:
    return f"{INDENT * row.level}{queue_title(row)}"


def _age(row: QueueRow, context: Context) -> int | None:
    return None if row.since is None else max(0, (context.now - row.since) // 1000)


def _held(resource: str) -> Callable[[QueueRow, Context], Held]:
    return lambda row, _: share(row, resource)


def _held_text(resource: str) -> Callable[[QueueRow, Context], str]:
    def text(row: QueueRow, _: Context) -> str:
        if resource == LICENCES and row.kind is not QueueKind.LICENCE:
            return NOTHING
        held = share(row, resource)
        return "/".join(amount_text(resource, amount) for amount in (held.used, held.min, held.max))

    return text


def _resource(resource: str, column: str, about: str) -> Column:
    return Column(
        column,
        f"{column.upper()} USED/MIN/MAX",
        ValueKind.RECORD,
        f"{about}: held, guaranteed, and at most (null: unlimited; of a partition what its nodes have)",
        derive=_held(resource),
        words=_held_text(resource),
        schema=_SHARE,
    )


_SHARES: Final = (
    _resource(CPUS, "cpus", "CPUs"),
    _resource(MEMORY, "memory", "Memory in MiB"),
    _resource(CARDS, "cards", "Cards, 0.5 is half of one"),
)
_FIGURES: Final = tuple(
    Column(
        f"{name}_{what}",
        f"{name.upper()} {what.upper()}",
        ValueKind.NUMBER,
        about,
        derive=derive,
        wide=True,
    )
    for name, resource in (("cpus", CPUS), ("memory_mib", MEMORY), ("cards", CARDS))
    for what, about, derive in (
        ("used", "Held now", lambda row, _, resource=resource: share(row, resource).used),
        ("borrowed", "Held beyond what is guaranteed", lambda row, _, resource=resource: borrowed(row, resource)),
    )
)


def _licences(row: QueueRow, _: Context) -> Held | None:
    return share(row, LICENCES) if row.kind is QueueKind.LICENCE else None


_RUNNING: Final = Column("running", "RUNNING", ValueKind.INTEGER, "Jobs that run", field="running")
_MAX_JOBS: Final = Column(
    "max_jobs", "MAX JOBS", ValueKind.INTEGER, "So many run at once; none: no bound", field="max_jobs", nullable=True
)
_PATH: Final = Column("path", "PATH", ValueKind.TEXT, "Its place in the quota tree", field="path", wide=True)
_KIND: Final = Column(
    "kind",
    "KIND",
    ValueKind.TEXT,
    "quota: a node of the quota tree; partition; licence",
    derive=lambda row, _: row.kind.value,
    schema={"enum": [kind.value for kind in QueueKind]},
)
_PROJECTS: Final = Column(
    "projects",
    "PROJECTS",
    ValueKind.WORDS,
    "Of a leaf: whose jobs wait here",
    field="projects",
    aliases=("project", "namespaces", "namespace"),
)

QUEUES: Final = TableView(
    name="queues",
    identity=("kind", "path"),
    help="Queues: one for each node of the quota tree, and the partitions",
    empty="No queues.",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "The queue", derive=_name, aliases=("queue",)),
        _KIND,
        Column("age", "AGE", ValueKind.SECONDS, "How long it has been there", derive=_age, nullable=True),
        Column("depth", "DEPTH", ValueKind.INTEGER, "Jobs that wait in it", field="waiting", aliases=("waiting",)),
        _RUNNING,
        _MAX_JOBS,
        *_SHARES,
        msgspec.structs.replace(
            _resource(LICENCES, "licences", "Licences"), derive=_licences, rare=True, nullable=True
        ),
        *_FIGURES,
        _PATH,
        msgspec.structs.replace(_PROJECTS, wide=True),
    ),
)

NEVER_A_TREE: Final = "No quota tree: this cluster has a scheduler of its own, which knows none."
QUOTA: Final = TableView(
    name="quota",
    identity=("path",),
    help="The quota tree: what each node holds, is guaranteed, may hold at most, and borrows",
    empty="No quota tree: no quotas apply. An administrator applies it with: cockpit quota apply FILE",
    columns=(
        Column(
            "queue",
            "QUEUE",
            ValueKind.TEXT,
            "The node of the tree",
            derive=lambda row, _: row.path.rpartition("/")[2],
            words=_tree_name,
        ),
        *_SHARES,
        Column("borrowed", "BORROWED", ValueKind.WORDS, "Held beyond what is guaranteed", derive=borrowed_words),
        Column("waiting", "WAITING", ValueKind.INTEGER, "Jobs that wait", field="waiting", aliases=("pending",)),
        _RUNNING,
        _MAX_JOBS,
        _PROJECTS,
        *_FIGURES,
        _PATH,
        Column("name", "NAME", ValueKind.TEXT, "Its queue", field="name", wide=True),
    ),
)
