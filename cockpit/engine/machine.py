"""The one writer: an event comes in, the state changes, effects come out.

    machine = Machine(state)
    effects = machine.handle(record)     # after the journal has it

Beside the plain state it keeps what would be slow to ask of it again and again: the queue, who occupies what, free
names, timers. All of that is rebuilt from the state alone (`Machine(state)`), which a test compares. It catches up when
somebody asks, with all that has changed in a job meanwhile; names and timers by themselves, since in a replay nobody
asks for them.
"""

from __future__ import annotations

from collections import ChainMap
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.apply.events import RULES
from cockpit.engine.indices import Indices
from cockpit.engine.reactions import effects_of
from cockpit.engine.timers import Timers, latest_end, next_decay, next_reservation_end
from cockpit.model import events
from cockpit.model.ids import JobId
from cockpit.model.job import OCCUPYING, QUEUED, SUSPENDED, Job
from cockpit.model.spec import HoldCards
from cockpit.sched.queue_order import by_seniority
from cockpit.sched.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.engine.effects import Effect
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import Millis
    from cockpit.model.node import Placement


_OF_RULES = (
    events.ClusterConfigured,
    events.AccountsChanged,
    events.ReservationMade,
    events.ReservationEnded,
    events.QuotaApplied,
    events.QuotaRemoved,
)
_OF_NODES = (events.NodesChanged, events.NodeDrained, events.NodeResumed)
_OF_NO_JOB = frozenset(
    {
        *_OF_RULES,
        *_OF_NODES,
        events.CatalogueChanged,
        events.OthersHeld,
        events.UsageDecayed,
        events.ShellOpened,
        events.CopyRemoved,
        events.EngineStarted,
        events.EngineStopAsked,
        events.EngineStopped,
    }
)
"""Events that change no job."""
_APART = _OF_NO_JOB | {events.JobSuspended}
"""Those that more is to be known of than whose job it was."""


def occupation(job: Job) -> Placement | None:
    """What of the nodes this job holds now: all it was given, a kept container's cards, or nothing."""
    if job.attempt is None:
        return None
    if job.state is SUSPENDED:
        return tuple([replace(each, cpus=0) for each in job.attempt.placement])
    if job.state in OCCUPYING:
        return job.attempt.placement
    if job.kept and job.spec.debug_hold.cards is HoldCards.KEEP:
        return tuple(replace(each, cpus=0, memory_mib=0) for each in job.attempt.placement if each.slices) or None
    return None


def _gone_at(job: Job) -> Millis | None:
    """When it lets go of what it holds, at the latest; None: nobody knows."""
    end = job.held_until or latest_end(job)
    if job.ending is None:
        return end
    return job.ending.kill_at if end is None else min(end, job.ending.kill_at)


def _is_reserved(job: Job) -> bool:
    """A fleet has its place kept, and it waits for it."""
    return job.part is not None and bool(job.part.reserved) and job.state is QUEUED


def _put(group: dict[JobId, None], job: JobId, *, belongs: bool) -> None:
    if belongs:
        group[job] = None
    else:
        group.pop(job, None)


class Machine:
    """The engine's state and what is derived from it."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._queue: dict[JobId, Job] = {}
        self._lined_up: tuple[Job, ...] | None = None
        """The same for views; None: it has changed."""
        self._occupied: dict[JobId, Placement] = {}
        self._ends: dict[JobId, Millis] = {}
        self._timers, self._indices = Timers(), Indices()
        self._changed: dict[JobId, None] = {}
        """Jobs of which nothing here knows the last version."""
        self._behind: dict[JobId, None] = {}
        """Jobs of which the timers, groups and views do not know it."""
        self._unseen: set[JobId] = set()
        """Jobs changed since a view last looked, but for those behind."""
        self._promised: dict[JobId, None] = {}
        """Queued jobs for which others are made to go, or for which a fleet has room kept."""
        self._suspended: dict[JobId, None] = {}
        """In the order in which they began to stand still."""
        self._elastic: dict[JobId, None] = {}
        """Elastic jobs that hold something."""
        self._changes: list[tuple[JobId, Placement | None]] = []
        self._changes_from = state.seq
        self._touched: dict[JobId, None] = {}
        self._nodes_version = state.seq
        self._rules_version = state.seq
        self._frame: Snapshot | None = None
        """A view with all that jobs have no part in, as it is now; None: that has changed."""
        self._others: dict[JobId, Placement] = {}
        """What a fleet's members give to jobs of their own, under names that no job has."""
        self._index_others()
        self._changed.update(dict.fromkeys(job.id for job in sorted(state.jobs.values(), key=by_seniority)))
        self._catch_up()

    @property
    def queue(self) -> Mapping[JobId, Job]:
        """Queued jobs in order of submission, held ones included."""
        self._catch_up()
        return MappingProxyType(self._queue)

    @property
    def occupied(self) -> Mapping[JobId, Placement]:
        """Who holds what now."""
        self._catch_up()
        return MappingProxyType(self._occupied)

    @property
    def ends(self) -> Mapping[JobId, Millis]:
        """When each of them is gone at the latest, by time limit or end of hold; absent: nobody knows."""
        self._catch_up()
        return MappingProxyType(self._ends)

    @property
    def touched(self) -> set[JobId]:
        """Jobs changed since a view last looked; the view empties it."""
        self._catch_up_behind()
        return self._unseen

    @property
    def timers(self) -> Timers:
        """What is due when."""
        self._catch_up_behind()
        return self._timers

    @property
    def indices(self) -> Indices:
        """Live jobs by what requests ask of them."""
        self._catch_up_behind()
        return self._indices

    def handle(self, record: events.EventRecord) -> tuple[Effect, ...]:
        """Apply one journal record; what the world must now do, in order."""
        self.follow(record)
        return effects_of(record, self.state)

    def follow(self, record: events.EventRecord) -> None:
        """Apply one journal record of a world that does by itself what it must. Raises `IllegalTransition` or
        `KeyError` where the journal is broken."""
        state, body = self.state, record.body
        kind = type(body)
        RULES[kind](body, state, record)
        state.seq, state.at = record.seq, record.at
        if kind in _APART:
            self._note(record)
        else:
            self._changed[body.job] = None  # type: ignore[union-attr] # all other kinds are of a job

    def _note(self, record: events.EventRecord) -> None:
        """What is to be known of events of no job, or more than whose it was."""
        body, self._frame = record.body, None
        if isinstance(body, events.JobSuspended):
            self._catch_up()  # they stand still one after the other
            self._changed[body.job] = None
        elif isinstance(body, _OF_NODES):
            self._nodes_version = record.seq
        elif isinstance(body, _OF_RULES):
            self._rules_version = record.seq
        elif isinstance(body, events.OthersHeld):
            self._index_others()

    def live_job_named(self, project: str, name: str) -> JobId | None:
        """The live (not ended) job that has this name in this project."""
        return next(iter(self.indices.named.of((project, name))), None)

    @property
    def next_at(self) -> Millis | None:
        """The earliest moment at which `due.due` has something to say."""
        moments = (self.timers.next_at(), next_decay(self.state, busy=self.busy), next_reservation_end(self.state))
        return min((each for each in moments if each is not None), default=None)

    @property
    def busy(self) -> bool:
        """Something waits, or holds resources."""
        return bool(self.queue or self._occupied)

    def snapshot(self, now: Millis) -> Snapshot:
        """A read-only view for one scheduling cycle; it says what changed since the last one was taken."""
        taken = self.peek(now)
        self.looked()
        return taken

    def looked(self) -> None:
        """The next view says what changes from now on."""
        self._changes, self._touched, self._changes_from = [], {}, self.state.seq

    def peek(self, now: Millis) -> Snapshot:
        """The same view for explaining, which leaves the next cycle's changes alone."""
        self._catch_up()
        state, frame, queue = self.state, self._frame, self._lined_up
        if frame is None:
            frame = self._frame = self._framed()
        if queue is None:
            queue = self._lined_up = tuple(self._queue.values())
        view = replace(
            frame,
            version=state.seq,
            now=now,
            queue=queue,
            changes=tuple(self._changes),
            changes_from=self._changes_from,
            touched=tuple(self._touched),
            freed_at=state.freed_at,
            usage=state.usage,
            qos_usage=state.qos_usage,
            usage_at=state.usage_at,
            highest=state.highest,
        )
        if not (self._promised or self._suspended or self._elastic):
            return view
        promised, suspended, elastic = sorted(self._promised), tuple(self._suspended), sorted(self._elastic)
        return replace(view, promised=promised, suspended=suspended, elastic=elastic)

    def _framed(self) -> Snapshot:
        state, occupied = self.state, self._occupied
        return Snapshot(
            version=state.seq,
            now=state.at,
            nodes=MappingProxyType(state.nodes),
            nodes_version=self._nodes_version,
            queue=(),
            occupied=MappingProxyType(occupied if not self._others else ChainMap(self._others, occupied)),
            ends=MappingProxyType(self._ends),
            changes=(),
            changes_from=state.seq,
            jobs=MappingProxyType(state.jobs),
            cluster=state.cluster,
            accounts=state.accounts,
            rules_version=self._rules_version,
            reservations=state.reservations,
            quota=state.quota,
        )

    def _catch_up(self) -> None:
        """With every job that changed since somebody last asked."""
        if not self._changed:
            return
        changed, jobs = self._changed, self.state.jobs
        self._changed = {}
        self._behind.update(changed)
        if self._touched:
            self._touched.update(changed)
        else:
            self._touched = changed  # nobody else keeps it
        for job_id in changed:
            job = jobs.get(job_id)
            if job is None:
                self._forget(job_id)
            else:
                self._index(job)

    def _catch_up_behind(self) -> None:
        self._catch_up()
        self._unseen.update(self._behind)
        for job_id in self._behind:
            job = self.state.jobs.get(job_id)
            for each in (self._timers, self._indices):
                if job is None:
                    each.forget(job_id)
                else:
                    each.update(job)
        self._behind = {}

    def _index(self, job: Job) -> None:
        if job.state is QUEUED:
            self._lined_up = None
            if job.attempt is None:
                self._queue[job.id] = job
            else:
                self._line_up(job)
        elif self._queue.pop(job.id, None) is not None:
            self._lined_up = None
        if self._promised or job.clears or job.part is not None:
            _put(self._promised, job.id, belongs=bool(job.clears) or _is_reserved(job))
        if self._suspended or job.state is SUSPENDED:
            _put(self._suspended, job.id, belongs=job.state is SUSPENDED)
        if job.spec.elastic is not None:
            _put(self._elastic, job.id, belongs=job.state in OCCUPYING)
        if job.attempt is not None:
            self._index_occupation(job)

    def _line_up(self, job: Job) -> None:
        """In its place, though it may have come back."""
        before = self._queue.get(job.id)
        self._queue[job.id] = job
        if before is None or by_seniority(before) != by_seniority(job):
            behind = [each for each in self._queue.values() if by_seniority(each) > by_seniority(job)]
            for each in behind:
                self._queue[each.id] = self._queue.pop(each.id)

    def _index_others(self) -> None:
        held = [placement for each in self.state.others.values() for placement in each]
        fresh = {JobId(-1 - at): placement for at, placement in enumerate(held)}
        self._changes += [(gone, None) for gone in self._others if gone not in fresh]
        self._changes += [(job, each) for job, each in fresh.items() if self._others.get(job) != each]
        self._others = fresh

    def _index_occupation(self, job: Job) -> None:
        before, now_holds = self._occupied.get(job.id), occupation(job)
        if now_holds is before is None:
            return
        end = _gone_at(job) if now_holds is not None else None
        if end == self._ends.get(job.id) and (now_holds is before or now_holds == before):
            return
        self._changes.append((job.id, now_holds))
        if now_holds is None:
            del self._occupied[job.id]
        else:
            self._occupied[job.id] = now_holds
        if end is None:
            self._ends.pop(job.id, None)
        else:
            self._ends[job.id] = end

    def _forget(self, job: JobId) -> None:
        """It has left the state."""
        if self._queue.pop(job, None) is not None:
            self._lined_up = None
        if self._promised or self._suspended or self._elastic:
            for group in (self._promised, self._suspended, self._elastic):
                group.pop(job, None)
        if self._occupied.pop(job, None) is not None:
            self._ends.pop(job, None)
            self._changes.append((job, None))
        if not self._indices.knows(job):
            del self._behind[job]
