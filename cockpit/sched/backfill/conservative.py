"""Conservative backfilling: in the order of the queue, each job gets the earliest slot that the jobs before it leave.

After Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM
SP2 with Backfilling", 2001. Each cycle makes a new plan, so that a job that ends early moves all others up.

1. A node gets a timeline (`NodeTimeline`) when it is first looked at: its tenants leave by their time limits.
2. For each job, each alternative is searched for the first moment at which enough nodes stay free for its whole time
   limit (`opening`): a heap merges the nodes' start windows in order of time.
3. The earliest alternative wins, of equally early ones the first. If the slot begins now, the job starts.
4. Else the slot is reserved in the timelines, so that no later job can delay this one. With `whole_nodes` it also
   closes its nodes to later jobs, as in Slurm, whose backfill plans by nodes and not by what is free of them. A job of
   several partitions keeps the earliest of its slots, of equally early ones that of the partition that comes first.
5. A job that certainly cannot start now is deferred: its slot is searched only when a later job might start, or when
   the reservations are read (`compute_deferred`).

The state of a plan, and what must stay true between two jobs:

- `_timelines` has every running job and every slot of `_slots`, on the nodes that have been looked at. A node that has
  not is made from the index, which has all starts of the pass.
- A slot lies where nothing else is at that time, so that no start can delay it; `_find` is the only place that makes
  one.
- `_deferred` are jobs whose slots are not in the timelines yet. Whatever reads or changes timelines, or starts a job,
  calls `compute_deferred` first, so that their order in the queue is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import Self

from msgspec.structs import replace

from cockpit.model.cluster import Backfill
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Allocation, Placement
from cockpit.model.reasons import BehindHead, Reason
from cockpit.model.spec import NodeSpec
from cockpit.sched.backfill.backfill_conflicts import first_delayed
from cockpit.sched.backfill.easy import BackfillConflicts
from cockpit.sched.backfill.head_reservation import is_certain
from cockpit.sched.backfill.heterogeneous import earliest_heterogeneous_slot
from cockpit.sched.backfill.node_timeline import NEVER, NodeTimeline, Window
from cockpit.sched.decisions import Reserved
from cockpit.sched.index import Index
from cockpit.sched.nodes.node_free import NodeFree
from cockpit.sched.placement import (
    Fit,
    JobPlacement,
    eligible,
    find_among,
    find_placement,
    find_spread,
    fits_now,
    of_components,
)
from cockpit.sched.shape import Shape, alternative

_COMPONENTS = JobId(-1)
"""The job id under which a copy of the plan reserves the components of a job."""


class Conservative:
    """The plan of one pass under conservative backfill: timelines of the nodes, with everything that the pass has
    started and reserved so far."""

    has_reservation = False
    """False: no job is privileged, so that every job is considered and gets its slot."""
    plans_beyond_reservations = True
    """True: a job that an advance reservation keeps off now gets a slot behind it."""
    refusals_may_change = False
    """False: a waiting job keeps its slot, so verdicts hold for the next pass."""

    def __init__(self, now: Millis, backfill: Backfill, fit: Fit | None) -> None:
        self.head: JobId | None = None
        """The first waiting job."""
        self._slots: dict[JobId, Reserved] = {}
        self._until: dict[JobId, Millis] = {}
        """When each slot ends, by the plan."""
        self._waiting: dict[tuple[JobId, str], Shape] = {}
        """Jobs that cannot start now, by partition, in the order of the queue."""
        self._deferred: list[tuple[Index, Job, Shape]] = []
        """Jobs whose slots have yet to be searched, in order, each with the index in which it did not fit."""
        self._certain_for: Index | None = None
        """The index that `_certain` was computed for. Jobs that start in a pass have a known end, so it still holds
        then."""
        self._certain = False
        self._now = now
        self._fit = fit
        self._backfill = backfill
        # 1 ms without a resolution: rounding to it changes nothing
        self._grain = 1000 * backfill.resolution_seconds or 1
        self._horizon = Millis(now + 1000 * backfill.window_seconds) if backfill.window_seconds else NEVER
        self._timelines: dict[int, NodeTimeline] = {}
        self._own: set[int] = set()
        """Nodes whose timelines belong to this pass alone; the timelines of others are copied before they change."""
        self._is_outdated = False
        """Whether jobs may have been evicted since the timelines were made."""
        self._not_before: dict[Shape, tuple[int, Millis]] = {}
        """The time limit and start of the last slot, by shape. A job of the shape that asks for as much time finds none
        sooner."""

    @property
    def reservations(self) -> list[Reserved]:
        """The reservations in the order of the queue."""
        self.compute_deferred()
        return list(self._slots.values())

    def place(self, index: Index, job: Job, shape: Shape) -> JobPlacement | Reason | None:
        """Place the job now for its whole time limit, or return why not (None: it does not fit) and reserve its
        slot."""
        # 5. deferred: another job may start only where CPUs are free, so this slot is not needed yet
        if index.lacks_cpus_for(shape.specs) and self._is_certain(index) and not (shape.helpers or shape.components):
            self._deferred.append((index, job, shape))
            self.head = self.head or job.id
            return None
        self.compute_deferred()
        # Read before `_find`, which makes this job the head if there is none.
        head = self.head
        slot = self._find(index, job, shape)
        if slot is not None and slot[0] == self._now:
            return slot[1]
        # If it fits now, but not for its whole limit, a slot ahead is in its way; `conflicts` finds which one.
        return BehindHead(head) if head is not None and fits_now(index, shape) else None

    def conflicts(self, index: Index) -> BackfillConflicts:
        """Return, for waiting jobs that fit in this index but not for their whole time limit, the first job ahead that
        each would delay."""
        self.compute_deferred()
        # an empty plan: the slots of the jobs ahead are added to it one by one
        replanned = Conservative(self._now, self._backfill, self._fit)
        return first_delayed(replanned, index, self._waiting, self._slots, self._until)

    def reserve_slot(self, index: Index, slot: Reserved, end: Millis) -> None:
        """Reserve the slot, also on nodes that have no timeline yet."""
        for order, _ in index.located(slot.placement):
            # made first: `_reserve` skips nodes that have no timeline
            self._timeline(index, order)
        self._keep(index, slot.job, slot.placement, slot.reserved_at, end)

    def open_until(self, index: Index, shape: Shape, moment: Millis) -> list[int]:
        """Return the nodes where the shape may run from now until `moment`; none if they are too few."""
        span = moment - self._now
        for spec in shape.specs:
            opening = self.opening(index, shape, spec, span, span, self._now)
            # A later opening is none here: the question is how long the job could run if it started now.
            if opening is not None and opening[0] == self._now:
                return opening[1]
        return []

    def compute_deferred(self) -> None:
        """Search and reserve the deferred slots, before anything changes that they depend on."""
        deferred, self._deferred = self._deferred, []
        for index, job, shape in deferred:
            self._find(index, job, shape)

    def _find(self, index: Index, job: Job, shape: Shape) -> tuple[Millis, JobPlacement] | None:
        """Search the job's slot; if it does not begin now, reserve it."""
        limit = 1000 * job.spec.time_limit_seconds
        grain = self._grain
        # with a resolution, ends are rounded up to whole steps, and a start between two steps needs one step more
        span = limit if grain == 1 else self._rounded(limit) + (self._now % grain and grain)
        if self._is_outdated:
            self._rebuild_timelines(index)
        # its own slot in another partition must not block an earlier one
        other, not_before = self._slots.get(job.id), self._not_before
        if other is not None:
            self._release(index, other)
            self._not_before = {}
        # With the bounds by shape emptied: they were found beside the slot that is released here.
        slot = self._slot_of(index, shape, span, limit)
        if other is not None and (slot is None or slot[0] >= other.reserved_at or slot[0] == self._now):
            # it keeps that slot, until it has really started
            self._keep(index, job.id, other.placement, other.reserved_at, self._until[job.id])
            self._not_before = not_before
        # 3. it starts now
        if slot is not None and slot[0] == self._now:
            return slot
        # 4. it waits, and its slot is reserved
        self._waiting[job.id, shape.partition] = shape
        if slot is None:
            return None
        moment, job_placement = slot
        self.head = self.head or job.id
        # Only a slot that is better than the one in another partition, which has been reserved again above.
        if other is None or moment < other.reserved_at:
            self._until[job.id] = self._rounded(moment + limit)
            self._keep(index, job.id, job_placement.placement, moment, self._until[job.id])
            self._slots[job.id] = Reserved(
                job.id, moment, alternative(job.spec, shape, job_placement.spec_index), job_placement.placement
            )
        return slot

    def _slot_of(self, index: Index, shape: Shape, span: int, stay: int) -> tuple[Millis, JobPlacement] | None:
        """Find the earliest slot of a shape of any kind. `span`, `stay`: as for `_slot`."""
        if shape.components:
            return self._slot_together(index, shape, span, stay)
        if shape.spread is not None:
            return self._spread_slot(index, shape, span, stay)
        if shape.helpers:
            return earliest_heterogeneous_slot(self, index, shape, span, stay, (self._now, self._horizon))
        return self._slot(index, shape, span, stay)

    def _slot_together(self, index: Index, shape: Shape, span: int, stay: int) -> tuple[Millis, JobPlacement] | None:
        """Find the first moment at which all components of a heterogeneous job fit, each beside those before it.

        1. Search the slot of each component from a moment on, and reserve it in a copy of the plan.
        2. If one begins later, none can start before that moment: search all of them again from there.
        """
        components = shape.each_component
        for each in components:  # a timeline that is made in a copy for a later moment would begin there
            for spec in each.specs:
                for order in eligible(index, replace(each, barred=()), spec):
                    self._timeline(index, order)
        moment = self._now
        while True:
            # 1. each component beside those before it
            plan, placed, latest = self.resumed(moment), [], moment
            for each in components:
                slot = plan._slot_of(index, each, span, stay)  # noqa: SLF001 - same class
                if slot is None:
                    return None
                latest = max(latest, slot[0])
                placed.append(slot[1])
                # the plan is thrown away, so the parts of all components may be under one id
                plan._reserve(index, _COMPONENTS, slot[1].placement, slot[0], Millis(slot[0] + span))  # noqa: SLF001 - same class
            # 2. together, or again from the latest start
            if latest == moment:
                return moment, of_components(placed)
            moment = latest

    def place_after_evictions(
        self,
        index_after: Index,
        job: Job,
        shape: Shape,
        *,
        suspends: bool = False,  # noqa: ARG002 - only the first waiting job is placed
    ) -> JobPlacement | None:
        """Place the job in an index in which victims have been evicted. Only for the first waiting job: any other might
        delay a job ahead of it."""
        # slots of jobs ahead were found with the victims in place, so only the first job can rely on their absence
        if self.head not in (None, job.id):
            return None
        self.compute_deferred()
        # the timelines will be made again from the pass's index, which has all its starts and evictions by then
        self._is_outdated = True
        return find_placement(index_after, shape, self._fit)

    def started(self, index: Index, job: Job, placement: Placement) -> None:
        # It had a slot in another partition, which nothing needs any more. The new timelines have the start already,
        # since they are made from the index.
        if self._slots.pop(job.id, None) is not None:
            self._rebuild_timelines(index)
            return
        end = self._rounded(self._now + 1000 * job.spec.time_limit_seconds)
        self._reserve(index, job.id, placement, self._now, end)

    def evicted(self, index: Index) -> None:
        """Note that some running jobs leave sooner. The slots stay: each was found for the ends known then."""

    def allows(self, index: Index, _job: JobId, end: Millis, placement: Placement) -> bool:
        """Return whether no waiting job is delayed if the job holds this until `end`: it is free for so long."""
        self.compute_deferred()
        if self._is_outdated:
            self._rebuild_timelines(index)
        # deferred slots are settled by now, so the timelines have all that the jobs ahead need
        located = index.located(placement)
        return all(
            _leaves(self._timeline(index, order).narrowest(self._now, self._rounded(end)), p) for order, p in located
        )

    def extended(self, index: Index, job: JobId, end: Millis, placement: Placement) -> None:
        """Note that a running job holds this too."""
        self._reserve(index, job, placement, self._now, self._rounded(end))

    def _rebuild_timelines(self, index: Index) -> None:
        """Make the timelines again with all remaining slots, since one is no longer needed or jobs were evicted."""
        self._is_outdated = False
        # slots of other jobs were found beside it and stay, so the bounds by shape no longer hold
        self._timelines, self._own, self._not_before = {}, set(), {}
        for slot in self._slots.values():
            self.reserve_slot(index, slot, self._until[slot.job])

    def is_due_after(self, now: Millis) -> bool:
        """Return whether all slots begin later than `now`. A deferred slot begins when some job leaves, which is later
        too."""
        return all(each.reserved_at > now for each in self._slots.values())

    def involves(self, jobs: Collection[JobId]) -> bool:
        """Return whether one of these jobs is the first waiting job. Jobs that have started have no slot any more."""
        return self.head in jobs

    def jobs_with_reservation(self) -> set[JobId]:
        """Return the waiting jobs that have a slot, or will get one."""
        return {*self._slots, *(job.id for _, job, _ in self._deferred)}

    def resumed(self, now: Millis) -> Self:
        """Return the same state at a later moment; this object stays as it is."""
        # timelines are copied when they change (`_own`): most passes change few of ten thousand
        fresh = type(self).__new__(type(self))
        fresh.__dict__ |= self.__dict__
        fresh._now = now  # noqa: SLF001 - same class
        fresh._slots, fresh._not_before = self._slots.copy(), self._not_before.copy()  # noqa: SLF001 - same class
        fresh._until = self._until.copy()  # noqa: SLF001 - same class
        fresh._deferred, fresh._waiting = self._deferred.copy(), self._waiting.copy()  # noqa: SLF001 - same class
        fresh._timelines, fresh._own = self._timelines.copy(), set()  # noqa: SLF001 - same class
        return fresh

    def fails_from(self, _reason: Reason | None) -> int:
        """Return `NEVER`: each job gets its own slot, whatever happened to others of its shape."""
        return NEVER

    def _keep(self, index: Index, job: JobId, placement: Placement, start: Millis, end: Millis) -> None:
        """Reserve a slot of a waiting job."""
        self._reserve(index, job, self._kept(index, placement), start, end)

    def _kept(self, index: Index, placement: Placement) -> Placement:
        """Return what a slot takes in the timelines: with `whole_nodes` all CPUs, without which no job can start."""
        if not self._backfill.whole_nodes:
            return placement
        return tuple(replace(part, cpus=index.layout.nodes[order].cpus) for order, part in index.located(placement))

    def _reserve(self, index: Index, job: JobId, placement: Placement, start: Millis, end: Millis) -> None:
        for order, part in index.located(placement):
            if order not in self._timelines:  # it is made of an index that has the job
                continue
            if order not in self._own:
                self._own.add(order)
                self._timelines[order] = self._timelines[order].copy()
            self._timelines[order].reserve(start, end, job, part)

    def _release(self, index: Index, slot: Reserved) -> None:
        """Release the slot in the timelines, all of which have it."""
        for order, part in index.located(self._kept(index, slot.placement)):
            if order not in self._own:
                self._own.add(order)
                self._timelines[order] = self._timelines[order].copy()
            self._timelines[order].release(slot.reserved_at, self._until[slot.job], slot.job, part)

    def _slot(self, index: Index, shape: Shape, span: int, stay: int) -> tuple[Millis, JobPlacement] | None:
        """Find the earliest slot over the shape's alternatives. `span`: the stay in whole steps of the plan, `stay`:
        the time limit, both in ms."""
        known_span, after = self._not_before.get(shape, (span, self._now))
        # a longer job found its slot later, so a shorter one may find an earlier slot: search from now
        if known_span > span or after < self._now:
            after = self._now
        if (order := self._only_place(index, shape)) is not None:
            return self._slot_on(index, order, shape, span, after)
        # 2. the earliest slot of each alternative
        best: tuple[Millis, int, list[int]] | None = None
        for number, spec in enumerate(shape.specs):
            slot = self.opening(index, shape, spec, span, stay, after)
            if slot is not None and (best is None or slot[0] < best[0]):
                best = slot[0], number, slot[1]
        if best is None:
            return None
        moment, number, orders = best
        # Noted even beyond the window: jobs of the shape behind this one need not search the same moments.
        self._not_before[shape] = (span, moment)
        if moment > self._horizon:
            return None
        return moment, self.among(index, shape, number, orders, moment, span)

    def _spread_slot(self, index: Index, shape: Shape, span: int, stay: int) -> tuple[Millis, JobPlacement] | None:
        """Find the first moment at which all spread tasks fit for the span, on whichever nodes.

        The sum of the tasks that the nodes could hold tells cheaply which moments are worth a look; only for those are
        cards, advance reservations and bounds per node tested.
        """
        # As in `_slot`: a slot of a longer job is no bound for a shorter one.
        known_span, after = self._not_before.get(shape, (span, self._now))
        if known_span > span or after < self._now:
            after = self._now
        (spec,) = shape.specs
        for moment in self._promising(index, shape, span, after):
            if moment > self._horizon:
                return None
            # Enough nodes for the least that a spread needs; if they open later, a later promising moment comes.
            opening = self.opening(index, shape, spec, span, stay, moment)
            if opening is None:
                return None
            if opening[0] > moment:
                continue
            nodes_free = [self._timeline(index, order).narrowest(moment, Millis(moment + span)) for order in opening[1]]
            job_placement = find_spread(nodes_free, shape)
            if job_placement is not None:
                self._not_before[shape] = (span, moment)
                return moment, job_placement
        return None

    def _promising(self, index: Index, shape: Shape, span: int, after: Millis) -> Iterator[Millis]:
        """Yield the moments from `after` on at which the nodes together could hold the tasks for the span, or at which
        an advance reservation ends."""
        spread, (spec,) = shape.spread, shape.specs
        assert spread is not None
        later = replace(shape, barred=()) if shape.barred else shape
        most = spread.most_per_node or spread.tasks
        changes: list[tuple[int, int]] = []
        for order in eligible(index, later, spec):
            before = 0
            for at, held in self._timeline(index, order).tasks_over(spec, spread, span, after):
                count = min(held, most)
                # cards may come free while the sums, which do not count them, stay
                if count != before or spec.card_milli:
                    changes.append((at, count - before))
                    before = count
        # a change of 0 tasks: nodes open at that moment without any timeline changing
        changes += [(one.end_at, 0) for one in index.layout.reservations.values() if one.end_at > after]
        changes.sort()
        # the running sum of all nodes' changes is the number of tasks that fit at each moment
        total = 0
        for at, group in groupby(changes, key=itemgetter(0)):
            total += sum(change for _, change in group)
            if total >= spread.tasks:
                yield Millis(at)

    def among(
        self, index: Index, shape: Shape, number: int, orders: Sequence[int], moment: Millis, span: int
    ) -> JobPlacement:
        """Place an alternative on the best of these nodes, all of which hold a replica from the moment on."""
        nodes_free = [self._timeline(index, order).narrowest(moment, Millis(moment + span)) for order in orders]
        return find_among(nodes_free, shape, number, self._fit)

    def next_change(self, index: Index, moment: Millis) -> Millis | None:
        """Return the next moment at which a job starts or ends on the nodes that have timelines, or an advance
        reservation ends."""
        # Nodes without a timeline do not matter: the search that asks has looked at all nodes that it could use.
        steps = (timeline.next_step(moment) for timeline in self._timelines.values())
        over = (Millis(each.end_at) for each in index.layout.reservations.values())
        return min((at for at in (*steps, *over) if at is not None and at > moment), default=None)

    def _only_place(self, index: Index, shape: Shape) -> int | None:
        """Return the node, if only one may hold the shape, which asks for CPUs and memory alone."""
        # An advance reservation may close the node for a time, which `_slot_on` does not look at.
        layout = index.layout
        node_class = layout.single_class[shape] if not layout.reservations else None
        return (
            layout.members[node_class][0] if node_class is not None and len(layout.members[node_class]) == 1 else None
        )

    def _slot_on(
        self, index: Index, order: int, shape: Shape, span: int, after: Millis
    ) -> tuple[Millis, JobPlacement] | None:
        """Find the earliest slot on the only node that can hold the shape."""
        (spec,) = shape.specs
        # one node: no heap and no windows, the first start is enough
        moment = self._timeline(index, order).earliest(spec, span, exclusive=False, after=after)
        if moment is None:
            return None
        self._not_before[shape] = (span, moment)
        if moment > self._horizon:
            return None
        return moment, JobPlacement(0, (Allocation(0, index.layout.nodes[order].name, spec.cpus, spec.memory_mib),))

    def opening(
        self, index: Index, shape: Shape, spec: NodeSpec, span: int, stay: int, after: Millis
    ) -> tuple[Millis, list[int]] | None:
        """Return the first moment at which enough nodes stay free for the span, with no advance reservation during the
        stay, and all nodes that do then; None: there is none.

        1. Each node yields its windows of possible starts, soonest first. The heap holds the next window of each node.
        2. At each moment, the windows that begin are opened.
        3. If enough windows are open at that moment, it is the answer.
        """
        waiting = []
        later = replace(shape, barred=()) if shape.barred else shape  # advance reservations may be over then
        places = eligible(index, later, spec)
        # 1. the windows of each node, soonest first
        for order in sorted(places):
            windows = self._timeline(index, order).windows(spec, span, exclusive=shape.exclusive, after=after)
            if index.layout.reservations:
                windows = _outside(_reserved_spans(index, order, shape), windows, stay)
            # `order` comes before the iterator in the tuple: it is unique, so that heaps never compare iterators.
            if (window := next(windows, None)) is not None:
                waiting.append((*window, order, windows))
        heapify(waiting)
        open_until: dict[int, Millis] = {}
        while waiting:
            # 2. open the windows that begin at this moment
            moment = waiting[0][0]
            while waiting and waiting[0][0] == moment:
                _, latest, order, windows = heappop(waiting)
                open_until[order] = latest
                if (window := next(windows, None)) is not None:
                    heappush(waiting, (*window, order, windows))
            # 3. enough nodes are open
            # windows that closed before this moment stay in the dictionary, and are left out here
            orders = [order for order, latest in open_until.items() if latest >= moment]
            if len(orders) >= shape.nodes:
                return moment, sorted(orders)
        return None

    def _timeline(self, index: Index, order: int) -> NodeTimeline:
        """Return the node's timeline: running jobs leave by their time limits, rounded to the resolution."""
        # 1. the timeline of a node, made when it is first looked at
        if order not in self._timelines:
            node_free = index.nodes_free[order]
            ends = index.ends
            if self._grain > 1:
                # with a resolution ends are rounded up, never down: a slot must not begin before its nodes are free
                ends = {job: self._rounded(ends[job]) for job in node_free.tenants if job in ends}
            self._timelines[order] = NodeTimeline(self._now, node_free, ends)
            self._own.add(order)
        return self._timelines[order]

    def _is_certain(self, index: Index) -> bool:
        """Return whether every job that can start at all certainly has a slot."""
        # asked for each job that does not fit, so the answer is cached for the index
        if index is not self._certain_for:
            self._certain_for, self._certain = index, is_certain(index, self._backfill)
        return self._certain

    def _rounded(self, moment: int) -> Millis:
        return Millis(moment if self._grain == 1 else -(-moment // self._grain) * self._grain)


def _leaves(node_free: NodeFree, part: Allocation) -> bool:
    """Return whether this part is free on the node."""
    enough = node_free.cpus >= part.cpus and node_free.memory_mib >= part.memory_mib
    return enough and all(node_free.free_milli(each.card) >= each.milli for each in part.slices)


def _reserved_spans(index: Index, order: int, shape: Shape) -> list[tuple[int, int]]:
    """Return the spans of time, soonest first, in which advance reservations keep a node from the shape."""
    layout = index.layout
    reservations = [layout.reservations[name] for name in layout.node_classes[layout.class_of[order]].reservations]
    # a job that names one runs inside it, so nothing after its end is open to the job
    return sorted(
        (each.end_at, NEVER + 1) if each.name == shape.reservation else (each.start_at, each.end_at)
        for each in reservations
    )


def _outside(reserved: Sequence[tuple[int, int]], windows: Iterator[Window], span: int) -> Iterator[Window]:
    """Yield what is left of the windows for a job that stays for the span and must not overlap the reserved spans."""
    for earliest, latest in windows:
        first = earliest
        # in order of their starts: what lies between two of them is a window, if the job can end before the second
        for start, end in reserved:
            if min(latest, start - span) >= first:
                yield first, Millis(min(latest, start - span))
            first = Millis(max(first, end))
            if first > latest:
                break
        else:
            yield first, latest
