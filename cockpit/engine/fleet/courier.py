"""Decides what a fleet tells a member that it reaches over a link, where any request or answer may be lost.

An order has an id, which the member's job carries. No answer is needed for anything: the member's jobs are looked at
again and again, and each look leads to the next steps. So it does not matter after which request or answer the link
broke.

1. A part that the member does not have is submitted, *held*: a held job never starts. A submission that was carried out
   twice, or that arrives late, leaves a second held job, which is cancelled.
2. The part is accepted: the fleet records the member's own id of it, once.
3. When all members in the fleet's own process have placed their parts, and all others have accepted theirs, each of
   these is released: first that is recorded, then the member is told. From then on it may run, and the job starts
   nowhere else before the member has answered that it does not run.
4. When every member has begun its part, what they do is reported to the fleet as its own. Until then nothing of a gang
   counts as begun or ended. If one does not begin in time, all released parts are recalled, and the placement is given
   up when the last of these members has answered that its part does not run: all parts or none.
5. What carries an order that is not wanted (any more) is cancelled: duplicates, and parts of attempts that are over.

A fleet that is started again needs nothing but its own record and the next look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.due import given_up
from cockpit.engine.fleet.parts import parts_of, spec_of
from cockpit.model import events
from cockpit.model.attempt import ExitStatus, RemotePart
from cockpit.model.fleetorder import Order, PartSeen, PartState, by_order
from cockpit.model.ids import ReplicaId
from cockpit.model.job import OCCUPYING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.attempt import Attempt
    from cockpit.model.events import EventBody
    from cockpit.model.fleet import FleetPart
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.model.spec import JobSpec

NEVER_RELEASED = ExitStatus(lost="its fleet took it back before it was released")


class Submit(NamedTuple):
    """Submit the part, held; its spec has the name that carries the order."""

    order: Order
    spec: JobSpec


class Release(NamedTuple):
    """Let the member start the held part."""

    own: str


class Cancel(NamedTuple):
    """End the member's job, whatever it does."""

    own: str


Step = Submit | Release | Cancel


class Look(NamedTuple):
    """What was seen of a member."""

    fleet: str
    """The fleet's own id."""
    member: str
    seen: Sequence[PartSeen]
    """All jobs of the member that carry an order of the fleet and have not ended, and what was found of released parts
    that are not among them (`missing`)."""


class Bound(NamedTuple):
    """A job of the fleet, and its part on a member."""

    member: str
    job: Job
    part: FleetPart


def wanted_parts(fleet: Machine, look: Look) -> Iterator[tuple[Order, Job, FleetPart]]:
    """Yield the parts that the member is to have now: of the jobs that occupy resources there."""
    for job in fleet.state.jobs.values():
        attempt = job.attempt
        if attempt is not None and look.member in attempt.members and job.state in OCCUPYING:
            yield Order(look.fleet, job.id, attempt.number), job, parts_of(job)[look.member]


def missing(fleet: Machine, look: Look) -> list[str]:
    """Return the member's ids of released parts that the look does not contain. The member is asked for each of them:
    a list that is incomplete must not make a running part count as ended."""
    seen = {each.own for each in look.seen}
    parts = (_attempt(job).remote_part(look.member) for _, job, _ in wanted_parts(fleet, look))
    return [each.own for each in parts if each is not None and each.is_released and each.own not in seen]


def reported(fleet: Machine, look: Look, now: Millis, hold: int) -> list[EventBody]:
    """Return the events that follow for one job from the look; empty once everything is recorded.

    Those of several jobs are not decided together, since those of one may change what is right for another: call it
    again until it returns none. `hold`: seconds to hold a failed container.
    """
    parts = by_order(look.seen)
    for order, job, part in wanted_parts(fleet, look):
        if decided := _reported(fleet, Bound(look.member, job, part), parts.get(order, []), now, hold):
            return decided
    return []


def steps(fleet: Machine, look: Look) -> list[Step]:
    """Return what the member is told now, after all events of `reported` are recorded."""
    parts, kept = by_order(look.seen), set[str]()
    taken: list[Step] = []
    for order, job, part in wanted_parts(fleet, look):
        remote = _attempt(job).remote_part(look.member)
        is_over = job.ending is not None or _attempt(job).is_recalled
        if remote is None:
            if not parts.get(order) and not is_over:
                taken.append(Submit(order, _held_spec(job, look.member, part, order)))
        elif not is_over:
            kept.add(remote.own)
            if remote.is_released and _state_of(remote, parts.get(order, ())) is PartState.HELD:
                taken.append(Release(remote.own))
    return [*(Cancel(each.own) for each in look.seen if _is_unwanted(each, look.fleet, kept)), *taken]


def _held_spec(job: Job, member: str, part: FleetPart, order: Order) -> JobSpec:
    """Return the spec that is submitted over the link: held, and with the order in its name."""
    spec = spec_of(job, member, part)
    # A user's own project means nothing on another cluster, where the link's user submits; on Kubernetes it would be a
    # namespace.
    project = None if job.project == job.submitter.name else job.project
    return replace(spec, name=order.named(job.spec.name), hold=True, project=project)


def _is_unwanted(seen: PartSeen, fleet: str, kept: set[str]) -> bool:
    return seen.order.fleet == fleet and seen.own not in kept and seen.state is not PartState.ENDED


def _state_of(remote: RemotePart, mine: Sequence[PartSeen]) -> PartState | None:
    return next((each.state for each in mine if each.own == remote.own), None)


def _reported(fleet: Machine, bound: Bound, mine: Sequence[PartSeen], now: Millis, hold: int) -> list[EventBody]:
    member, job, attempt = bound.member, bound.job, _attempt(bound.job)
    remote = attempt.remote_part(member)
    if remote is None or not remote.is_released:
        # What was never released has not run and never will, whatever is on its way.
        is_over = job.ending is not None
        return _ended(fleet, bound, NEVER_RELEASED, now, hold) if is_over else _before_release(bound, remote, mine)
    seen = next((each for each in mine if each.own == remote.own), None)
    if seen is None or seen.state in {PartState.HELD, PartState.WAITING}:
        return []
    is_whole = not attempt.awaits or job.ending is not None
    if not is_whole and attempt.is_recalled:
        return _given_back(bound, remote, seen)
    if member in attempt.awaits:
        placement = tuple(attempt.placement[rank] for rank in bound.part.ranks)
        return [events.MemberPlaced(job.id, attempt.number, member, placement)]
    return _progress(fleet, bound, seen, now, hold) if is_whole else []


def _progress(fleet: Machine, bound: Bound, seen: PartSeen, now: Millis, hold: int) -> list[EventBody]:
    """Return the events of what a part does whose whole gang has begun, or is being ended."""
    if seen.state is PartState.RUNNING:
        ranks = bound.part.ranks
        return [each for rank in ranks for each in decide.replica_started(fleet, _replica(bound.job, rank), "")]
    return _ended_if(fleet, bound, seen, now, hold)


def _before_release(bound: Bound, remote: RemotePart | None, mine: Sequence[PartSeen]) -> list[EventBody]:
    job, attempt = bound.job, _attempt(bound.job)
    if attempt.is_recalled:
        return []
    live = [each.own for each in mine if each.state is not PartState.ENDED]
    if remote is None:
        accepted = min(live, key=_by_number, default="")
        return _changed(job, RemotePart(member=bound.member, own=accepted)) if accepted else []
    if remote.own not in live:
        # Cancelled there while it was held: without an id of its own it is ordered again.
        return _changed(job, replace(remote, own=""))
    all_accepted = all(attempt.remote_part(member) is not None for member in attempt.awaits)
    return _changed(job, replace(remote, is_released=True)) if all_accepted else []


def _given_back(bound: Bound, remote: RemotePart, seen: PartSeen) -> list[EventBody]:
    """Return the event after a recalled part has ended: with the last of them the placement is given up."""
    # Only what does not run and never will may start elsewhere. What began in the meantime is ended first.
    if seen.state is not PartState.ENDED or not remote.is_recalled or remote.has_ended:
        return []
    others = (each for each in _attempt(bound.job).remote if each.member != bound.member and each.is_released)
    is_last = all(each.has_ended for each in others)
    return [given_up(bound.job)] if is_last else _changed(bound.job, replace(remote, has_ended=True))


def _changed(job: Job, part: RemotePart) -> list[EventBody]:
    return [events.RemotePartChanged(job.id, _attempt(job).number, part)]


def _ended_if(fleet: Machine, bound: Bound, seen: PartSeen, now: Millis, hold: int) -> list[EventBody]:
    if seen.state is not PartState.ENDED:
        return []
    unknown = ExitStatus(lost=f"{bound.member} does not say how {seen.own} ended")
    return _ended(fleet, bound, seen.exit or unknown, now, hold)


def _ended(fleet: Machine, bound: Bound, status: ExitStatus, now: Millis, hold: int) -> list[EventBody]:
    """Return the events after the first replica of the part that is not recorded as ended has ended."""
    # One at a time: the end of a replica may end the job, and with it what is right for the next one.
    for rank in bound.part.ranks:
        if decided := decide.replica_ended(fleet, _replica(bound.job, rank), status, now, hold):
            return decided
    return []


def _replica(job: Job, rank: int) -> ReplicaId:
    return ReplicaId(job.id, _attempt(job).number, rank)


def _attempt(job: Job) -> Attempt:
    assert job.attempt is not None
    return job.attempt


def _by_number(own: str) -> tuple[int, str]:
    """Return the order of a member's ids: the lower number was made first."""
    return (len(own), own)
