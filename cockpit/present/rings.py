"""The rings of an elastic job: which workers trained together, from when to when, and why each ring was formed.

A *ring* is the set of workers that were neither recalled nor have left. It is derived from the job's events:

1. An attempt's first ring has the workers of its placement.
2. Added workers, a recall, a worker that leaves without a recall, and a replacement each form another ring.
3. The end of the attempt, also the notice to all workers before it, leaves no ring.

A worker that was recalled is no part of the new ring although it still runs;
`cockpit.elastic.world()` reports the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from cockpit.launch.world import host_of
from cockpit.model import events
from cockpit.model.attempt import Grounds
from cockpit.model.events import EventRecord
from cockpit.model.ids import Millis, NodeName
from cockpit.present import units
from cockpit.present.bars import GAP, bar, sparkline
from cockpit.present.events.sentences import event_sentence
from cockpit.present.moments import clock, iso
from cockpit.present.safe import safe
from cockpit.present.spans import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cockpit.model.jobdetail import JobDetail
    from cockpit.present.columns import Context

BAR_COLUMNS: Final = 24
HISTORY_COLUMNS: Final = 48
LAST_RINGS: Final = 12
"""Number of rings on the page, the last ones; JSON has all that the events tell of."""
NAMED_WORKERS: Final = 8
"""Number of workers that a line of the page names; the others are counted."""
_YOUNGEST: Final = "gives up workers first, its youngest ones; no job is evicted while workers are enough"
_RULES: Final = {
    Grounds.QOS: "of the jobs that may be preempted, that with the lowest QOS priority and then the youngest "
    + _YOUNGEST,
    Grounds.PARTITION: "of the jobs that may be preempted, that of the lowest partition tier, then the youngest "
    + _YOUNGEST,
    Grounds.QUOTA: "of the jobs whose queues have borrowed what is short, the youngest " + _YOUNGEST,
    Grounds.RECLAIM: "every worker on the node that is taken back leaves",
    Grounds.PRICE: "every worker leaves whose node costs more than the job's max_price now",
    Grounds.PRESSURE: "of the best-effort jobs on the node, the youngest leaves first",
}
"""The rule by which a job is the one that shrinks, by the grounds of the recall."""
_ENDS: Final = (events.EndingBegan, events.JobRequeued, events.JobEnded, events.BindingGivenUp, events.PrologFailed)


class RingWorker(msgspec.Struct, frozen=True):
    """A worker of a ring."""

    rank: int
    """Its place in the ring, from 0 without gaps."""
    replica: int
    """The number that it keeps for its whole life."""
    host: str
    node: NodeName


class Ring(msgspec.Struct, frozen=True):
    """The workers that trained together from one change to the next."""

    version: int
    """The version of the job by which the workers learned of it: the number of the event."""
    workers: tuple[RingWorker, ...]
    """In order of their ranks; empty: none trains."""
    record: EventRecord
    """The event that formed the ring."""

    @property
    def since(self) -> Millis:
        """When it was formed."""
        return self.record.at


def rings(detail: JobDetail) -> list[Ring]:
    """Return the rings of an elastic job, the oldest first, as far back as its events reach; empty for other jobs."""
    return [] if detail.job.spec.elastic is None else list(_formed(detail))


def _formed(detail: JobDetail) -> Iterator[Ring]:
    members: dict[int, NodeName] = _first_members(detail)
    spec, past = detail.job.spec, None
    for record in detail.events:
        members = _members_after(record, members)
        # Most events change no ring, such as the start of a worker, or its end after a recall.
        if members != past and (members or past):
            present = enumerate(sorted(members.items()))
            workers = tuple([RingWorker(rank, each, host_of(spec, each), node) for rank, (each, node) in present])
            # The first event of a list that was cut off has formed nothing.
            if past is not None or isinstance(record.body, events.JobPlaced):
                yield Ring(record.seq, workers, record)
        past = members


def _members_after(record: EventRecord, members: Mapping[int, NodeName]) -> dict[int, NodeName]:
    """Return replica and node of each member of the ring after this event."""
    body = record.body
    match body:
        case events.JobPlaced():
            return {part.rank: part.node for part in body.placement}
        case events.WorkersAdded():
            return {**members, **{part.rank: part.node for part in body.placement}}
        case events.WorkersRecalled() | events.WorkersLeft():
            return {each: node for each, node in members.items() if each not in body.ranks}
        case events.WorkerReplaced() if body.rank in members:
            others = {each: node for each, node in members.items() if each != body.rank}
            return {**others, body.by: members[body.rank]}
        case _:
            return {} if isinstance(body, _ENDS) else dict(members)


def _first_members(detail: JobDetail) -> dict[int, NodeName]:
    """Return the members before the first event, which are unknown unless the events belong to the present attempt.

    Only the last events of a job are read. Where its placement is not among them, the present workers are
    followed back.
    """
    attempt = detail.job.attempt
    if attempt is None or any(isinstance(each.body, events.JobPlaced) for each in detail.events):
        return {}
    bodies = [record.body for record in detail.events]
    if detail.job.ending is not None and not any(isinstance(each, _ENDS) for each in bodies):
        return {}  # its end began before these events
    recalled = {rank for each in bodies if isinstance(each, events.WorkersRecalled) for rank in each.ranks}
    gone: set[int] = set()
    # By the events and not by their times, since several may have happened at one time.
    others = set(range(detail.job.spec.first_worker))
    for body in bodies:
        if isinstance(body, events.WorkersAdded):
            others |= {part.rank for part in body.placement}
        elif isinstance(body, events.WorkerReplaced):
            others, gone = others | {body.by}, gone | {body.rank}
        elif isinstance(body, events.WorkersLeft):
            gone |= {*body.ranks}
            # Only a worker that was recalled leaves without a reason.
            others |= {*body.ranks} - recalled if not body.because else set()
    others |= {each.rank for each in attempt.replicas if each.left_at is not None} - gone
    others |= {each.rank for each in detail.job.leaving} - recalled
    return {rank: part.node for rank, part in attempt.places.items() if rank not in others}


def ring_lines(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield the number of workers as a bar, its course over time, and the rings: time, cause and workers."""
    formed = rings(detail)
    if not formed:
        return
    spec = detail.job.spec
    now = len(formed[-1].workers)
    size = plain(bar(now / spec.most_nodes, BAR_COLUMNS, "cards"))
    yield f"Workers {size} {now} now, at least {spec.least_nodes}, at most {spec.most_nodes}"
    if course := _course(formed, detail, context):
        yield course
    for ring in formed[-LAST_RINGS:]:
        size = units.counted(len(ring.workers), "worker")
        at = clock(ring.since, context.now, context.zone)
        yield f"  {at}  ring {ring.version}  {size}  {event_sentence(ring.record, context.zone)}"
        if rule := shrinking_rule(ring.record):
            yield f"         rule: {rule}"
        if ring.workers:
            yield f"         {_named(ring.workers)}"


def shrinking_rule(record: EventRecord) -> str:
    """Return the rule by which the job was the one that shrank; empty: the event is no recall of workers."""
    return _RULES[record.body.grounds] if isinstance(record.body, events.WorkersRecalled) else ""


def _course(formed: Sequence[Ring], detail: JobDetail, context: Context) -> str:
    """Return the chart of the number of workers over time, with its span; empty for a span of no length."""
    until = detail.row.ended_at if detail.row.ended_at is not None else context.now
    edges = [*(each.since for each in formed), max(until, formed[-1].since)]
    parts = [
        (float(ends - begins), float(len(each.workers)))
        for each, begins, ends in zip(formed, edges, edges[1:], strict=False)
    ]
    chart = sparkline(parts, HISTORY_COLUMNS, detail.job.spec.most_nodes)
    if not chart.replace(GAP, ""):
        return ""
    span = " to ".join(clock(each, context.now, context.zone) for each in (Millis(edges[0]), Millis(edges[-1])))
    return f"  {chart}  {span}"


def _named(workers: Sequence[RingWorker]) -> str:
    named = [f"{each.rank} {safe(each.host)} on {safe(each.node)}" for each in workers[:NAMED_WORKERS]]
    more = len(workers) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def rings_json(detail: JobDetail, context: Context) -> list[dict[str, Any]]:
    """Return one object per ring: version, time, workers with rank, replica, host and node, and its cause."""
    return [
        {
            "version": each.version,
            "since": iso(each.since),
            "size": len(each.workers),
            "cause": str(type(each.record.body).__struct_config__.tag),
            "sentence": event_sentence(each.record, context.zone),
            "rule": shrinking_rule(each.record) or None,
            "workers": [msgspec.structs.asdict(worker) for worker in each.workers],
        }
        for each in rings(detail)
    ]
