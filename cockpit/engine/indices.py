"""Live jobs by what requests ask of them, kept beside the state and rebuilt from it alone."""

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
Asked = tuple[int, tuple["NodeSpec", ...]]

_NOBODY: Mapping[JobId, None] = MappingProxyType({})


class Groups(Generic[Key]):
    """Each job in at most one group."""

    def __init__(self) -> None:
        self._members: dict[Key, dict[JobId, None]] = {}
        self.key_of: dict[JobId, Key] = {}

    def put(self, job: JobId, key: Key | None) -> None:
        """Into the group of that key, out of every other; None: into none."""
        before = self.key_of.get(job)
        if before == key:
            return
        if before is not None:
            self._leave(job, before)
        if key is not None:
            self.key_of[job] = key
            self._members.setdefault(key, {})[job] = None

    def of(self, key: Key) -> Mapping[JobId, None]:
        """The members of one group."""
        return self._members.get(key, _NOBODY)

    def groups(self) -> Mapping[Key, Mapping[JobId, None]]:
        """All groups that have members."""
        return self._members

    def _leave(self, job: JobId, key: Key) -> None:
        del self.key_of[job]
        left = self._members[key]
        del left[job]
        if not left:
            del self._members[key]


class Indices:
    """Groups of jobs that have not ended, except where it is said; follows each version of a job."""

    def __init__(self) -> None:
        self.named = Groups[tuple[str, str]]()
        """By project and name."""
        self.owned = Groups[tuple[int, str]]()
        """By user id and name: whom a singleton waits for."""
        self.singletons = Groups[tuple[int, str]]()
        """Those of them that wait as singletons."""
        self.charged = Groups[tuple[str, str, str]]()
        """By account, user and QOS."""
        self.urgent = Groups[tuple[str, str]]()
        """Urgent and very urgent ones, by user and project."""
        self.tasks = Groups["JobId"]()
        """Tasks by array."""
        self.arrays = Groups["JobId"]()
        """Tasks by array, ended ones included."""
        self.states = Groups[JobState]()
        """Every job of the state."""
        self.asking = Groups[Asked]()
        """Those that wait for cards, by number of nodes and node specs."""
        self.kept = Groups[bool]()
        """Those whose containers are kept, ended ones included."""
        self._known: dict[JobId, Job] = {}
        """The last version of each job of the state."""
        self._waiting: dict[JobId, dict[JobId, None]] = {}
        self._waits_for: dict[JobId, tuple[JobId, ...]] = {}

    def knows(self, job: JobId) -> bool:
        """Whether any version of the job has been taken over."""
        return job in self._known

    def update(self, job: Job) -> None:
        """Take over what this version of the job says."""
        known = self._known.get(job.id)
        self._known[job.id] = job
        if known is None or known.state is not job.state or known.below_min_at != job.below_min_at:
            self.states.put(job.id, job.shown_state)
            self._count(job)
        if known is not None and _alike(known, job):
            return
        if known is not None:
            self._count(job)
        if job.kept or known is not None:
            self.kept.put(job.id, True if job.kept else None)
        if job.array is not None:
            self.arrays.put(job.id, job.array.array)
        if job.ended:
            self._leave_all(job.id)
            return
        owner = (job.submitter.uid, job.spec.name)
        self.named.put(job.id, (job.project, job.spec.name))
        self.owned.put(job.id, owner)
        self.charged.put(job.id, (job.account, job.submitter.name, job.qos))
        if (urgent := _urgent_key(job)) is not None or known is not None:
            self.urgent.put(job.id, urgent)
        if job.array is not None:
            self.tasks.put(job.id, job.array.array)
        if job.waits_for or job.id in self._waits_for:
            self._update_conditions(job, owner)

    def forget(self, job: JobId) -> None:
        """The job has left the state."""
        del self._known[job]
        for each in (self.states, self.kept, self.arrays, self.asking):
            if job in each.key_of:
                each.put(job, None)
        self._leave_all(job)

    def waiting_for(self, job: JobId) -> Mapping[JobId, None]:
        """Queued jobs with a condition on that job or array."""
        return self._waiting.get(job, _NOBODY)

    def comparable(self) -> Iterator[object]:
        """For the test that they equal those built from nothing."""
        live = (self.named, self.owned, self.singletons, self.charged, self.urgent, self.tasks)
        yield from (each.groups() for each in (*live, self.arrays, self.states, self.kept, self.asking))
        yield self._waiting

    def _count(self, job: Job) -> None:
        """Among those that wait for cards, or not any more."""
        if job.state is JobState.QUEUED or job.id in self.asking.key_of:
            self.asking.put(job.id, _asked(job))

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
        """None: it waits for nothing; a singleton alone waits for nobody in particular."""
        for other in self._waits_for.pop(job, ()):
            left = self._waiting[other]
            del left[job]
            if not left:
                del self._waiting[other]
        for other in others or ():
            self._waiting.setdefault(other, {})[job] = None
        if others is not None:
            self._waits_for[job] = others


def _asked(job: Job) -> Asked | None:
    specs = job.spec.specs
    waits = job.state is JobState.QUEUED and (specs[0].card_milli or len(specs) > 1)
    return (job.spec.nodes, specs) if waits else None


def _urgent_key(job: Job) -> tuple[str, str] | None:
    return None if job.spec.priority is PriorityWord.NORMAL else (job.submitter.name, job.project)


def _alike(one: Job, other: Job) -> bool:
    """Whether two versions of a job stand in the same groups, which most events leave as they are."""
    return (
        one.spec is other.spec
        and (one.state is other.state or one.ended == other.ended)
        and one.held_until == other.held_until
        and one.account == other.account
        and one.qos == other.qos
        and not (one.waits_for or other.waits_for)
    )
