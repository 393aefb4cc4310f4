"""Changes the priority of queued jobs: the word that their owner gives them, and what an administrator sets or adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.access import Actor, refuse_others
from cockpit.engine.submission.account_defaults import charge
from cockpit.engine.submission.submit_limits import is_urgent, urgent_error
from cockpit.model import events
from cockpit.model.asking import SiteFactor, WantedPriority
from cockpit.model.job import Job, JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.rules.bounds import DIRECT_PRIORITY, SITE_FACTOR
from cockpit.model.spec import PriorityWord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody


def set_priority(
    machine: Machine, jobs: Sequence[Job], wanted: WantedPriority, actor: Actor
) -> list[EventBody] | Refusal:
    """Set the priority of queued jobs; of an array, of its queued tasks.

    A word also sets the QOS, unless the job names one, and removes a number that was set before. A number replaces the
    computed priority; a site factor is added to it.
    """
    # An array's running and ended tasks are passed over; only if no task is queued is there nothing to change.
    queued = [job for job in jobs if job.state is JobState.QUEUED]
    if not queued:
        (first, *_) = jobs
        state_phrase = f"has ended ({first.state})" if first.ended else f"is {first.state}"
        return Refusal(
            RefusalKind.CONFLICT, f"Job {first.shown_id} {state_phrase}; only a queued job's priority can be set."
        )
    if isinstance(wanted, int):
        return _set_number(queued, wanted, actor)
    if isinstance(wanted, SiteFactor):
        return _add_site_factor(queued, wanted.factor, actor)
    return _refuse_word(machine, queued, wanted, actor) or [
        body for job in queued for body in _set_word(machine, job, wanted)
    ]


def _set_number(queued: Sequence[Job], wanted: int, actor: Actor) -> list[EventBody] | Refusal:
    if (refused := refuse_others(actor, "set a priority by number (urgent is a word)")) is not None:
        return refused
    if error := DIRECT_PRIORITY.error(wanted):
        return Refusal(RefusalKind.INVALID, f"priority: {error}; `cockpit hold` keeps a job from starting.")
    return [events.PrioritySet(job.id, wanted) for job in queued if job.direct_priority != wanted]


def _add_site_factor(queued: Sequence[Job], factor: int, actor: Actor) -> list[EventBody] | Refusal:
    if (refused := refuse_others(actor, "add to a job's priority")) is not None:
        return refused
    if error := SITE_FACTOR.error(factor):
        return Refusal(RefusalKind.INVALID, f"priority: {error}.")
    return [events.SiteFactorSet(job.id, factor) for job in queued if job.site_factor != factor]


def _refuse_word(machine: Machine, queued: Sequence[Job], word: PriorityWord, actor: Actor) -> Refusal | None:
    """Return why the actor may not give these jobs this priority word; None: they may."""
    if word is PriorityWord.VERY_URGENT and (refused := refuse_others(actor, "make a job very-urgent")) is not None:
        return refused
    if any(job.direct_priority is not None for job in queued):
        refused = refuse_others(actor, "change a priority that an administrator has set")
        if refused is not None:
            return refused
    # All tasks of an array have the same owner and project, so that one test of the bound serves them all.
    first = queued[0]
    more = sum(is_urgent(word) and not is_urgent(job.spec.priority) for job in queued)
    error = urgent_error(machine, actor, first.submitter.name, first.project, more)
    return Refusal(RefusalKind.CONFLICT, f"{error}.") if error else None


def _set_word(machine: Machine, job: Job, word: PriorityWord) -> list[EventBody]:
    """Return the events that give the job this word, and the QOS that follows from it."""
    decided: list[EventBody] = []
    if job.spec.priority is not word:
        spec = replace(job.spec, priority=word)
        # The job stays with the account that it was charged to when it was submitted; only the QOS is chosen again.
        charged = charge(machine.state, replace(spec, account=job.account or None), job.submitter)
        qos = charged.qos if not (charged.errors or charged.reasons) else job.qos
        decided.append(events.JobEdited(job.id, spec, job.account, qos, job.partitions))
    # A number that stays in force would hide the word.
    if job.direct_priority is not None:
        decided.append(events.PrioritySet(job.id, None))
    return decided
