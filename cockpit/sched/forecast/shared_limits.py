"""Finds the waiting jobs that a limit may stop at their reserved start, because jobs ahead use it up first.

The scheduler reserves nodes, not room within limits: when the reserved moment comes, a limit on running jobs, a budget
or an array's bound may be full.

1. For each limit, add up what runs and the most that every job ahead may hold.
2. A limit with room for all of that and for the job itself does not stop it. A budget does not if no other job draws on
   it.

A job behind that fills a gap may use up a limit, too. That is rare, and then the cause of the move names it (`moves`).
"""

from __future__ import annotations

from collections import Counter as Sums
from collections.abc import Mapping, Sequence
from math import ceil

from cockpit.model.ids import JobId
from cockpit.model.spec import WHOLE_CARD, JobSpec, NodeSpec
from cockpit.sched.equivalence import QueueEntry
from cockpit.sched.gates import CounterAmounts
from cockpit.sched.index import Index
from cockpit.sched.rules.counters import JobAmounts, of_array, tally
from cockpit.sched.rules.limits import JOBS, Counter, LimitScope
from cockpit.sched.rules.tres import CARDS, ONE
from cockpit.sched.snapshot import Snapshot

UNKNOWN = 1 << 50
"""More than any limit, in thousandths: the amount of a job that may get as much as its nodes have."""


class SharedLimits:
    """The limits of one queue, and the jobs that they may stop."""

    def __init__(self, snapshot: Snapshot, index: Index, queue: Sequence[QueueEntry]) -> None:
        """`queue`: in the order in which jobs are considered; `index`: of the same snapshot."""
        self._rules = index.equivalence.rules
        self._amounts_by_class: dict[tuple[int, LimitScope], CounterAmounts] = {}
        self._used = Sums[Counter](index.counters.used)
        """The most that may be in use of each counter."""
        self._drawers = Sums[Counter]()
        """The number of jobs that draw on each budget."""
        self._stopped: set[JobId] = set()
        self._add_running(snapshot, index.counters.tallies)
        entries: dict[JobId, list[QueueEntry]] = {}
        for entry in queue:
            if entry.equivalence_class.refused is None and not entry.job.held_by:
                entries.setdefault(entry.job.id, []).append(entry)
        # in the order of the queue: each job is judged with itself and all jobs ahead of it counted in
        for job, each in entries.items():
            self._add_waiting(each)
            if any(map(self._is_exceeded, each)):
                self._stopped.add(job)

    def may_stop(self, job: JobId) -> bool:
        """Return whether a limit may stop the job later although none stops it now."""
        return job in self._stopped

    def _add_running(self, snapshot: Snapshot, counted: Mapping[JobId, JobAmounts]) -> None:
        """Add what running jobs may grow to, and the budgets that they draw on; `_used` has what they hold."""
        for job_id in snapshot.occupied:
            job = snapshot.jobs.get(job_id)
            if job is not None and job.attempt is not None:
                self._drawers.update(self._rules.scope(job, job.attempt.partition).charged)
            if job is not None and job.spec.elastic is not None and job_id in counted:
                self._used.update({counter: UNKNOWN for counter, _ in counted[job_id].parts if counter[-1] != JOBS})

    def _add_waiting(self, entries: Sequence[QueueEntry]) -> None:
        most = dict[Counter, int]()
        # a job starts in one of its partitions, so the largest amount counts and not the sum
        for entry in entries:
            for counter, amount in self._amounts(entry).items():
                most[counter] = max(amount, most.get(counter, 0))
        self._used.update(most)
        self._drawers.update({counter for entry in entries for counter in self._scope(entry).charged})

    def _is_exceeded(self, entry: QueueEntry) -> bool:
        """Return whether what has been added breaks a limit on the job's class."""
        of_class, wanted = entry.equivalence_class, self._amounts(entry)
        bounds = [(each.counter, each.allowed) for each in of_class.scope.running]
        if of_class.array:
            bounds.append((of_array(of_class.array), ONE * of_class.at_once))
        if any(wanted.get(counter) and self._used[counter] > allowed for counter, allowed in bounds):
            return True
        return any(self._drawers[each.counter] > 1 for each in of_class.scope.budgets)

    def _scope(self, entry: QueueEntry) -> LimitScope:
        # not the scope of its class: jobs that no limit stops may count to the limits of others
        return self._rules.scope(entry.job, entry.equivalence_class.shape.partition)

    def _amounts(self, entry: QueueEntry) -> CounterAmounts:
        """Return the most that the job may count to each limit."""
        key = entry.class_number, self._scope(entry)
        if key not in self._amounts_by_class:
            self._amounts_by_class[key] = self._most_amounts(entry)
        return self._amounts_by_class[key]

    def _most_amounts(self, entry: QueueEntry) -> CounterAmounts:
        job, shape, most = entry.job, entry.equivalence_class.shape, dict[str, int]()
        for spec, amounts in zip(shape.specs, self._rules.requested[shape], strict=True):
            for resource, amount in amounts.items():
                most[resource] = max(_widest(resource, amount, job.spec, spec), most.get(resource, 0))
        for counter in self._scope(entry).counters:
            # a job that asks for any card may get one of the model that is limited
            if counter[-1].startswith(f"{CARDS}:"):
                most.setdefault(counter[-1], most.get(CARDS, 0))
        return dict(tally(self._rules, job, shape.partition, most).parts)


def _widest(resource: str, amount: int, job: JobSpec, replica: NodeSpec) -> int:
    """Return the most that a job may hold where it asks for this amount of a resource, in thousandths."""
    if resource == JOBS:
        return amount
    if job.exclusive or job.spread is not None or job.elastic is not None:
        return UNKNOWN
    if resource.startswith(CARDS) and replica.card_milli % WHOLE_CARD:
        # cards that are cut into slices give a share in whole slices, at most the whole card
        return amount * ceil(replica.card_milli / WHOLE_CARD) * WHOLE_CARD // replica.card_milli
    return amount
