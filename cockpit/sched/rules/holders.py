"""Finds the running jobs that use up a limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cockpit.model.reasons import ArrayFull, LimitReached
from cockpit.sched.rules.counters import of_array, tally_of_placed
from cockpit.sched.rules.limits import JOBS, Counter
from cockpit.sched.rules.rulebook import Rulebook

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.model.reasons import Reason
    from cockpit.sched.snapshot import Snapshot


def holders(snapshot: Snapshot, job: Job, reason: Reason) -> tuple[JobId, ...]:
    """Return the jobs that use the limit which stops the queued job, the largest first; none where the reason is no
    limit on running jobs."""
    rules = Rulebook(snapshot.cluster, snapshot.accounts, snapshot.rules_version, snapshot.quota)
    counted = set(_counters(rules, job, reason))
    return tuple(each for each, _ in amounts_held(snapshot, rules, counted)) if counted else ()


def amounts_held(snapshot: Snapshot, rules: Rulebook, counted: set[Counter]) -> list[tuple[JobId, int]]:
    """Return what each job adds to these counters, in thousandths, the largest first."""
    amounts: dict[JobId, int] = {}
    for job_id, placement in snapshot.occupied.items():
        job = snapshot.jobs.get(job_id)
        if job is not None:
            parts = tally_of_placed(rules, job, placement, snapshot.nodes).parts
            amounts[job_id] = sum(amount for counter, amount in parts if counter in counted)
    return sorted(((each, held) for each, held in amounts.items() if held), key=lambda pair: (-pair[1], pair[0]))


def _counters(rules: Rulebook, job: Job, reason: Reason) -> Iterator[Counter]:
    if isinstance(reason, ArrayFull):
        yield of_array(reason.array)
    if not isinstance(reason, LimitReached):
        return
    wanted = (reason.holder, reason.limit, reason.resource or JOBS)
    for partition in job.partitions or ("",):
        for bound in rules.scope(job, partition).running:
            if (bound.holder, bound.limit, bound.resource) == wanted:
                yield bound.counter
