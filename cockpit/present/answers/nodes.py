"""The panel about the node under the cursor: what is free, and who holds the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cockpit.model.ids import JobId, job_words
from cockpit.model.jobrow import JobRow
from cockpit.model.labels import pair_text
from cockpit.model.node import NodeState
from cockpit.model.view import NodeRow
from cockpit.present import units
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.tables.nodes import usage_entry

INDENT = "  "
NO_BREAK = "\u00a0"
LACKS = "containers: jobs are plain processes; see `cockpit doctor`"


def node_answer(row: NodeRow, others: Callable[[JobId], JobRow | None], columns: int) -> Iterator[Line]:
    """Harmless lines. `others` knows the jobs that the asker may see."""
    yield spread(node_sentence(row), line(Span("Enter", ACCENT), Span(" its cards and jobs", MUTED)), columns)
    if row.jobs:
        yield line(Span(f"{INDENT}jobs    ", MUTED), ", ".join(_job(job, others) for job in row.jobs))
    if row.slices:
        yield line(Span(f"{INDENT}cards   ", MUTED), "  ".join(safe(usage_entry(use)) for use in row.slices))
    yield from node_facts(row)


def node_facts(row: NodeRow) -> Iterator[Line]:
    """For whom it is kept, what its jobs lack, its system, its pool."""
    node = row.node
    if row.plain:
        yield line(Span(f"{INDENT}lacks   ", MUTED), Span(LACKS, "warning"))
    if row.reserved:
        yield line(Span(f"{INDENT}reserved", MUTED), f" for reservation {safe(', '.join(row.reserved))}")
    system = " · ".join(
        filter(None, (node.os, node.kernel, f"driver {node.driver_version}" * bool(node.driver_version)))
    )
    yield line(Span(f"{INDENT}system  ", MUTED), Span(safe(system)))
    if node.pool:
        apart = Span("  only for jobs that name it", MUTED) if node.dedicated else Span("")
        yield line(Span(f"{INDENT}pool    ", MUTED), safe(node.pool), apart)
    if node.labels:
        pairs = (pair_text(*pair) for pair in sorted(node.labels.items()))
        yield line(Span(f"{INDENT}labels  ", MUTED), safe("  ".join(pairs)))
    if node.taints:
        taints = safe("  ".join(each.text for each in node.taints))
        yield line(Span(f"{INDENT}taints  ", MUTED), taints, Span("  only for jobs that tolerate them", MUTED))


def node_sentence(row: NodeRow) -> Line:
    """`n07  has 64 CPUs, 512G of memory and 3 whole cards free.`"""
    return line(Span(safe(row.node.name), ACCENT), Span(f"  {_sentence(row)}", STRONG))


def _sentence(row: NodeRow) -> str:
    node = row.node
    if node.state is not NodeState.UP:
        reason = f": {safe(node.state_reason)}" if node.state_reason else ""
        return f"is {node.state}{reason}."
    free = [f"{units.counted(max(node.cpus - row.used_cpus, 0), 'CPU')}"]
    free.append(f"{units.memory(max(node.memory_mib - row.used_memory_mib, 0))} of memory")
    if node.cards:
        whole = len(node.cards) - row.used_cards
        free.append(units.counted(whole, "whole card") if whole else "no whole card")
    return f"has {', '.join(free[:-1])} and {free[-1]} free."


def _job(job: JobId, others: Callable[[JobId], JobRow | None]) -> str:
    """`134 train (wei)`, which no line break takes apart."""
    row = others(job)
    words = f"{job_words(job)} {safe(row.name)} ({safe(row.user)})" if row is not None else job_words(job)
    return words.replace(" ", NO_BREAK)
