"""Nodes: the columns of their list for every output, and how many jobs they have room for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from cockpit.model.cardmodels import is_one_of
from cockpit.model.labels import pair_text
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.model.view import NodeRow, Overview, SliceUse
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING, Cell, Column, Context, Fraction, TableView, ValueKind
from cockpit.present.phrases import card_number
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line
from cockpit.sched.nodes.cards import can_be_whole, share_taken, shareable


def fits(row: NodeRow, spec: NodeSpec) -> bool:
    """Return whether the node has as much of every resource free as the spec requests."""
    return copies_that_fit(row, spec) >= 1


def could_hold(row: NodeRow, spec: NodeSpec) -> bool:
    """Return whether the node would have room for the spec if it were empty."""
    # The same count over an empty node, so that both answers follow one rule.
    return fits(replace(row, used_cpus=0, used_memory_mib=0, slices=()), spec)


def copies_that_fit(row: NodeRow, spec: NodeSpec) -> int:
    """Return how many copies of the spec fit on the node at once, by its free CPUs, memory and cards together."""
    bounds = [_bound(row.node.cpus - row.used_cpus, spec.cpus)]
    bounds.append(_bound(row.node.memory_mib - row.used_memory_mib, spec.memory_mib))
    cards = [(card, _used_milli(row, card)) for card in row.node.cards if is_one_of(card.model, spec.card_models)]
    if spec.shares_a_card:
        # A share lies on one card: rests of several cards cannot be added up.
        shares = [max(0, shareable(card) - used) // share_taken(card, spec.card_milli) for card, used in cards]
        bounds.append(sum(shares))
    else:
        idle = sum(not used and can_be_whole(card) for card, used in cards)
        bounds.append(_bound(idle, spec.whole_cards))
    # A request of 0 bounds nothing. At least one bound is left: even a spec without CPUs and memory has cards.
    return min(bound for bound in bounds if bound is not None)


def _bound(free: int, wanted: int) -> int | None:
    return None if wanted <= 0 else max(free, 0) // wanted


def _used_milli(row: NodeRow, card: Card) -> int:
    return sum(use.milli for use in row.slices if use.card == card.index)


STATUS_WORDS: Final = ("up", "idle", "tight", "drained", "down")
BAR_COLUMNS = 6
GIB = 1024
FULL = 1.0
ANY = "any model"


def status(row: NodeRow, context: Context) -> str:
    """Return `drained` or `down`; else `idle` or `tight` for the chosen spec, `up` without one."""
    # Idle and tight are answers to a question: whether the chosen spec fits. Without one there is no question.
    if row.node.state is not NodeState.UP or context.chosen is None:
        return str(row.node.state)
    return "idle" if fits(row, context.chosen) else "tight"


def usage(row: NodeRow, _: Context) -> tuple[str, ...]:
    """Return the occupied slices: `1(1):app` is virtual card 1 of card 1, `1:app` the whole card 1, `?:app` a card that
    the cluster does not tell."""
    return tuple(map(usage_entry, sorted(row.slices, key=_slice_order)))


def usage_entry(use: SliceUse) -> str:
    return f"{card_number(use.card, use.slot, assumed=use.assumed)}:{use.name}"


def badges(row: NodeRow, _: Context) -> tuple[str, ...]:
    """Return the words for what a node is reserved for, and for how it differs from its hardware."""
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


def _slice_order(use: SliceUse) -> tuple[bool, int, int]:
    # A whole card comes before its slices, None does not compare with numbers, and unknown cards come last.
    return use.assumed, use.card, -1 if use.slot is None else use.slot


def _status_cell(row: NodeRow, context: Context) -> Line:
    """Return `idle` or `tight` for the chosen spec; without one, how much of the node is in use."""
    if row.node.state is not NodeState.UP:
        return line(Span(f"{'■' if row.node.state is NodeState.DRAINED else '✗'} {row.node.state}", "drained"))
    # What a user has to know first about the node: whether jobs go there at all, then for whom, then how full it is.
    if row.login:
        return line(Span("– logins", MUTED))
    if row.reserved:
        return line(Span("◆ resv", "held"))
    if context.chosen is not None:
        return line(Span("○ idle", "idle") if fits(row, context.chosen) else Span("◉ tight", "tight"))
    if not row.jobs and not row.slices and not row.used_cpus:
        return line(Span("○ free", "idle"))
    return line(Span("◉ full", MUTED) if _full(row) else Span("◐ in use", "running"))


def _full(row: NodeRow) -> bool:
    """Return whether no further job can start on the node."""
    used_cards = row.used_card_milli / (len(row.node.cards) * 1000) if row.node.cards else 0.0
    # Memory is left out: without a spec to compare with, hardly any node has none left.
    return max(used_cards, row.used_cpus / max(row.node.cpus, 1)) >= FULL


def _fraction(used: float, total: float, text: str, digits: int) -> Line:
    if not total:
        return line(Span(NOTHING.rjust(digits), MUTED))
    part = used / total
    return (Span(f"{text:>{digits}} "), *bar(part, BAR_COLUMNS, "running"))


def _cpus_cell(row: NodeRow, _: Context) -> Line:
    return _fraction(row.used_cpus, row.node.cpus, f"{row.used_cpus}/{row.node.cpus}", 7)


def _memory_cell(row: NodeRow, _: Context) -> Line:
    used, total = (units.decimal(mib, GIB, digits=1) for mib in (row.used_memory_mib, row.node.memory_mib))
    return _fraction(row.used_memory_mib, row.node.memory_mib, f"{used}/{total}", 10)


def _cards_cell(row: NodeRow, _: Context) -> Line:
    total = len(row.node.cards)
    return _fraction(row.used_card_milli, total * 1000, f"{units.cards(row.used_card_milli)}/{total}", 6)


def _usage_cell(row: NodeRow, _: Context) -> Line:
    # The place of the use, which is empty, says why the node is out of service.
    if row.node.state is not NodeState.UP and not row.slices:
        return line(Span(safe(row.node.state_reason), "drained"))
    return line(safe("  ".join(_entries(row))))


def _entries(row: NodeRow) -> Iterator[str]:
    """Yield `1(1):app` for a slice, `2:app` for a whole card, `3–6:app` for adjacent whole cards of one job, `4×?:app`
    for four cards of a job that are not known."""
    # A job on all eight cards would be eight entries, and fill the cell.
    for _, group in groupby(enumerate(row.slices), key=_run):
        uses = [use for _, use in group]
        first, last = uses[0], uses[-1]
        if len(uses) == 1:
            yield usage_entry(first)
        elif first.assumed:
            yield f"{len(uses)}×{usage_entry(first)}"
        else:
            yield f"{first.card + 1}–{last.card + 1}:{first.name}"


def _run(numbered: tuple[int, SliceUse]) -> tuple[object, ...]:
    """Return a key that is equal for whole cards of one job whose numbers follow each other, and for its equal parts of
    unknown cards."""
    number, use = numbered
    if use.assumed:
        return use.job, use.name, use.slot is None
    # In a run card and position grow together, so that their difference stays.
    return (use.job, use.name, use.card - number) if use.slot is None and use.milli == WHOLE_CARD else (number,)


def _system_cell(row: NodeRow, _: Context) -> Line:
    return line(Span(safe(f"{row.node.os} {row.node.kernel}".strip()) or NOTHING, MUTED))


# The order is that of node lists on training platforms: status, system, memory, CPUs, cards, driver, what fits, use. On
# the screen `after` puts what is compared side by side.
NODES: Final = TableView(
    name="nodes",
    identity=("name",),
    key=lambda row: row.node.name,
    help="The cluster's nodes and what is used of them",
    empty="No nodes in service. All of them: cockpit nodes",
    columns=(
        Column(
            "name",
            "NAME",
            "The node's name",
            field="node.name",
            aliases=("node",),
            cell=Cell(8, lambda row, _: line(Span(safe(row.node.name), STRONG)), title="NODE", grows=1, most=20),
        ),
        Column(
            "status",
            "STATUS",
            "idle: the chosen spec fits now; tight: it does not; up: no spec chosen",
            derive=status,
            values=STATUS_WORDS,
            aliases=("state",),
            cell=Cell(9, _status_cell),
        ),
        Column("os", "OS", "Operating system", field="node.os", spare=True),
        Column(
            "kernel",
            "KERNEL",
            "Kernel release",
            field="node.kernel",
            spare=True,
            cell=Cell(30, _system_cell, title="SYSTEM", grows=1, most=50, need=170, after="usage"),
        ),
        Column(
            "memory",
            "MEMORY",
            "Used of total, in MiB",
            ValueKind.MEMORY_FRACTION,
            derive=lambda row, _: Fraction(row.used_memory_mib, row.node.memory_mib),
            cell=Cell(10 + 1 + BAR_COLUMNS, _memory_cell, title="MEMORY GiB", right=False, need=100, after="cpus"),
        ),
        Column(
            "cpus",
            "CPUS",
            "Used of total",
            ValueKind.FRACTION,
            derive=lambda row, _: Fraction(row.used_cpus, row.node.cpus),
            cell=Cell(7 + 1 + BAR_COLUMNS, _cpus_cell, title="   CPUS", right=False),
        ),
        Column(
            "cards",
            "CARDS",
            "Used of total; 0.5 is half of one",
            ValueKind.FRACTION,
            derive=lambda row, _: Fraction(units.cards(row.used_card_milli), len(row.node.cards)),
            cell=Cell(6 + 1 + BAR_COLUMNS, _cards_cell, title=" CARDS", right=False),
        ),
        Column("driver_version", "DRIVER", "Card driver", field="node.driver_version", aliases=("driver",), spare=True),
        Column(
            "specs_fit",
            "FIT",
            "How many of the chosen spec find room at once",
            ValueKind.INTEGER,
            derive=lambda row, context: None if context.chosen is None else copies_that_fit(row, context.chosen),
            nullable=True,
        ),
        Column(
            "usage",
            "USAGE",
            "card(slice):job for each occupied slice, from 1; ?: not known which",
            ValueKind.WORDS,
            derive=usage,
            cell=Cell(18, _usage_cell, grows=6),
        ),
        Column(
            "badges",
            "NOTE",
            "kept for …, for logins, no containers, virtual, declared cards …",
            ValueKind.WORDS,
            derive=badges,
        ),
        Column(
            "reserved",
            "RESERVED",
            "Reservations that keep it now",
            ValueKind.WORDS,
            wide=True,
            aliases=("reservation",),
        ),
        Column(
            "price",
            "PRICE",
            "Its present price, by the price source",
            ValueKind.NUMBER,
            derive=lambda row, _: None if row.node.price_milli is None else row.node.price_milli / 1000,
            nullable=True,
            wide=True,
        ),
        Column("pool", "POOL", "Its pool", field="node.pool", wide=True),
        Column(
            "labels",
            "LABELS",
            "What jobs may select it by",
            ValueKind.WORDS,
            derive=lambda row, _: tuple(pair_text(*pair) for pair in sorted(row.node.labels.items())),
            wide=True,
        ),
        Column(
            "taints",
            "TAINTS",
            "What jobs there must tolerate",
            ValueKind.WORDS,
            derive=lambda row, _: tuple(each.text for each in row.node.taints),
            wide=True,
        ),
        Column("instance", "INSTANCE", "Its machine at its provider", field="node.instance", wide=True, rare=True),
        Column(
            "card_models",
            "CARD MODELS",
            "Models of its cards",
            ValueKind.WORDS,
            derive=lambda row, _: tuple(dict.fromkeys(card.model for card in row.node.cards)),
            wide=True,
            aliases=("card_model",),
            cell=Cell(8, title="MODEL", role=MUTED, grows=1, most=20, need=90, after="cards"),
        ),
        Column(
            "cpus_free",
            "CPUS FREE",
            "CPUs not taken",
            ValueKind.INTEGER,
            derive=lambda row, _: max(row.node.cpus - row.used_cpus, 0),
            wide=True,
        ),
        Column(
            "memory_free_mib",
            "MEMORY FREE",
            "Memory not taken",
            ValueKind.MIB,
            derive=lambda row, _: max(row.node.memory_mib - row.used_memory_mib, 0),
            wide=True,
            aliases=("memory_free",),
        ),
        Column(
            "cards_free",
            "CARDS FREE",
            "Cards free for a job that wants whole ones",
            ValueKind.INTEGER,
            derive=lambda row, _: max(len(row.node.cards) - row.used_cards, 0),
            wide=True,
        ),
        Column(
            "jobs",
            "JOBS",
            "Jobs that occupy it",
            ValueKind.RECORD,
            words=lambda row, _: ", ".join(map(str, row.jobs)) or "–",
            schema={"type": "array", "items": {"type": "integer"}},
            wide=True,
        ),
        Column(
            "state_reason",
            "REASON",
            "Why it is drained or down",
            field="node.state_reason",
            rare=True,
            aliases=("reason",),
        ),
    ),
)


def card_demand(overview: Overview | None) -> dict[str, float]:
    """Return how many cards of each model the queued jobs request; those of any model come last."""
    wanted = overview.demand if overview is not None else {}
    # In the model no name stands for any model.
    in_order = sorted(wanted.items(), key=lambda each: (not each[0], each[0]))
    return {model or ANY: milli / WHOLE_CARD for model, milli in in_order}
