"""Counts what is in use of each limit, up and down with every job that starts and ends, so that reading it is one
look-up; finds the jobs that use it (`holders`); and remembers the classes that a limit stopped (`LimitCache`), so that
the next pass need not test them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node, Placement
from cockpit.model.reasons import ArrayFull, LimitReached, Reason
from cockpit.sched.rules.limits import JOBS, Counter
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.rules.tres import BILLING, ONE, Amounts, held, thousandths

if TYPE_CHECKING:
    from cockpit.sched.snapshot import Snapshot

NOTHING = 0


class JobAmounts(msgspec.Struct, frozen=True, gc=False):
    """The amounts that one job adds to the counters while it holds resources."""

    parts: tuple[tuple[Counter, int], ...]


class Counters:
    """Use by counter, in thousandths; counters at 0 are left out. Indexes share it, so it is copied before a change
    (`changed`, `fork`)."""

    def __init__(self) -> None:
        self.used: dict[Counter, int] = {}
        self.tallies: dict[JobId, JobAmounts] = {}

    def fork(self) -> Counters:
        """Return a copy that may be changed."""
        fork = Counters.__new__(Counters)
        fork.used, fork.tallies = self.used.copy(), self.tallies.copy()
        return fork

    def of(self, counter: Counter) -> int:
        return self.used.get(counter, NOTHING)

    def changed(self, changes: Mapping[JobId, JobAmounts | None]) -> Counters:
        """Return counters in which each of these jobs adds this and nothing else; the same object if that changes
        nothing."""
        tallies = self.tallies
        if not any(job in tallies or (tally is not None and tally.parts) for job, tally in changes.items()):
            return self
        fresh = self.fork()
        for job, tally in changes.items():
            fresh.set(job, tally)
        return fresh

    def set(self, job: JobId, tally: JobAmounts | None) -> None:
        """Set what the job adds; None: nothing."""
        if (before := self.tallies.pop(job, None)) is not None:
            self._add((counter, -amount) for counter, amount in before.parts)
        if tally is not None and tally.parts:
            self.tallies[job] = tally
            self._add(tally.parts)

    def _add(self, parts: Iterable[tuple[Counter, int]]) -> None:
        used = self.used
        for counter, amount in parts:
            if now := used.get(counter, NOTHING) + amount:
                used[counter] = now
            else:
                # counters at 0 are left out, so that two states of equal use compare equal
                del used[counter]


def of_array(array: JobId) -> Counter:
    """Return the counter of an array's running tasks."""
    return "array", str(array), JOBS


def tally(rules: Rulebook, job: Job, partition: str, amounts: Amounts) -> JobAmounts:
    """Return what a job with these amounts adds."""
    parts = [(each, amounts[each[-1]]) for each in rules.scope(job, partition).counters if amounts.get(each[-1])]
    if job.array is not None and job.array.at_once and amounts.get(JOBS):
        parts.append((of_array(job.array.array), amounts[JOBS]))
    return JobAmounts(tuple(parts))


def tally_of_placed(rules: Rulebook, job: Job, placement: Placement, nodes: Mapping[NodeName, Node]) -> JobAmounts:
    """Return what a job that holds resources adds. A held container counts by what it holds, not as a job."""
    attempt = job.attempt
    if attempt is None or not counts(rules, job, attempt.partition):
        return JobAmounts(())
    amounts = held(placement, nodes)
    if job.state in OCCUPYING:
        # the billing of the start, not of now: a change of the weights does not change running jobs
        amounts |= {JOBS: ONE, BILLING: thousandths(attempt.billing)}
    return tally(rules, job, attempt.partition, amounts)


def of_workers(
    tally: JobAmounts, some: Placement, held_by_all: Placement, nodes: Mapping[NodeName, Node]
) -> Iterator[tuple[Counter, int]]:
    """Yield the part of a tally that belongs to some of an elastic job's workers. Billing is assumed to be equal for
    all."""
    amounts = held(some, nodes)
    for counter, amount in tally.parts:
        if counter[-1] == BILLING:
            yield counter, amount * len(some) // max(1, len(held_by_all))
        elif counter[-1] != JOBS:
            # the job itself keeps running, so its count of jobs is not divided
            yield counter, amounts.get(counter[-1], 0)


def counts(rules: Rulebook, job: Job, partition: str) -> bool:
    """Return whether the job counts to any limit; most clusters have no limits."""
    if job.array is not None and job.array.at_once:
        return True
    return rules.binding and bool(rules.scope(job, partition).counters)


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


class Stop(NamedTuple):
    """A limit that stops a class while at least so much is in use of its counter, in thousandths."""

    counter: Counter
    least: int


class LimitCache:
    """The stopped classes, kept from pass to pass while the rules stay the same: a limit that was near stays near."""

    def __init__(self) -> None:
        self._by_counter: dict[Counter, list[tuple[int, int]]] = {}
        """The least use that stops a class and the class's number, by counter; sorted."""
        self._counted: set[tuple[Counter, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._counted)

    def add(self, number: int, stop: Stop) -> None:
        # a class is noted by each pass that it stops in, but needs one entry
        if (stop.counter, number) not in self._counted:
            self._counted.add((stop.counter, number))
            insort(self._by_counter.setdefault(stop.counter, []), (stop.least, number))

    def between(self, counter: Counter, before: int, used: int) -> list[int]:
        """Return the numbers of the classes that stop when use grows from `before` to `used`."""
        stops = self._by_counter.get(counter, [])
        # lists are sorted by the least use that stops a class, so each step of the use stops one slice of the list
        first, last = bisect_right(stops, (before, _LAST)), bisect_right(stops, (used, _LAST))
        return [number for _, number in stops[first:last]]

    def at(self, used: Mapping[Counter, int]) -> Iterator[int]:
        """Yield the numbers of all classes that stop at this use."""
        for counter, stops in self._by_counter.items():
            last = bisect_right(stops, (used.get(counter, 0), _LAST))
            yield from (number for _, number in stops[:last])


_LAST = 1 << 62
"""A number larger than any class number."""
