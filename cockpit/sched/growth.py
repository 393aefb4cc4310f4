"""Gives workers to elastic jobs: at their start as many as they ask for, later what no other job can use.

Source: EL-01 and SC-09. Growing is the last thing that a pass does with free resources: every waiting job has been
considered by then, and reserved resources stay reserved.

For each running elastic job, the one with the smallest share of what it asked for first (`growing_jobs`):

1. Work out the end, the shape and the most workers (`grow_jobs`).
2. Go through the nodes with free resources, best fit first, none where it has a worker (`further_workers`).
3. Add a worker where it delays no waiting job; stop at the job's maximum or where a limit would be broken.
4. Put the new workers into the index and into the backfiller before the next job.

`GrowthTests` tests whether the rules allow a job that many workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from cockpit.model.attempt import Attempt
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.node import Node, Placement
from cockpit.model.reasons import Reason
from cockpit.model.resilience import NoGrowth
from cockpit.model.spec import NodeSpec
from cockpit.sched.decisions import Growth
from cockpit.sched.gates import Gates
from cockpit.sched.index import Index
from cockpit.sched.nodes.eligibility import price_milli
from cockpit.sched.nodes.node_free import NodeFree, allocate
from cockpit.sched.placement import Fit, fitting
from cockpit.sched.rules.limits import JOBS
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.rules.tres import BILLING, ONE, Amounts, held
from cockpit.sched.shape import Shape, shape_of
from cockpit.sched.snapshot import Snapshot

Grower = tuple[Job, Attempt]


class DelayCheck(Protocol):
    """The methods that growth needs from the backfiller, see `backfill.easy` and `backfill.conservative`."""

    def allows(self, index: Index, job: JobId, end: Millis, placement: Placement) -> bool:
        """Return whether no waiting job is delayed if the job holds this from now until `end`."""
        ...

    def extended(self, index: Index, job: JobId, end: Millis, placement: Placement) -> None:
        """Note that a running job holds this too, until `end`."""
        ...


class GrowthRequest(msgspec.Struct, frozen=True):
    """A request for more workers for one job."""

    job: JobId
    shape: Shape
    spec: NodeSpec
    held: Placement
    runs: bool
    """True: it runs, and what it holds is in the index; False: it is about to start with `held`."""
    most: int
    """The most workers that it may have in all."""
    first_rank: int
    """The rank of the next worker."""
    end: Millis
    """The latest end of the job."""
    blocked: frozenset[NodeName] = frozenset()
    """Nodes on which it may have no worker."""


class AddedWorkers(NamedTuple):
    """The workers that a job gets."""

    placement: Placement
    """The placement of the new workers."""
    stopped: NoGrowth
    """The reason for which there are no more."""
    limit: Reason | None = None
    """The limit that one more would exceed; None: none stopped it."""


def further_workers(
    wanted: GrowthRequest,
    index: Index,
    backfiller: DelayCheck,
    fit: Fit | None,
    refusal: Callable[[Placement], Reason | None],
) -> AddedWorkers:
    """Return the new workers that fit, best fit first, as many as the limits and the reservations of waiting jobs
    allow."""
    added: Placement = ()
    stopped = NoGrowth.NO_FREE_NODE
    # of a running job the index has what it holds; of a starting one it has nothing yet
    begins_with = () if wanted.runs else wanted.held
    # 2. the nodes, best fit first
    for node_free in _nodes_free(wanted, index, fit):
        # 3. stop at the maximum, or where a reservation or a limit forbids more
        if len(wanted.held) + len(added) >= wanted.most:
            return AddedWorkers(added, NoGrowth.AT_MAXIMUM)
        # whole nodes leave no card to choose
        card = fit.card(node_free, wanted.spec) if fit and not wanted.shape.exclusive else None
        rank = wanted.first_rank + len(added)
        part = allocate(node_free, wanted.spec, rank, exclusive=wanted.shape.exclusive, card=card)
        if not backfiller.allows(index, wanted.job, wanted.end, (*begins_with, *added, part)):
            stopped = NoGrowth.RESERVED
            continue  # another node may be free of reservations; a limit counts the same on every node
        if (limit := refusal((*wanted.held, *added, part))) is not None:
            return AddedWorkers(added, NoGrowth.LIMIT_REACHED, limit)
        added = (*added, part)
    if stopped is NoGrowth.NO_FREE_NODE and _is_price_too_high(wanted, index, fit):
        stopped = NoGrowth.PRICE_TOO_HIGH
    return AddedWorkers(added, stopped)


def _is_price_too_high(wanted: GrowthRequest, index: Index, fit: Fit | None) -> bool:
    """Return whether a node would hold one more worker at a higher price."""
    if wanted.shape.max_price_milli is None or len(wanted.held) >= wanted.most:
        return False
    at_any_price = replace(wanted, shape=replace(wanted.shape, max_price_milli=None))
    # nodes that were added just now are within the price
    most = wanted.shape.max_price_milli
    return any(price_milli(each.node) > most for each in _nodes_free(at_any_price, index, fit))


def _nodes_free(wanted: GrowthRequest, index: Index, fit: Fit | None) -> Iterator[NodeFree]:
    """Yield nodes that hold one more worker, none where the job has one already."""
    one, spec = replace(wanted.shape, nodes=1), wanted.spec
    # one worker a node: ranks of a job are on different nodes
    taken = {order for order, _ in index.located(wanted.held)}
    taken |= {index.layout.position[name] for name in wanted.blocked if name in index.layout.position}
    nodes_free = fit.nodes_free(index, one, spec) if fit and not one.exclusive else fitting(index, one, spec)
    return (node_free for node_free in nodes_free if node_free.order not in taken)


class GrowthResult(NamedTuple):
    """The result of the step."""

    growths: list[Growth]
    stopped: dict[JobId, NoGrowth]
    """The reason for which each job that was considered gets no more workers."""
    limits: dict[JobId, Reason]
    """The limit that stopped each job that a limit stopped."""


def grow_jobs(
    snapshot: Snapshot,
    growing: Iterable[Grower],
    index: Index,
    backfiller: DelayCheck,
    fit: Fit | None,
    sizes: GrowthTests,
    off_reserved: Callable[[Job, Shape], Shape],
) -> GrowthResult:
    """Let running elastic jobs grow. `index` belongs to the pass, and changes; `off_reserved` takes the reserved nodes
    out of a job's shape."""
    done = GrowthResult([], {}, {})
    for job, attempt in growing:
        # 1. like a job that is submitted now and ends when this one does
        # all workers are alike, so it grows by the alternative that it runs with
        end, spec = snapshot.ends[job.id], job.spec.specs[attempt.spec_index]
        shape = replace(shape_of(job.spec, attempt.partition), specs=(spec,))
        shape = off_reserved(_for_the_rest(job, end, snapshot.now), shape)
        rank = next_rank(attempt)
        most = job.spec.most_nodes
        wanted = GrowthRequest(job.id, shape, spec, attempt.placement, True, most, rank, end, attempt.blocked)
        added, done.stopped[job.id], limit = further_workers(
            wanted, index, backfiller, fit, sizes.refusal(job, attempt.partition)
        )
        if limit is not None:
            done.limits[job.id] = limit
        if not added:
            continue
        # 4. before the next job
        backfiller.extended(index, job.id, end, added)
        held = (*attempt.placement, *added)
        # at once, so that the next job does not get the same resources
        index.apply([(job.id, held)], {job.id: end})
        done.growths.append(Growth(job.id, added, sizes.resized(job, attempt.partition, held)))
    return done


def growing_jobs(snapshot: Snapshot) -> list[Grower]:
    """Return the jobs that may take more workers: those with the smallest share of what they asked for first, then the
    longest running. Jobs whose end is unknown are left out."""
    # without a known end the backfiller cannot tell whom more workers would delay
    jobs = [snapshot.jobs[each] for each in snapshot.elastic if snapshot.ends.get(each, snapshot.now) > snapshot.now]
    growers = [(job, job.attempt) for job in jobs if job.attempt is not None and grows(job, job.attempt)]
    return sorted(
        growers, key=lambda each: (len(each[1].placement) / each[0].spec.nodes, each[1].placed_at, each[0].id)
    )


def grows(job: Job, attempt: Attempt) -> bool:
    """Return whether the job may take more workers now."""
    return job.spec.elastic is not None and why_not(job, attempt) is None


def why_not(job: Job, attempt: Attempt) -> NoGrowth | None:
    """Return what in the job itself keeps it from growing; None: only other jobs and rules can."""
    # before the maximum: a worker that leaves is still in the placement
    if job.ending is not None or job.leaving:
        return NoGrowth.BEING_EVICTED
    if len(attempt.placement) >= job.spec.most_nodes:
        return NoGrowth.AT_MAXIMUM
    if job.spec.elastic is None or not job.spec.elastic.allow_scaling:
        return NoGrowth.SCALING_OFF
    # a job grows only from a state in which all its workers run: the engine takes those that do not for the added ones
    whole = all(each.started_at is not None and each.ended_at is None for each in attempt.present_replicas)
    return None if whole and job.state is JobState.RUNNING else NoGrowth.WORKERS_MISSING


def next_rank(attempt: Attempt) -> int:
    """Return the rank of the next worker. No rank is used twice: container, log and history of a rank belong to one
    worker."""
    return max([len(attempt.replicas), *(part.rank + 1 for part in attempt.placement)])


def _for_the_rest(job: Job, end: Millis, now: Millis) -> Job:
    """Return the job as if it were submitted now with the rest of its time limit."""
    # rounded up: a limit that is too short would let it run into a reservation
    return replace(job, spec=replace(job.spec, time_limit_seconds=-(-(end - now) // 1000)))


class GrowthTests:
    """The tests for one pass, whose gates count what it starts."""

    def __init__(self, rules: Rulebook, gates: Gates, nodes: Mapping[NodeName, Node]) -> None:
        self._rules, self._gates, self._nodes = rules, gates, nodes

    def refusal(self, job: Job, partition: str) -> Callable[[Placement], Reason | None]:
        """Return a test whether the job may hold a placement in that partition. It returns the limit on jobs of that
        size, or on all running jobs, that forbids it; None where none does."""
        equivalence_class = self._gates.equivalence_class(job, partition)
        has = self._has(job, partition)

        def check(placement: Placement) -> Reason | None:
            # judged like a rigid job of that size, so that every limit on a job's size counts
            sized = replace(job, spec=replace(job.spec, nodes=len(placement), elastic=None))
            if (refused := self._rules.refusal(sized, partition)) is not None:
                return refused
            amounts = self._amounts(placement, partition) | {JOBS: ONE}
            # the job counts to the limits already by what it holds, so only the difference is tested
            more = {each: amount - has.get(each, 0) for each, amount in amounts.items()}
            return self._gates.exceeded(equivalence_class, more)

        return check

    def resized(self, job: Job, partition: str, placement: Placement) -> float:
        """Count a running job by this placement from now on, and return its billing."""
        amounts = self._amounts(placement, partition)
        self._gates.adds(job, partition, amounts | {JOBS: ONE})
        return amounts[BILLING] / ONE

    def _has(self, job: Job, partition: str) -> Amounts:
        if job.attempt is None or job.state not in OCCUPYING:
            return {}
        return self._amounts(job.attempt.placement, partition) | {JOBS: ONE}

    def _amounts(self, placement: Placement, partition: str) -> Amounts:
        return self._rules.billed(held(placement, self._nodes), partition)
