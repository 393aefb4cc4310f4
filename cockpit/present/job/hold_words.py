"""Sentences about a held job: what it costs (its cards are billed, and its CPUs too where the cluster holds whole
allocations), and why a job that requested a hold is not held."""

from __future__ import annotations

from typing import Final

from cockpit.model.attempt import EndCause
from cockpit.model.ids import Millis
from cockpit.model.job import ENDED, Job
from cockpit.model.spec import WHOLE_CARD, HoldAllocation, HoldCards
from cockpit.present.states import seconds_left
from cockpit.present.units import counted, counted_cards, tenths

_UNCOVERED: Final = {
    EndCause.TIME_LIMIT: "its time limit",
    EndCause.DEADLINE: "its deadline",
    EndCause.LOST: "the failure of a node",
    EndCause.PREEMPTED: "giving way to another job",
}


def uncovered_words(job: Job) -> str:
    """Return the sentence `No container is held: its time limit ended the script that would have held it.`; empty where
    that is not the case. Of several replicas one may be held that failed later."""
    # Only a hold of whole allocations is part of the script on the nodes, and so ends with it.
    wanted = job.spec.terminal and job.spec.debug_hold.allocation is HoldAllocation.KEEP
    if not wanted or job.state not in ENDED:
        return ""
    out_of_memory = job.exit is not None and job.exit.oom
    if job.held_until is not None:
        return "The replica that failed first is not held: it ran out of memory." if out_of_memory else ""
    cause = "running out of memory" if out_of_memory else _UNCOVERED.get(job.end_cause) if job.end_cause else None
    return f"No container is held: {cause} ended the script that would have held it." if cause else ""


def cost_words(job: Job, now: Millis) -> str:
    """Return what a held job costs: `2 cards and 8 CPUs stay its own and are billed: 1.9 card-hours until then`; empty
    where it holds nothing."""
    hold, placed = job.spec.debug_hold, job.attempt.placement if job.attempt is not None else ()
    if job.held_until is None or not placed:
        return ""
    # Where the placement names no cards, those that the job asks for.
    milli = sum(each.card_milli for each in placed) or job.spec.specs[0].card_milli * len(placed)
    cards = milli / WHOLE_CARD if hold.cards is HoldCards.KEEP else 0.0
    cpus = sum(each.cpus for each in placed) if hold.allocation is HoldAllocation.KEEP else 0
    held = [counted_cards(milli)] if cards else []
    held += [counted(cpus, "CPU")] if cpus else []
    if not held:
        return ""
    hours = seconds_left(job.held_until, now) / 3600
    sum_up = f"{tenths(cards * hours)} card-hours" if cards else f"{tenths(cpus * hours)} CPU-hours"
    stay = "stays" if len(held) == 1 and (cards or cpus) <= 1 else "stay"
    return f"{' and '.join(held)} {stay} its own and {'is' if stay == 'stays' else 'are'} billed: {sum_up} until then"
