"""The state machine, the only writer of the cluster's state: an event comes in, the state changes, effects come out.

    machine = Machine(state)
    effects = machine.handle(record)     # after the journal has stored the record

Besides the plain state, the machine keeps derived collections that would be slow to compute for each use: the queue,
the resources that each job occupies, timers, and indices by name. `Machine(state)` rebuilds all of them from the state
alone, and a test compares the two.

Derived collections are updated lazily, because a replay applies many events to a job between two uses:

1. `follow` applies the event to the state and notes the job in `_changed`. It does nothing else.
2. `_catch_up` runs before the scheduler or a property reads the queue or the occupied resources. It updates those and
   moves the jobs from `_changed` to `_behind`.
3. `_catch_up_behind` runs before timers, indices or `touched` are read. It updates them and empties `_behind`. It is a
   step of its own because a replay takes many snapshots and reads timers and indices seldom.
"""

from __future__ import annotations

from collections import ChainMap
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.engine.apply.events import RULES
from cockpit.engine.indices import Indices
from cockpit.engine.reactions import effects_of
from cockpit.engine.timers import Timers, latest_end, next_decay, next_readmission, next_reservation_end
from cockpit.model import events
from cockpit.model.ids import JobId
from cockpit.model.job import OCCUPYING, QUEUED, SUSPENDED, Job
from cockpit.model.spec import HoldCards
from cockpit.sched.equivalence import by_seniority
from cockpit.sched.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cockpit.engine.effects import Effect
    from cockpit.engine.state import ClusterState
    from cockpit.model.ids import Millis
    from cockpit.model.node import Placement


_RULE_EVENTS = (
    events.ClusterConfigured,
    events.AccountsChanged,
    events.ReservationMade,
    events.ReservationEnded,
    events.QuotaApplied,
    events.QuotaRemoved,
)
"""Events that change the rules by which the scheduler decides."""
_NODE_EVENTS = (events.NodesChanged, events.NodeDrained, events.NodeResumed, events.PricesChanged)
_EXCLUSION_EVENTS = (events.NodeExcluded, events.NodeReadmitted)
"""Events of a job that change the classes of nodes too."""
_JOBLESS_EVENTS = frozenset(
    {
        *_RULE_EVENTS,
        *_NODE_EVENTS,
        events.CatalogueChanged,
        events.OthersHeld,
        events.UsageDecayed,
        events.ShellOpened,
        events.CopyRemoved,
        events.ReceiverFailed,
        events.ReceiverRecovered,
        events.ClusterReported,
        events.EngineStarted,
        events.EngineStopAsked,
        events.EngineStopped,
    }
)
"""Events that change no job."""
_SPECIAL_EVENTS = _JOBLESS_EVENTS | {events.JobSuspended, *_EXCLUSION_EVENTS}
"""Events that need more than a note of the job that they change."""


def occupation(job: Job) -> Placement | None:
    """Return what the job occupies on the nodes now; None: nothing.

    A running job occupies its whole placement, a suspended one all but the CPUs, and an ended one the cards of its held
    container if its debug hold keeps them.
    """
    if job.attempt is None:
        return None
    # Frozen processes use no CPU, but their memory and what they have allocated on the cards stay.
    if job.state is SUSPENDED:
        return tuple([replace(each, cpus=0) for each in job.attempt.placement])
    if job.state in OCCUPYING:
        return job.attempt.placement
    if job.kept and job.spec.debug_hold.cards is HoldCards.KEEP:
        # The job's own processes have ended, so that nothing but the cards is kept for it.
        return tuple(replace(each, cpus=0, memory_mib=0) for each in job.attempt.placement if each.slices) or None
    return None


def _released_at(job: Job) -> Millis | None:
    """Return when the job releases what it occupies, at the latest; None: unknown, as for a suspended job."""
    end = job.held_until or latest_end(job)
    if job.ending is None:
        return end
    # The scheduler plans by time limits without the grace after them; a kill before the limit frees resources sooner.
    return job.ending.kill_at if end is None else min(end, job.ending.kill_at)


def _is_reserved(job: Job) -> bool:
    """Tell whether the job is a queued part of a fleet's job for which the fleet has reserved resources."""
    return job.part is not None and bool(job.part.reserved) and job.state is QUEUED


def _set_membership(group: dict[JobId, None], job: JobId, *, belongs: bool) -> None:
    """Add the job to the group, or remove it if it does not belong. A member keeps its place in the group's order."""
    if belongs:
        group[job] = None
    else:
        group.pop(job, None)


class Machine:
    """The engine's state, and the collections derived from it."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._queue: dict[JobId, Job] = {}
        """The queued jobs, in order of submission."""
        self._queue_view: tuple[Job, ...] | None = None
        """The queue as a tuple for snapshots; None: the queue has changed since it was made."""
        self._occupied: dict[JobId, Placement] = {}
        self._ends: dict[JobId, Millis] = {}
        self._timers, self._indices = Timers(), Indices()
        self._changed: dict[JobId, None] = {}
        """Jobs changed since the last `_catch_up`: no derived collection knows their current versions."""
        self._behind: dict[JobId, None] = {}
        """Jobs changed since the last `_catch_up_behind`: timers and indices do not know their current versions."""
        self._changed_jobs: set[JobId] = set()
        """Jobs changed since the reader of `touched` emptied it, without those in `_behind`."""
        self._nominated: dict[JobId, None] = {}
        """Queued jobs for which others are evicted, or for which a fleet has reserved resources."""
        self._suspended: dict[JobId, None] = {}
        """Suspended jobs, in the order of their suspensions: timeslicing resumes the first one first."""
        self._elastic: dict[JobId, None] = {}
        """Elastic jobs that occupy resources."""
        self._changes: list[tuple[JobId, Placement | None]] = []
        """Changes of `_occupied` since the last snapshot, in order: the job and what it occupies from then on."""
        self._changes_from = state.seq
        """Sequence number of the event after which `_changes` and `_touched` begin."""
        self._touched: dict[JobId, None] = {}
        """Jobs changed since the last snapshot."""
        self._nodes_version = state.seq
        """Sequence number of the last event that changed nodes."""
        self._rules_version = state.seq
        """Sequence number of the last event that changed scheduling rules."""
        self._frame: Snapshot | None = None
        """A snapshot without the fields that job events change, which `peek` completes; None: it is out of date."""
        self._foreign_use: dict[JobId, Placement] = {}
        """Resources that a fleet's members give to jobs of their own, under negative ids, which no job has."""
        self._index_others()
        # By seniority, since `_index` appends to the queue, and `state.jobs` keeps the order of the ids, which differs
        # where a job was sent back to the end of its queue (`revoked_at`).
        self._changed.update(dict.fromkeys(job.id for job in sorted(state.jobs.values(), key=by_seniority)))
        self._catch_up()

    @property
    def queue(self) -> Mapping[JobId, Job]:
        """Queued jobs in order of submission, held ones included."""
        self._catch_up()
        return MappingProxyType(self._queue)

    @property
    def occupied(self) -> Mapping[JobId, Placement]:
        """The resources that each job occupies now."""
        self._catch_up()
        return MappingProxyType(self._occupied)

    @property
    def ends(self) -> Mapping[JobId, Millis]:
        """When each occupying job releases its resources at the latest: by time limit, grace period or end of hold.

        A job is absent where that is unknown.
        """
        self._catch_up()
        return MappingProxyType(self._ends)

    @property
    def touched(self) -> set[JobId]:
        """Jobs changed since the caller last emptied this set; the caller owns and empties it."""
        self._catch_up_behind()
        return self._changed_jobs

    @property
    def timers(self) -> Timers:
        """The moments at which jobs need an event by themselves."""
        self._catch_up_behind()
        return self._timers

    @property
    def indices(self) -> Indices:
        """Live jobs by name, owner, account and other keys."""
        self._catch_up_behind()
        return self._indices

    @property
    def elastic_jobs(self) -> Iterator[Job]:
        """The elastic jobs that occupy resources."""
        self._catch_up()
        return (self.state.jobs[each] for each in self._elastic)

    def handle(self, record: events.EventRecord) -> tuple[Effect, ...]:
        """Apply one journal record and return the effects that the runtime must now carry out, in order."""
        self.follow(record)
        return effects_of(record, self.state)

    def follow(self, record: events.EventRecord) -> None:
        """Apply one journal record without computing effects, as in a replay.

        Raises `IllegalTransition` or `KeyError` if the record does not fit the state: the journal is damaged.
        """
        state, body = self.state, record.body
        kind = type(body)
        RULES[kind](body, state, record)
        # Behind the rule: if it raises, the state does not claim to include the record.
        state.seq, state.at = record.seq, record.at
        # The frequent kinds, which change one job, cost one entry of a dictionary here.
        if kind in _SPECIAL_EVENTS:
            self._note(record)
        else:
            self._changed[body.job] = None  # type: ignore[union-attr] # all other kinds are of a job

    def _note(self, record: events.EventRecord) -> None:
        """Note what one of `_SPECIAL_EVENTS` changes."""
        body, self._frame = record.body, None
        if isinstance(body, events.JobSuspended):
            # `_changed` has the order of the first change, but `_suspended` needs that of the suspensions: empty it
            # first, so that an earlier suspension is indexed before this one.
            self._catch_up()
            self._changed[body.job] = None
        elif isinstance(body, _NODE_EVENTS):
            self._nodes_version = record.seq
        elif isinstance(body, _EXCLUSION_EVENTS):
            self._nodes_version = record.seq
            self._changed[body.job] = None
        elif isinstance(body, _RULE_EVENTS):
            self._rules_version = record.seq
        elif isinstance(body, events.OthersHeld):
            self._index_others()

    def live_job_named(self, project: str, name: str) -> JobId | None:
        """Return the live (not ended) job that has this name in this project; None: there is none."""
        return next(iter(self.indices.named.of((project, name))), None)

    @property
    def next_at(self) -> Millis | None:
        """The earliest moment at which `due.due` returns events; None: never."""
        moments = (
            self.timers.next_at(),
            next_decay(self.state, busy=self.busy),
            next_reservation_end(self.state),
            next_readmission(self.state),
        )
        return min((each for each in moments if each is not None), default=None)

    @property
    def busy(self) -> bool:
        """Whether any job is queued or occupies resources."""
        return bool(self.queue or self._occupied)

    def snapshot(self, now: Millis) -> Snapshot:
        """Return a read-only snapshot for one scheduling pass, with the changes since the previous snapshot."""
        snapshot = self.peek(now)
        self.looked()
        return snapshot

    def looked(self) -> None:
        """Start a new list of changes: the next snapshot reports what changes from now on."""
        self._changes, self._touched, self._changes_from = [], {}, self.state.seq

    def peek(self, now: Millis) -> Snapshot:
        """Return a read-only snapshot for explanations; the changes for the next scheduling pass stay as they are."""
        self._catch_up()
        state, frame, queue = self.state, self._frame, self._queue_view
        # events of jobs leave the frame as it is, so that a pass after a submission copies few fields
        if frame is None:
            frame = self._frame = self._framed()
        if queue is None:
            queue = self._queue_view = tuple(self._queue.values())
        snapshot = replace(
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
        # Most clusters have none of these at most times, and a second copy of the snapshot is saved.
        if not (self._nominated or self._suspended or self._elastic):
            return snapshot
        # Sorted by id: the groups' own order depends on when jobs joined them, which a restart does not rebuild.
        nominated, suspended, elastic = sorted(self._nominated), tuple(self._suspended), sorted(self._elastic)
        return replace(snapshot, nominated=nominated, suspended=suspended, elastic=elastic)

    def _framed(self) -> Snapshot:
        """Build the part of a snapshot that only special events change. Its mappings are live views of the state."""
        state, occupied = self.state, self._occupied
        # Views and not copies: a pass reads a snapshot before the next event, and other readers take `frozen()`.
        return Snapshot(
            version=state.seq,
            now=state.at,
            nodes=MappingProxyType(state.nodes),
            nodes_version=self._nodes_version,
            excluded=frozenset(state.failed_prechecks),
            queue=(),
            occupied=MappingProxyType(occupied if not self._foreign_use else ChainMap(self._foreign_use, occupied)),
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
        """Update the queue, the occupied resources and the groups with every job that changed since the last call."""
        if not self._changed:
            return
        changed, jobs = self._changed, self.state.jobs
        self._changed = {}
        # Timers and indices are updated later, so the jobs wait for that in a second collection.
        self._behind.update(changed)
        if self._touched:
            self._touched.update(changed)
        else:
            self._touched = changed  # without a copy: `_changed` is a new dictionary by now
        for job_id in changed:
            job = jobs.get(job_id)
            if job is None:
                self._forget(job_id)
            else:
                self._index(job)

    def _catch_up_behind(self) -> None:
        """Update the timers and indices with every job that changed since the last call."""
        self._catch_up()
        self._changed_jobs.update(self._behind)
        for job_id in self._behind:
            job = self.state.jobs.get(job_id)
            for each in (self._timers, self._indices):
                if job is None:
                    each.forget(job_id)
                else:
                    each.update(job)
        self._behind = {}

    def _index(self, job: Job) -> None:
        """Take over the current version of a job. The tests before each group spare most jobs, which are in none."""
        if job.state is QUEUED:
            self._queue_view = None
            # A job without an attempt was never taken out of the queue, so that its position is right: ids ascend.
            if job.attempt is None:
                self._queue[job.id] = job
            else:
                self._requeue(job)
        elif self._queue.pop(job.id, None) is not None:
            self._queue_view = None
        if self._nominated or job.clears or job.part is not None:
            _set_membership(self._nominated, job.id, belongs=bool(job.clears) or _is_reserved(job))
        if self._suspended or job.state is SUSPENDED:
            _set_membership(self._suspended, job.id, belongs=job.state is SUSPENDED)
        if job.spec.elastic is not None:
            _set_membership(self._elastic, job.id, belongs=job.state in OCCUPYING)
        if job.attempt is not None:
            self._index_occupation(job)

    def _requeue(self, job: Job) -> None:
        """Put a job that ran before into the queue, at the position that its seniority gives it.

        A dictionary keeps the order of insertion: the job is appended, then every job behind it is moved to the end.
        """
        before = self._queue.get(job.id)
        self._queue[job.id] = job
        # an edit that leaves the seniority as it is also leaves the position
        if before is None or by_seniority(before) != by_seniority(job):
            juniors = [other for other in self._queue.values() if by_seniority(other) > by_seniority(job)]
            for other in juniors:
                self._queue[other.id] = self._queue.pop(other.id)

    def _index_others(self) -> None:
        """Number the placements of the members' own jobs again, and note the changes as those of jobs -1, -2 …"""
        # They have no ids on the fleet. Negative ones cannot meet a job's, which begin at 1.
        placements = [placement for member in self.state.others.values() for placement in member]
        after = {JobId(-1 - at): placement for at, placement in enumerate(placements)}
        self._changes += [(job, None) for job in self._foreign_use if job not in after]
        self._changes += [
            (job, placement) for job, placement in after.items() if self._foreign_use.get(job) != placement
        ]
        self._foreign_use = after

    def _index_occupation(self, job: Job) -> None:
        """Update what the job occupies and until when. A change of the end alone is a change for the scheduler too."""
        before, after = self._occupied.get(job.id), occupation(job)
        # an ended or requeued job that occupied nothing before either
        if after is before is None:
            return
        end = _released_at(job) if after is not None else None
        # Identity first: most events leave the placement as it is, and a large gang takes long to compare.
        if end == self._ends.get(job.id) and (after is before or after == before):
            return
        self._changes.append((job.id, after))
        if after is None:
            del self._occupied[job.id]
        else:
            self._occupied[job.id] = after
        if end is None:
            self._ends.pop(job.id, None)
        else:
            self._ends[job.id] = end

    def _forget(self, job: JobId) -> None:
        """Remove a job that has left the state from the derived collections."""
        if self._queue.pop(job, None) is not None:
            self._queue_view = None
        if self._nominated or self._suspended or self._elastic:
            for group in (self._nominated, self._suspended, self._elastic):
                group.pop(job, None)
        if self._occupied.pop(job, None) is not None:
            self._ends.pop(job, None)
            self._changes.append((job, None))
        # A job that came and left between two updates was never indexed, so there is nothing to forget.
        if not self._indices.knows(job):
            del self._behind[job]
