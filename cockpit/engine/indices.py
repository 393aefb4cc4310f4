"""Indices of jobs by name, owner, account and other keys, derived from the state and updated with each change."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from cockpit.model.job import JobState
from cockpit.model.spec import DependencyKind, PriorityWord

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.job import Job
    from cockpit.model.spec import NodeSpec

Key = TypeVar("Key", bound=Hashable)
CardRequest = tuple[int, tuple["NodeSpec", ...]]
"""A number of nodes, and the alternative node specs of each."""

_NO_JOBS: Mapping[JobId, None] = MappingProxyType({})


class Groups(Generic[Key]):
    """Groups of jobs by a key; each job is in at most one group. Groups keep the order in which jobs joined."""

    def __init__(self) -> None:
        self._members: dict[Key, dict[JobId, None]] = {}
        self.key_of: dict[JobId, Key] = {}

    def put(self, job: JobId, key: Key | None) -> None:
        """Move the job into the group of that key, out of any other; None: into none."""
        before = self.key_of.get(job)
        if before == key:
            return
        if before is not None:
            self._leave(job, before)
        if key is not None:
            self.key_of[job] = key
            self._members.setdefault(key, {})[job] = None

    def of(self, key: Key) -> Mapping[JobId, None]:
        """Return the jobs in the group of that key."""
        return self._members.get(key, _NO_JOBS)

    def groups(self) -> Mapping[Key, Mapping[JobId, None]]:
        """Return all groups that have members."""
        return self._members

    def _leave(self, job: JobId, key: Key) -> None:
        del self.key_of[job]
        members = self._members[key]
        del members[job]
        # Names, owners and arrays come and go for years: empty groups would never be asked for again.
        if not members:
            del self._members[key]


class Indices:
    """All indices. Each has only jobs that have not ended, unless its description says otherwise."""

    def __init__(self) -> None:
        self.named = Groups[tuple[str, str]]()
        """Jobs by project and name."""
        self.owned = Groups[tuple[int, str]]()
        """Jobs by user id and name: a singleton waits for the earlier ones of its group."""
        self.singletons = Groups[tuple[int, str]]()
        """Queued singletons, by user id and name."""
        self.charged = Groups[tuple[str, str, str]]()
        """Jobs by account, user and QOS."""
        self.urgent = Groups[tuple[str, str]]()
        """Urgent and very urgent jobs, by user and project."""
        self.tasks = Groups["JobId"]()
        """Tasks by array."""
        self.arrays = Groups["JobId"]()
        """Tasks by array, with ended ones."""
        self.states = Groups[JobState]()
        """All jobs by the state that users see, with ended ones."""
        self.asking = Groups[CardRequest]()
        """Queued jobs that need cards or have alternatives, by number of nodes and node specs."""
        self.kept = Groups[bool]()
        """Ended jobs whose containers are held, under the key True."""
        self._last_versions: dict[JobId, Job] = {}
        """The last version of each job that was taken over."""
        self._waiting: dict[JobId, dict[JobId, None]] = {}
        """By job or array: the queued jobs with a dependency on it."""
        self._waits_for: dict[JobId, tuple[JobId, ...]] = {}
        """By queued job: the jobs and arrays that it depends on. The opposite of `_waiting`."""

    def knows(self, job: JobId) -> bool:
        """Tell whether any version of the job has been taken over."""
        return job in self._last_versions

    def update(self, job: Job) -> None:
        """Take over this version of the job. Returns early where its groups cannot have changed."""
        known = self._last_versions.get(job.id)
        self._last_versions[job.id] = job
        # Before the short cut below, since starting, running and the like differ only in this index.
        if known is None or known.state is not job.state or known.below_min_at != job.below_min_at:
            self.states.put(job.id, job.shown_state)
            self._count(job)
        # Nothing that the other indices use has changed.
        if known is not None and _alike(known, job):
            return
        # A job that is new here was counted above.
        if known is not None:
            self._count(job)
        # A job that is new here is in no group that it could have to leave, which spares most calls.
        if job.kept or known is not None:
            self.kept.put(job.id, True if job.kept else None)
        # Before the test for the end: ended tasks stay in their array until they leave the state.
        if job.array is not None:
            self.arrays.put(job.id, job.array.array)
        if job.ended:
            self._leave_all(job.id)
            return
        # Also for a job that is requeued after its end: `_alike` is false then, and it joins all groups again.
        owner = (job.submitter.uid, job.spec.name)
        self.named.put(job.id, (job.project, job.spec.name))
        self.owned.put(job.id, owner)
        self.charged.put(job.id, (job.account, job.submitter.name, job.qos))
        if (urgent := _urgent_key(job)) is not None or known is not None:
            self.urgent.put(job.id, urgent)
        if job.array is not None:
            self.tasks.put(job.id, job.array.array)
        # The second case is a job whose last dependency was met just now: it still has to leave `_waiting`.
        if job.waits_for or job.id in self._waits_for:
            self._update_conditions(job, owner)

    def forget(self, job: JobId) -> None:
        """Remove a job that has left the state."""
        del self._last_versions[job]
        for each in (self.states, self.kept, self.arrays, self.asking):
            if job in each.key_of:
                each.put(job, None)
        self._leave_all(job)

    def waiting_for(self, job: JobId) -> Mapping[JobId, None]:
        """Return the queued jobs with a dependency on that job or array."""
        return self._waiting.get(job, _NO_JOBS)

    def comparable(self) -> Iterator[object]:
        """Yield the contents, for the test that updated indices equal newly built ones."""
        live = (self.named, self.owned, self.singletons, self.charged, self.urgent, self.tasks)
        yield from (each.groups() for each in (*live, self.arrays, self.states, self.kept, self.asking))
        yield self._waiting

    def _count(self, job: Job) -> None:
        """Update the index of queued jobs that need cards."""
        if job.state is JobState.QUEUED or job.id in self.asking.key_of:
            self.asking.put(job.id, _card_request(job))

    def _leave_all(self, job: JobId) -> None:
        for each in (self.named, self.owned, self.singletons, self.charged, self.urgent, self.tasks):
            if job in each.key_of:
                each.put(job, None)
        if job in self._waits_for:
            self._await(job, None)

    def _update_conditions(self, job: Job, owner: tuple[int, str]) -> None:
        waits = job.waits_for if job.state is JobState.QUEUED else ()
        alone = any(each.kind is DependencyKind.SINGLETON for each in waits)
        self.singletons.put(job.id, owner if alone else None)
        self._await(job.id, tuple(dict.fromkeys(each.job for each in waits if each.job)) if waits else None)

    def _await(self, job: JobId, others: tuple[JobId, ...] | None) -> None:
        """Set the jobs and arrays that a job depends on. None: it has no dependencies; empty: only as a singleton."""
        # The old dependencies go first, so that both mappings always say the same.
        for other in self._waits_for.pop(job, ()):
            dependents = self._waiting[other]
            del dependents[job]
            if not dependents:
                del self._waiting[other]
        for other in others or ():
            self._waiting.setdefault(other, {})[job] = None
        if others is not None:
            self._waits_for[job] = others


def _card_request(job: Job) -> CardRequest | None:
    """Return the key of a queued job that needs cards or has alternatives; None: it is none."""
    specs = job.spec.specs
    waits = job.state is JobState.QUEUED and (specs[0].card_milli or len(specs) > 1)
    return (job.spec.nodes, specs) if waits else None


def _urgent_key(job: Job) -> tuple[str, str] | None:
    return None if job.spec.priority is PriorityWord.NORMAL else (job.submitter.name, job.project)


def _alike(one: Job, other: Job) -> bool:
    """Tell whether two versions of a job are in the same groups, as after most events."""
    return (
        # An edit makes a new spec; comparing two specs by value takes longer than taking over a job once too often.
        one.spec is other.spec
        and (one.state is other.state or one.ended == other.ended)
        and one.held_until == other.held_until
        and one.account == other.account
        and one.qos == other.qos
        and not (one.waits_for or other.waits_for)
    )
