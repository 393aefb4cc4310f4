"""Elastic jobs take what is free: at their start as many workers as they ask for, later what nobody else can use.

Source: EL-01 and SC-09. Growing is the last thing that a pass does with room: whoever waits has been looked at by then,
and what is kept for somebody stays theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from cockpit.model.attempt import Attempt
from cockpit.model.growth import NoGrowth
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job, JobState
from cockpit.model.node import Placement
from cockpit.model.spec import NodeSpec
from cockpit.sched.decisions import Growth
from cockpit.sched.index import Index
from cockpit.sched.nodes.node_free import NodeFree, allocate
from cockpit.sched.placement import Fit, fitting
from cockpit.sched.shape import Shape, shape_of
from cockpit.sched.sizes import Sizes
from cockpit.sched.snapshot import Snapshot

Grower = tuple[Job, Attempt]


class DelayCheck(Protocol):
    """What is kept for whom, see `backfill.easy` and `backfill.conservative`."""

    def allows(self, index: Index, job: JobId, end: Millis, placement: Placement) -> bool:
        """Whether nobody is delayed if the job holds this from now until `end`."""
        ...

    def extended(self, index: Index, job: JobId, end: Millis, placement: Placement) -> None:
        """A job that runs holds this too, until `end`."""
        ...


class GrowthRequest(msgspec.Struct, frozen=True):
    """For whom more workers are looked for."""

    job: JobId
    shape: Shape
    spec: NodeSpec
    held: Placement
    runs: bool
    """What it holds is in the index; else it is about to start with that."""
    most: int
    """Workers in all."""
    first_rank: int
    """Of the next one."""
    end: Millis
    blocked: frozenset[NodeName] = frozenset()
    """Where none of them may be."""


class More(NamedTuple):
    """What was found for a job."""

    placement: Placement
    """Of the further workers."""
    stopped: NoGrowth
    """Why they are not more."""


def further_workers(
    wanted: GrowthRequest, index: Index, backfiller: DelayCheck, fit: Fit | None, lawful: Callable[[Placement], bool]
) -> More:
    """Those that have room, in the best room first, as many as rules and places in line allow."""
    found: Placement = ()
    stopped = NoGrowth.NO_ROOM
    begins_with = () if wanted.runs else wanted.held
    for node_free in _nodes_free(wanted, index, fit):
        if len(wanted.held) + len(found) >= wanted.most:
            return More(found, NoGrowth.MOST)
        card = fit.card(node_free, wanted.spec) if fit and not wanted.shape.exclusive else None
        rank = wanted.first_rank + len(found)
        part = allocate(node_free, wanted.spec, rank, exclusive=wanted.shape.exclusive, card=card)
        if not backfiller.allows(index, wanted.job, wanted.end, (*begins_with, *found, part)):
            stopped = NoGrowth.KEPT
            continue
        if not lawful((*wanted.held, *found, part)):
            return More(found, NoGrowth.RULES)
        found = (*found, part)
    return More(found, stopped)


def _nodes_free(wanted: GrowthRequest, index: Index, fit: Fit | None) -> Iterator[NodeFree]:
    """With room for one more, none of those where it has a worker already."""
    one, spec = replace(wanted.shape, nodes=1), wanted.spec
    taken = {order for order, _ in index.located(wanted.held)}
    taken |= {index.layout.position[name] for name in wanted.blocked if name in index.layout.position}
    nodes_free = fit.nodes_free(index, one, spec) if fit and not one.exclusive else fitting(index, one, spec)
    return (node_free for node_free in nodes_free if node_free.order not in taken)


class Grown(NamedTuple):
    """What the step comes to."""

    growths: list[Growth]
    stopped: dict[JobId, NoGrowth]
    """Why those that were looked at do not get more."""


def grown(
    snapshot: Snapshot,
    growing: Iterable[Grower],
    index: Index,
    backfiller: DelayCheck,
    fit: Fit | None,
    sizes: Sizes,
    off_reserved: Callable[[Job, Shape], Shape],
) -> Grown:
    """The last step of a pass. `index` is the pass's own, and changes; `off_reserved`: the shape without the nodes that
    are kept from the job."""
    done = Grown([], {})
    for job, attempt in growing:
        end, spec = snapshot.ends[job.id], job.spec.specs[attempt.spec_index]
        shape = replace(shape_of(job.spec, attempt.partition), specs=(spec,))
        shape = off_reserved(_for_the_rest(job, end, snapshot.now), shape)
        rank = next_rank(attempt)
        most = job.spec.most_nodes
        wanted = GrowthRequest(job.id, shape, spec, attempt.placement, True, most, rank, end, attempt.blocked)
        added, done.stopped[job.id] = further_workers(
            wanted, index, backfiller, fit, sizes.lawful(job, attempt.partition)
        )
        if not added:
            continue
        backfiller.extended(index, job.id, end, added)
        held = (*attempt.placement, *added)
        index.apply([(job.id, held)], {job.id: end})
        done.growths.append(Growth(job.id, added, sizes.resized(job, attempt.partition, held)))
    return done


def growing(snapshot: Snapshot) -> list[Grower]:
    """Who may take more workers: whoever has the least of what it asked for first, of equal ones the eldest. Nobody
    whose end is unknown."""
    jobs = [snapshot.jobs[each] for each in snapshot.elastic if snapshot.ends.get(each, snapshot.now) > snapshot.now]
    found = [(job, job.attempt) for job in jobs if job.attempt is not None and grows(job, job.attempt)]
    return sorted(found, key=lambda each: (len(each[1].placement) / each[0].spec.nodes, each[1].placed_at, each[0].id))


def grows(job: Job, attempt: Attempt) -> bool:
    """Whether it may take more workers now."""
    return job.spec.elastic is not None and why_not(job, attempt) is None


def why_not(job: Job, attempt: Attempt) -> NoGrowth | None:
    """What of itself keeps a job that holds something from growing; None: only others and rules can."""
    if len(attempt.placement) >= job.spec.most_nodes:
        return NoGrowth.MOST
    if job.spec.elastic is None or not job.spec.elastic.allow_scaling:
        return NoGrowth.FIXED
    if job.ending is not None or job.leaving:
        return NoGrowth.GIVES_WAY
    whole = all(each.started_at is not None and each.ended_at is None for each in attempt.there)
    return None if whole and job.state is JobState.RUNNING else NoGrowth.NOT_WHOLE


def next_rank(attempt: Attempt) -> int:
    """None is given twice: container, log and history of a rank are one worker's."""
    return max([len(attempt.replicas), *(part.rank + 1 for part in attempt.placement)])


def _for_the_rest(job: Job, end: Millis, now: Millis) -> Job:
    """As it would be submitted now, to end when it does."""
    return replace(job, spec=replace(job.spec, time_limit_seconds=-(-(end - now) // 1000)))
