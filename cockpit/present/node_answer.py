"""The panel about the node under the cursor: what is free, and who holds the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cockpit.model.ids import JobId
from cockpit.model.view import NodeRow
from cockpit.present import units
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Line, Span, line
from cockpit.present.tables.nodes import usage_entry


def node_answer(row: NodeRow, names: Mapping[JobId, str]) -> Iterator[Line]:
    """Harmless lines. `names` of the jobs that are known."""
    node = row.node
    free = f"{node.cpus - row.used_cpus} CPUs, {units.memory(node.memory_mib - row.used_memory_mib)}"
    cards = f", {units.counted(len(node.cards) - row.used_cards, 'whole card')}" if node.cards else ""
    yield line(Span(safe(node.name), ACCENT), f"  {free}{cards} free", Span(f"   {safe(node.state_reason)}", "drained"))
    yield line(Span(safe(f"{node.os} · {node.kernel} · driver {node.driver_version or '–'}"), MUTED))
    if row.jobs:
        jobs = ", ".join(f"{job} {safe(names.get(job, ''))}".rstrip() for job in row.jobs)
        yield line(Span("jobs   ", MUTED), jobs)
    if row.slices:
        yield line(Span("cards  ", MUTED), "  ".join(safe(usage_entry(use)) for use in row.slices))
