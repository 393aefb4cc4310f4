"""The nodes on which the form's job may run, idle or tight for its request, and the cards that queued jobs request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from cockpit.model.node import NodeState
from cockpit.present import units
from cockpit.present.form.node_choices import card_counts
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, hung, line
from cockpit.present.tables.nodes import could_hold, fits
from cockpit.present.units import counted
from cockpit.present.width import pad, widest
from cockpit.sched.nodes.eligibility import may_hold

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import NodeRow

MOST_NODES: Final = 6
GIB: Final = 1024
IDLE, TIGHT = "○ idle", "◉ tight"


def room_lines(spec: JobSpec, nodes: Sequence[NodeRow], demand: Mapping[str, float], columns: int) -> Iterator[Line]:
    """Yield the nodes that have room for one node's part of the job now, and the number of requested cards of each
    model."""
    idle, tight = _idle_and_tight(spec, nodes)
    wanted = f"; it needs {spec.least_nodes}" if spec.least_nodes > 1 else ""
    yield line(Span("room now on  ", MUTED), counted(len(idle), "node"), Span(f", {len(tight)} tight{wanted}", MUTED))
    names = ", ".join(safe(row.node.name) for row in idle[:MOST_NODES])
    if names:
        yield from hung(line(Span(names + (" …" if len(idle) > MOST_NODES else ""), "idle")), columns)
    yield from _free_card_lines(spec, nodes, columns)
    # Models of which there are cards, then those that jobs only wait for.
    models = dict.fromkeys(card.model for row in nodes for card in row.node.cards) | dict.fromkeys(demand)
    if models:
        words = "   ".join(f"{safe(model)} {demand.get(model, 0):g}" for model in models)
        yield from hung(line(Span("cards waited for  ", MUTED), words), columns)


def _free_card_lines(spec: JobSpec, nodes: Sequence[NodeRow], columns: int) -> Iterator[Line]:
    """Yield how many cards are free of each model that the job may have; no lines for a job without cards."""
    wanted = max((each.card_milli for each in spec.specs), default=0)
    if not wanted:
        return
    up = [row for row in nodes if row.node.state is NodeState.UP and not row.login]
    named = dict.fromkeys(model for each in spec.specs for model in each.card_models)
    models = named or dict.fromkeys(card.model for row in up for card in row.node.cards)
    words = []
    for model in models:
        total, free = card_counts(up, model)
        words.append(f"{safe(model)} {free:g} of {total}")
    asks = units.counted_cards(wanted * spec.least_nodes)
    yield from hung(
        line(Span("cards free now  ", MUTED), "   ".join(words) or "none", Span(f"; it takes {asks}", MUTED)), columns
    )


def node_lines(spec: JobSpec, nodes: Sequence[NodeRow], columns: int) -> Iterator[Line]:
    """Yield the table of the possible nodes, the idle ones first: used and total amounts, and the card models."""
    idle, tight = _idle_and_tight(spec, nodes)
    if not idle and not tight:
        yield line(Span("no node that the job asks for is in service", "warning"))
        return
    rows = [*((row, IDLE, "idle") for row in idle), *((row, TIGHT, "tight") for row in tight)]
    names = max(len("NODE"), widest([safe(row.node.name) for row, _, _ in rows]))
    titles = f"{pad('NODE', names)}  {'STATUS':8}{'CPUS':>9}{'GiB':>11}{'CARDS':>9}  MODEL"
    yield from hung(line(Span(titles[:columns], MUTED)), columns)
    for row, word, role in rows:
        yield line(
            Span(pad(safe(row.node.name), names), STRONG), Span(f"  {word:8}", role), f"{_figures(row)}", _model(row)
        )


def _figures(row: NodeRow) -> str:
    node = row.node
    memory = "/".join(units.decimal(mib, GIB, digits=0) for mib in (row.used_memory_mib, node.memory_mib))
    # A dash: 0/0 would look like a node whose cards are all in use.
    cards = f"{units.cards(row.used_card_milli)}/{len(node.cards)}" if node.cards else "–"
    return f"{f'{row.used_cpus}/{node.cpus}':>9}{f' {memory}':>11}{f' {cards}':>9}"


def _model(row: NodeRow) -> Span:
    models = dict.fromkeys(card.model for card in row.node.cards)
    return Span(f"  {safe(', '.join(models))}", MUTED)


def _idle_and_tight(spec: JobSpec, nodes: Sequence[NodeRow]) -> tuple[list[NodeRow], list[NodeRow]]:
    """Return the idle and the tight nodes among those in service that the job may use and that are big enough when
    empty."""
    idle: list[NodeRow] = []
    tight: list[NodeRow] = []
    for row in nodes:
        if row.node.state is NodeState.UP and not row.login and _may_be(spec, row):
            if not any(could_hold(row, each) for each in spec.specs):
                continue
            (idle if any(fits(row, each) for each in spec.specs) else tight).append(row)
    return idle, tight


def _may_be(spec: JobSpec, row: NodeRow) -> bool:
    # Nodes that the job names exclude all others.
    pinned = spec.node_names or spec.pool_nodes
    return may_hold(row.node, spec) and (not pinned or row.node.name in pinned)
