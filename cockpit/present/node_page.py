"""One node: the panel about it, and its page with the used resources, the user of each card and the jobs there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cockpit.model.ids import JobId, job_words
from cockpit.model.jobrow import JobRow
from cockpit.model.labels import pair_text
from cockpit.model.node import Card, NodeState
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import NodeRow
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import Context
from cockpit.present.folding import id_text
from cockpit.present.job_values import elapsed_seconds
from cockpit.present.phrases import card_number
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, key_hint, line, small_table, spread
from cockpit.present.states import GLYPHS
from cockpit.present.tables.nodes import usage_entry

BAR_COLUMNS: Final = 30
FREE: Final = "free"
UNKNOWN: Final = "n/a"
NO_JOBS: Final = "No job that you may see runs here."
NO_BREAK: Final = "\u00a0"
LACKS: Final = "containers: jobs are plain processes; see `cockpit doctor`"


def node_answer(row: NodeRow, others: Callable[[JobId], JobRow | None], columns: int) -> Iterator[Line]:
    """Yield the panel about a node, without control characters. `others` finds the jobs that the user may see."""
    yield spread(node_sentence(row), key_hint("Enter", "its cards and jobs"), columns)
    if row.jobs:
        yield line(Span(f"{INDENT}jobs    ", MUTED), ", ".join(_named(job, others) for job in row.jobs))
    if row.slices:
        yield line(Span(f"{INDENT}cards   ", MUTED), "  ".join(safe(usage_entry(use)) for use in row.slices))
    yield from node_facts(row)


def node_facts(row: NodeRow) -> Iterator[Line]:
    """Yield what the node is reserved for, what its jobs lack, its system, pool, labels and taints."""
    node = row.node
    if row.plain:
        yield line(Span(f"{INDENT}lacks   ", MUTED), Span(LACKS, "warning"))
    if row.reserved:
        yield line(Span(f"{INDENT}reserved", MUTED), f" for reservation {safe(', '.join(row.reserved))}")
    if row.excluded_for:
        jobs = units.counted(row.excluded_for, "job")
        lifted = f"  `:nodes resume {safe(node.name)}` readmits it"
        yield line(
            Span(f"{INDENT}excluded", MUTED),
            Span(f" for {jobs}: the check failed here", "warning"),
            Span(lifted, MUTED),
        )
    system = " · ".join(
        filter(None, (node.os, node.kernel, f"driver {node.driver_version}" * bool(node.driver_version)))
    )
    yield line(Span(f"{INDENT}system  ", MUTED), Span(safe(system)))
    if node.pool:
        apart = Span("  only for jobs that name it", MUTED) if node.dedicated else Span("")
        yield line(Span(f"{INDENT}pool    ", MUTED), safe(node.pool), apart)
    if node.price_milli is not None:
        yield line(Span(f"{INDENT}price   ", MUTED), f"{node.price_milli / 1000:g}", Span("  now", MUTED))
    if node.labels:
        pairs = (pair_text(*pair) for pair in sorted(node.labels.items()))
        yield line(Span(f"{INDENT}labels  ", MUTED), safe("  ".join(pairs)))
    if node.taints:
        taints = safe("  ".join(each.text for each in node.taints))
        yield line(Span(f"{INDENT}taints  ", MUTED), taints, Span("  only for jobs that tolerate them", MUTED))


def node_sentence(row: NodeRow) -> Line:
    """Return `n07  has 64 CPUs, 512G of memory and 3 whole cards free.`"""
    return line(Span(safe(row.node.name), ACCENT), Span(f"  {_free_sentence(row)}", STRONG))


def _free_sentence(row: NodeRow) -> str:
    """Return what the node has free, or why it takes no jobs."""
    node = row.node
    # What is free on a node that takes no jobs is of no use.
    if node.state is not NodeState.UP:
        reason = f": {safe(node.state_reason)}" if node.state_reason else ""
        return f"is {node.state}{reason}."
    free = [f"{units.counted(max(node.cpus - row.used_cpus, 0), 'CPU')}"]
    free.append(f"{units.memory(max(node.memory_mib - row.used_memory_mib, 0))} of memory")
    if node.cards:
        whole = len(node.cards) - row.used_cards
        free.append(units.counted(whole, "whole card") if whole else "no whole card")
    return f"has {', '.join(free[:-1])} and {free[-1]} free."


def _named(job: JobId, others: Callable[[JobId], JobRow | None]) -> str:
    """Return `134 train (wei)`, which no line break splits."""
    row = others(job)
    words = f"{id_text(row)} {safe(row.name)} ({safe(row.user)})" if row is not None else job_words(job)
    return words.replace(" ", NO_BREAK)


def node_lines(row: NodeRow, others: Callable[[JobId], JobRow | None], context: Context) -> list[Line]:
    """Return the page's harmless lines. `others`: a function from a job's id to its row; None where the user may not
    see the job."""
    head = ((Span(INDENT), *node_sentence(row)), *node_facts(row))
    return [*head, line(), *_usage_lines(row), *_cards(row), line(), *_jobs(row, others, context)]


def _usage_lines(row: NodeRow) -> Iterator[Line]:
    node = row.node
    yield _fraction("CPUs", row.used_cpus, node.cpus, f"{row.used_cpus}/{node.cpus}")
    memory = f"{units.memory(row.used_memory_mib)}/{units.memory(node.memory_mib)}"
    yield _fraction("memory", row.used_memory_mib, node.memory_mib, memory)
    if node.cards:
        cards = f"{units.cards(row.used_card_milli)}/{len(node.cards)}"
        yield _fraction("cards", row.used_card_milli, len(node.cards) * WHOLE_CARD, cards)


def _fraction(label: str, used: int, total: int, text: str) -> Line:
    return (Span(f"{INDENT}{label:<8}", MUTED), *bar(used / max(total, 1), BAR_COLUMNS, "running"), Span(f" {text}"))


def _cards(row: NodeRow) -> Iterator[Line]:
    """Yield a line for each slice in use, and for each card of which no part is in use."""
    if not row.node.cards:
        return
    yield line()
    yield line(Span(f"{INDENT}Cards", STRONG))
    # Not measured is n/a: 0 % would be a measurement.
    loads = {load.card: f"{load.percent} %" for load in row.loads}
    rows = [each for card in row.node.cards for each in _card(row, card, loads.get(card.index, UNKNOWN))]
    yield from small_table(("CARD", "MODEL", "SHARE", "IN USE", "JOB", "USER", "NAME"), rows, right=(2, 3))


def _card(row: NodeRow, card: Card, load: str) -> Iterator[tuple[str, ...]]:
    uses = [use for use in row.slices if use.card == card.index]
    for use in uses:
        name = f"{safe(use.name)}{' (held)' if use.held else ''}"
        share = str(units.cards(use.milli))
        yield (
            card_number(use.card, use.slot, assumed=use.assumed),
            safe(card.model),
            share,
            load,
            job_words(use.job) if use.job else "-",
            safe(use.user),
            name,
        )
    # The free rest of a card that is shared has no load of its own: the figure is of the whole card.
    rest = WHOLE_CARD - sum(use.milli for use in uses)
    if rest > 0:
        yield str(card.index + 1), safe(card.model), str(units.cards(rest)), load if not uses else "", FREE, "", ""


def _jobs(row: NodeRow, others: Callable[[JobId], JobRow | None], context: Context) -> Iterator[Line]:
    # Jobs of other users that one may not see count in the figures above, and are not listed.
    visible = [job for number in row.jobs if (job := others(number)) is not None]
    if not visible:
        yield line(Span(INDENT + NO_JOBS, MUTED))
        return
    yield line(Span(f"{INDENT}Jobs", STRONG))
    rows = [_job(job, context) for job in visible]
    yield from small_table(("ID", "STATE", "USER", "CPUS", "MEMORY", "CARDS", "TIME", "NAME"), rows, right=(3, 4, 5, 6))


def _job(job: JobRow, context: Context) -> tuple[str, ...]:
    """Return the cells of a job with its amounts on all its nodes, as in the list of jobs."""
    elapsed = elapsed_seconds(job, context)
    ran = units.duration(elapsed) if elapsed is not None else ""
    state = f"{GLYPHS[job.state]} {job.state}"
    return (
        id_text(job),
        state,
        safe(job.user),
        str(job.cpus),
        units.memory(job.memory_mib),
        str(units.cards(job.card_milli)),
        f"{ran}/{units.limit(job.time_limit_seconds)}",
        safe(job.name),
    )
