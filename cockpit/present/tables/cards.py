"""The columns of the card list: one row for each whole card, each slice, and what is free of a card."""

from __future__ import annotations

from typing import Final

from cockpit.model.spec import WHOLE_CARD
from cockpit.present.card_rows import CardRow, CardState
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.references import job_cell

UNMEASURED, HARDWARE_SLICED = "n/a", "n/a (MIG)"


def part_name(row: CardRow) -> str:
    """`1` is card 1, `1(2)` virtual card 2 of card 1; both count from 1."""
    return f"{row.card.index + 1}" if row.slot is None else f"{row.card.index + 1}({row.slot + 1})"


def usage(row: CardRow, _: Context) -> str:
    """`1(1):app`, or the place alone where nobody is."""
    return f"{part_name(row)}:{row.name}" if row.job is not None else part_name(row)


def in_use_words(row: CardRow, _: Context) -> str:
    """What is not measured is not 0."""
    if row.load is not None:
        return f"{row.load} %"
    return HARDWARE_SLICED if row.card.slice_uuids else UNMEASURED


CARDS: Final = TableView(
    name="cards",
    identity=("node", "card", "slice"),
    help="The cluster's cards, their slices, and who holds them",
    empty="No cards in service. Of this machine: cockpit doctor. Declared ones: cards in cluster.toml",
    columns=(
        Column("node", "NODE", ValueKind.TEXT, "The node's name", field="node.name"),
        Column("usage", "CARD", ValueKind.TEXT, "card(slice):job, both from 1", derive=usage),
        Column("model", "MODEL", ValueKind.TEXT, "The card's model", field="card.model", aliases=("card_model",)),
        Column(
            "state",
            "STATE",
            ValueKind.TEXT,
            "allocated: to a job; kept: by a failed job's container; stranded: free, but of no use to any job "
            "that waits or runs; out of service: on a drained or down node",
            derive=lambda row, _: str(row.state),
            schema={"type": "string", "enum": [str(state) for state in CardState]},
            aliases=("status",),
        ),
        Column(
            "share",
            "SHARE",
            ValueKind.NUMBER,
            "Of the whole card; 0.5 is half of it",
            derive=lambda row, _: row.milli / WHOLE_CARD,
        ),
        Column(
            "in_use",
            "IN USE",
            ValueKind.INTEGER,
            "Percent of the time that the card is busy; null: not measured, which is not 0",
            field="load",
            words=in_use_words,
            nullable=True,
            aliases=("load",),
        ),
        Column(
            "job",
            "JOB",
            ValueKind.INTEGER,
            "Who holds it",
            derive=lambda row, _: row.job or None,
            words=lambda row, _: job_cell(row.job),
            nullable=True,
            aliases=("id",),
        ),
        Column(
            "user", "USER", ValueKind.TEXT, "Whose job that is", derive=lambda row, _: row.user or None, nullable=True
        ),
        Column(
            "name",
            "NAME",
            ValueKind.TEXT,
            "The job's name",
            derive=lambda row, _: row.name or None,
            nullable=True,
            wide=True,
        ),
        Column(
            "card",
            "NUMBER",
            ValueKind.INTEGER,
            "The card on its node, from 1",
            derive=lambda row, _: row.card.index + 1,
            wide=True,
        ),
        Column(
            "slice",
            "SLICE",
            ValueKind.INTEGER,
            "The virtual card on its card, from 1",
            derive=lambda row, _: None if row.slot is None else row.slot + 1,
            nullable=True,
            wide=True,
            aliases=("slot",),
        ),
        Column(
            "memory_mib",
            "MEMORY",
            ValueKind.MIB,
            "Of the whole card; 0: unknown",
            field="card.memory_mib",
            wide=True,
            aliases=("memory",),
        ),
        Column(
            "vendor",
            "VENDOR",
            ValueKind.TEXT,
            "Who makes the card",
            derive=lambda row, _: str(row.card.vendor),
            wide=True,
        ),
        Column(
            "uuid",
            "UUID",
            ValueKind.TEXT,
            "The card's or the hardware slice's",
            derive=lambda row, _: uuid(row),
            nullable=True,
            wide=True,
        ),
        Column("pool", "POOL", ValueKind.TEXT, "The node's pool", field="node.pool", wide=True),
        Column(
            "node_state",
            "NODE STATE",
            ValueKind.TEXT,
            "up, drained or down",
            derive=lambda row, _: str(row.node.state),
            wide=True,
        ),
    ),
)


def uuid(row: CardRow) -> str | None:
    """Of the hardware slice where the row is one."""
    if row.slot is not None and row.slot < len(row.card.slice_uuids):
        return row.card.slice_uuids[row.slot]
    return row.card.uuid or None
