"""Making room: which running jobs give way in a pass, for whom, and who was promised what they leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from cockpit.model.eviction import EvictionMode
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import Job
from cockpit.model.node import Placement
from cockpit.model.reasons import MakingRoom
from cockpit.sched.claims import Claims, Offer
from cockpit.sched.concessions import Concession, Offered, fewest
from cockpit.sched.counters import Counters
from cockpit.sched.decisions import Eviction
from cockpit.sched.index import Index
from cockpit.sched.limits import Counter
from cockpit.sched.placement import Found, find
from cockpit.sched.request import Ask
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot


class Place(Protocol):
    """Room in an index, unless somebody ahead would be delayed by it."""

    def __call__(self, cleared: Index, job: Job, shape: Shape, *, still: bool = False) -> Found | None: ...


MOST_TAKERS = 16
"""For so many jobs others give way in one pass; the next one follows at once."""


class Cleared(NamedTuple):
    """What has to happen so that a job has room."""

    evictions: tuple[Eviction, ...]
    after: Index
    """With what the others give up given up."""
    found: Found

    @property
    def at_once(self) -> bool:
        """Nobody has to end first."""
        return all(each.mode is EvictionMode.SUSPEND for each in self.evictions)


class Clearing:
    """One pass's evictions. There is none where no rule lets anybody take room."""

    def __init__(self, snapshot: Snapshot, claims: Sequence[Claims]) -> None:
        self.evictions: list[Eviction] = []
        self.promised: dict[JobId, MakingRoom] = {}
        self.vain: dict[tuple[Shape, str], int] = {}
        """By shape and claim: how many might give way, and it would not be enough."""
        self._snapshot = snapshot
        self._claims = claims
        self._gives_way: set[JobId] = set()
        self._takers = 0
        self._unserved = False
        self._known: dict[object, tuple[list[Offer], Offered]] = {}

    def room_for(self, ask: Ask, shape: Shape, index: Index, place: Place) -> Cleared | None:
        """The fewest that have to give way for a job that has no room; None where that cannot be, or those who are
        ending anyway leave it room enough."""
        if find(self.without_leaving(index), shape) is not None:
            return None
        if self._takers >= MOST_TAKERS:
            self._unserved = True
            return None
        offers, offered = self._on_offer(ask, shape, index)
        chosen = fewest(index, shape, offered, self._gives_way)
        if chosen is None:
            self.vain[ask.request.shape, ask.request.claim] = sum(
                each.concession.job not in self._gives_way for each in offers
            )
            return None
        taken = [each for each in offers if each.concession in chosen]
        after = conceded(index, chosen)
        still = any(each.mode is EvictionMode.SUSPEND for each in taken)
        found = place(
            after, _for_longer(ask.job, max((each.grace_seconds for each in taken), default=0)), shape, still=still
        )
        return Cleared(tuple(eviction(each, ask.job.id) for each in taken), after, found) if found else None

    def carried_out(self, cleared: Cleared) -> None:
        """It is going to happen."""
        self._takers += 1
        self.evictions += cleared.evictions
        self._gives_way.update(each.job for each in cleared.evictions)

    def promise(self, job: JobId, others: Iterable[JobId]) -> None:
        """The job starts once these are gone."""
        others = tuple(others)
        gone_at = [self.gone_at(other) for other in others]
        known = [each for each in gone_at if each is not None]
        self.promised[job] = MakingRoom(others, max(known) if others and len(known) == len(others) else None)

    def gives_way(self, job: JobId) -> bool:
        """By what this pass decided."""
        return job in self._gives_way

    def coming_free(self, counters: Counters) -> dict[Counter, int]:
        """What those count for who are on their way out, or are to go."""
        free: dict[Counter, int] = {}
        for job in (*self.leaving(), *self._going()):
            for counter, amount in counters.tallies[job].parts if job in counters.tallies else ():
                free[counter] = free.get(counter, 0) + amount
        return free

    def gone_for(self, job: JobId) -> list[JobId]:
        """Who is still on the way out for the job's sake."""
        endings = {other: self._snapshot.jobs[other].ending for other in self.leaving()}
        return [other for other, ending in endings.items() if ending is not None and ending.for_job == job]

    def promised_room(self, shape: Shape, index: Index) -> Found | None:
        """Room as it will be once everybody who is ending is gone."""
        return find(self.without_leaving(index), shape)

    def leaving(self) -> list[JobId]:
        """Who holds something and is being ended."""
        jobs = self._snapshot.jobs
        return [job for job in self._snapshot.occupied if job in jobs and jobs[job].ending is not None]

    def next_at(self) -> Millis | None:
        """When time alone makes more give way."""
        soon = Millis(self._snapshot.now + 1) if self._unserved else None
        return min(filter(None, (soon, *(each.next_at() for each in self._claims))), default=None)

    def _on_offer(self, ask: Ask, shape: Shape, index: Index) -> tuple[list[Offer], Offered]:
        """To all who have the same claim, where that alone decides it. Whoever started in this pass is not on offer."""
        key = (ask.request.claim, shape.partition)
        if key in self._known and all(claims.alike for claims in self._claims):
            return self._known[key]
        found: dict[JobId, Offer] = {}
        for claims in self._claims:
            for offer in claims.offers(ask.job, shape.partition, index):
                if offer.concession.job not in self._gives_way:
                    found.setdefault(offer.concession.job, offer)
        offers = list(found.values())
        self._known[key] = offers, Offered(index, [each.concession for each in offers])
        return self._known[key]

    def without_leaving(self, index: Index) -> Index:
        """As it will be once those are gone who are on their way out, or are to go."""
        leaving = [job for job in (*self.leaving(), *self._going()) if job in index.placed]
        if not leaving:
            return index
        after = index.fork()
        after.apply([(job, None) for job in leaving], {})
        return after

    def _going(self) -> list[JobId]:
        """Who ends by what this pass decided; one that stands still keeps what it has."""
        return [each.job for each in self.evictions if each.mode in (EvictionMode.CANCEL, EvictionMode.REQUEUE)]

    def delayed(self, job: Job) -> Job:
        """As one that is promised room comes to hold it: for its time, and until the others have had their grace."""
        until = self.promised[job.id].until
        return _for_longer(job, -(-(until - self._snapshot.now) // 1000)) if until is not None else job

    def gone_at(self, job: JobId) -> Millis | None:
        """When one that is on its way out, or is to go, is gone at the latest."""
        grace = [each.grace_seconds for each in self.evictions if each.job == job]
        if grace:
            return Millis(self._snapshot.now + 1000 * grace[0])
        ending = self._snapshot.jobs[job].ending
        return ending.kill_at if ending is not None else None


def conceded(index: Index, concessions: Iterable[Concession]) -> Index:
    """The index once these have given way. What is left of a job goes on, nobody knows how long."""
    left: dict[JobId, Placement] = {}
    for each in concessions:
        changed = {index.floor.nodes[order].name: part for order, part in each.left}
        held = left.get(each.job, index.placed[each.job])
        parts = [changed.get(part.node, part) for part in held]
        left[each.job] = tuple([part for part in parts if part is not None])
    after = index.fork()
    after.apply([(job, placement or None) for job, placement in left.items()], _ends_of_smaller(index, left))
    return after


def _ends_of_smaller(index: Index, left: Mapping[JobId, Placement]) -> dict[JobId, Millis]:
    """A suspended job's end is not known; one that goes on with less keeps its own."""
    return {
        job: index.ends[job]
        for job, placement in left.items()
        if job in index.ends and any(part.cpus for part in placement)
    }


def _for_longer(job: Job, seconds: int) -> Job:
    if seconds <= 0:
        return job
    return replace(job, spec=replace(job.spec, time_limit_seconds=job.spec.time_limit_seconds + seconds))


def eviction(offer: Offer, for_job: JobId) -> Eviction:
    return Eviction(offer.concession.job, for_job, offer.mode, offer.grounds, offer.grace_seconds)
