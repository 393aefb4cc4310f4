"""The columns of the node list: fractions, status against a chosen spec, one usage entry for each occupied slice."""

from __future__ import annotations

from typing import Final

from cockpit.model.labels import pair_text
from cockpit.model.node import NodeState
from cockpit.model.view import NodeRow, SliceUse
from cockpit.present import units
from cockpit.present.columns import Column, Context, Fraction, Table, ValueKind
from cockpit.present.room import copies_that_fit, fits

STATUS_WORDS: Final = ("up", "idle", "tight", "drained", "down")


def status(row: NodeRow, context: Context) -> str:
    """`drained` and `down` from the cluster; else `idle` or `tight` against the chosen spec, `up` without one."""
    if row.node.state is not NodeState.UP or context.chosen is None:
        return str(row.node.state)
    return "idle" if fits(row, context.chosen) else "tight"


def specs_fit(row: NodeRow, context: Context) -> int | None:
    """How many of the chosen spec find room at once; None when none is chosen."""
    return None if context.chosen is None else copies_that_fit(row, context.chosen)


def usage(row: NodeRow, _: Context) -> tuple[str, ...]:
    """`1(1):app` is virtual card 1 of card 1, `1:app` the whole card 1; both count from 1."""
    return tuple(map(usage_entry, sorted(row.slices, key=_slice_order)))


def usage_entry(use: SliceUse) -> str:
    slot = "" if use.slot is None else f"({use.slot + 1})"
    return f"{use.card + 1}{slot}:{use.name}"


def badges(row: NodeRow, _: Context) -> tuple[str, ...]:
    """What it is kept for, and what is not as the hardware is: parts of this machine, declared cards, larger sums."""
    node = row.node
    marks = {
        **{f"kept for {name}": True for name in row.reserved},
        "for logins": row.login,
        "no containers": row.plain,
        f"only pool {node.pool}": node.dedicated,
        "virtual": node.virtual,
        "declared cards": any(card.declared for card in node.cards),
        "overcommit": node.overcommitted,
        f"by {row.binding}": row.binding is not None,
    }
    return tuple(word for word, true in marks.items() if true)


def card_models(row: NodeRow, _: Context) -> tuple[str, ...]:
    return tuple(dict.fromkeys(card.model for card in row.node.cards))


def labels(row: NodeRow, _: Context) -> tuple[str, ...]:
    return tuple(pair_text(*pair) for pair in sorted(row.node.labels.items()))


def taints(row: NodeRow, _: Context) -> tuple[str, ...]:
    return tuple(each.text for each in row.node.taints)


def memory(row: NodeRow, _: Context) -> Fraction:
    return Fraction(row.used_memory_mib, row.node.memory_mib)


def cpus(row: NodeRow, _: Context) -> Fraction:
    return Fraction(row.used_cpus, row.node.cpus)


def cards(row: NodeRow, _: Context) -> Fraction:
    return Fraction(units.cards(row.used_card_milli), len(row.node.cards))


def memory_free(row: NodeRow, _: Context) -> int:
    return max(row.node.memory_mib - row.used_memory_mib, 0)


def cpus_free(row: NodeRow, _: Context) -> int:
    return max(row.node.cpus - row.used_cpus, 0)


def cards_free(row: NodeRow, _: Context) -> int:
    return max(len(row.node.cards) - row.used_cards, 0)


def _slice_order(use: SliceUse) -> tuple[int, int]:
    return use.card, -1 if use.slot is None else use.slot


NODES: Final = Table(
    name="nodes",
    identity=("name",),
    help="The cluster's nodes and what is used of them",
    empty="No nodes in service. All of them: cockpit nodes",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "The node's name", field="node.name", aliases=("node",)),
        Column(
            "status",
            "STATUS",
            ValueKind.TEXT,
            "idle: the chosen spec fits now; tight: it does not; up: no spec chosen",
            derive=status,
            schema={"enum": list(STATUS_WORDS)},
            aliases=("state",),
        ),
        Column("os", "OS", ValueKind.TEXT, "Operating system", field="node.os", spare=True),
        Column("kernel", "KERNEL", ValueKind.TEXT, "Kernel release", field="node.kernel", spare=True),
        Column("memory", "MEMORY", ValueKind.MEMORY_FRACTION, "Used of total, in MiB", derive=memory),
        Column("cpus", "CPUS", ValueKind.FRACTION, "Used of total", derive=cpus),
        Column("cards", "CARDS", ValueKind.FRACTION, "Used of total; 0.5 is half of one", derive=cards),
        Column(
            "driver_version",
            "DRIVER",
            ValueKind.TEXT,
            "Card driver",
            field="node.driver_version",
            aliases=("driver",),
            spare=True,
        ),
        Column(
            "specs_fit",
            "FIT",
            ValueKind.INTEGER,
            "How many of the chosen spec find room at once",
            derive=specs_fit,
            nullable=True,
        ),
        Column("usage", "USAGE", ValueKind.WORDS, "card(slice):job for each occupied slice, from 1", derive=usage),
        Column(
            "badges",
            "NOTE",
            ValueKind.WORDS,
            "kept for …, for logins, no containers, virtual, declared cards …",
            derive=badges,
        ),
        Column(
            "reserved",
            "RESERVED",
            ValueKind.WORDS,
            "Reservations that keep it now",
            field="reserved",
            wide=True,
            aliases=("reservation",),
        ),
        Column("pool", "POOL", ValueKind.TEXT, "Its pool", field="node.pool", wide=True),
        Column("labels", "LABELS", ValueKind.WORDS, "What jobs may select it by", derive=labels, wide=True),
        Column("taints", "TAINTS", ValueKind.WORDS, "What jobs there must tolerate", derive=taints, wide=True),
        Column(
            "card_models",
            "CARD MODELS",
            ValueKind.WORDS,
            "Models of its cards",
            derive=card_models,
            wide=True,
            aliases=("card_model",),
        ),
        Column("cpus_free", "CPUS FREE", ValueKind.INTEGER, "CPUs not taken", derive=cpus_free, wide=True),
        Column(
            "memory_free_mib",
            "MEMORY FREE",
            ValueKind.MIB,
            "Memory not taken",
            derive=memory_free,
            wide=True,
            aliases=("memory_free",),
        ),
        Column(
            "cards_free",
            "CARDS FREE",
            ValueKind.INTEGER,
            "Cards free for a job that wants whole ones",
            derive=cards_free,
            wide=True,
        ),
        Column(
            "jobs",
            "JOBS",
            ValueKind.RECORD,
            "Jobs that occupy it",
            field="jobs",
            words=lambda row, _: ", ".join(map(str, row.jobs)) or "–",
            schema={"type": "array", "items": {"type": "integer"}},
            wide=True,
        ),
        Column(
            "state_reason",
            "REASON",
            ValueKind.TEXT,
            "Why it is drained or down",
            field="node.state_reason",
            rare=True,
            aliases=("reason",),
        ),
    ),
)
