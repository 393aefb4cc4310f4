"""Groups queued jobs that are alike for the scheduler, so that the rules are tested once for each group.

All jobs of an *equivalence class* have the same shape and the same limits, so they wait for the same reason. A *queue
entry* is a job in one of its partitions, with the numbers of its shape and class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from operator import itemgetter

import msgspec

from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask, Job
from cockpit.model.reasons import Reason, never_starts
from cockpit.model.spec import JobSpec, PriorityWord
from cockpit.sched.conditions import is_conditional, is_unhindered
from cockpit.sched.rules.counters import LimitCache
from cockpit.sched.rules.limits import NO_SCOPE, LimitScope
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.shape import Shape, shape_of

PartitionEntry = tuple[Job, str]
"""A queued job, and one of the partitions that it may run in (empty: the cluster has none)."""
URGENCY = {PriorityWord.VERY_URGENT: 0, PriorityWord.URGENT: 1, PriorityWord.NORMAL: 2}


def partitions_of(job: Job) -> Sequence[str]:
    """Return the partitions in which the job may run; one empty name where the cluster has none."""
    return job.partitions or ("",)


def by_seniority(job: Job) -> tuple[int, int]:
    """Return the sort key of the last tie-break: the time of submission, or of the return to the queue, then the job
    id."""
    return job.submitted_at if job.revoked_at is None else job.revoked_at, job.id


Bounds = MutableSequence[int]
"""Time limits in seconds, by shape number or class number, from which on no job of it is tried any more."""
OPEN = 1 << 62
"""The bound that excludes no job: longer than any time limit, in seconds."""
NO_SHAPE = 0
_EntryParts = tuple[int, int, "EquivalenceClass", int, int, bool]
"""Shape number, class number, class, CPUs and cards of a queue entry, and whether no rule can stop its class."""
UNKNOWN = -OPEN
"""The CPUs or cards of an entry that no count of free ones rules out. Free CPUs may be below 0, where CPUs are kept for
suspended jobs."""
_NO_ARRAY = ArrayTask(JobId(0), 0)
_job_of = itemgetter(0)


class EquivalenceClass(msgspec.Struct, frozen=True, cache_hash=True):
    """A shape and the limits that apply to it. What a single job brings itself (a hold, dependencies, a begin time) is
    no part of it."""

    shape: Shape
    scope: LimitScope = NO_SCOPE
    array: JobId = JobId(0)
    """The job array whose tasks may not all run at once; 0: there is no such bound."""
    at_once: int = 0
    """The most tasks of the array that may run at once."""
    seconds: int = 0
    """The time limit in seconds, where a budget counts it; else 0."""
    refused: Reason | None = None
    """The reason for which the rules refuse the job, whatever else runs."""
    preemption_key: str = ""
    """Jobs of one key may preempt the same jobs (`Rulebook.preemption_key`); empty: none."""

    @property
    def is_bound(self) -> bool:
        """Whether some rule may stop jobs of the class."""
        return self.refused is not None or bool(self.array or self.scope.running or self.scope.budgets)


class QueueEntry(msgspec.Struct, frozen=True, gc=False):
    """A queued job in one of its partitions, with all that a pass compares in its loop."""

    shape_number: int
    """Number of the class's shape in the cache; NO_SHAPE where the rules alone refuse it."""
    class_number: int
    """Number of the class in the cache."""
    seconds: int
    """The job's time limit in seconds."""
    job: Job
    equivalence_class: EquivalenceClass
    cpus: int
    """CPUs that one replica needs on a node; UNKNOWN where the job may preempt others, or has several alternatives."""
    cards: int
    """Idle cards that one replica needs on a node; 0 in the same cases."""
    free: bool
    """Whether only missing resources can keep the job waiting: it has no condition of its own, and no rule applies."""


class EquivalenceCache:
    """Remembers the queue entry of every queued job: to judge 100 000 jobs in each cycle would cost more than the
    cycle.

    It is only a cache and changes no answer, so successive indexes share one while the rules stay the same. A
    computation beside the passes has a cache of its own (`Index.with_own_caches`).
    """

    def __init__(self, rules: Rulebook) -> None:
        self.rules = rules
        self._judged: dict[object, Reason | None] = {}
        self._shapes: dict[Shape, Shape] = {}
        """One object for each distinct shape, so that look-ups compare identities first."""
        self._forget()

    def entries(self, pairs: Sequence[PartitionEntry]) -> list[QueueEntry]:
        """Return the entries of these jobs and partitions, in the same order. Forgets the jobs that left the queue once
        they are the majority."""
        self.purge(len(pairs))
        # a job's record is replaced when the job changes, so its `id()` is a safe key, and quicker than a hash
        known = map(self._single.get, map(id, map(_job_of, pairs)))
        return [entry or self._entry_of(*pair) for entry, pair in zip(known, pairs, strict=True)]

    def further_entries(self, pairs: Iterable[PartitionEntry]) -> list[QueueEntry]:
        """Return the entries of jobs that join the queue; all numbers stay as they are."""
        return [self._single.get(id(job)) or self._entry_of(job, partition) for job, partition in pairs]

    def entries_of(self, jobs: Mapping[JobId, Job], queued: Iterable[JobId]) -> list[QueueEntry]:
        """Return the entries of these jobs, in each of their partitions."""
        return self.further_entries((jobs[job], name) for job in queued for name in partitions_of(jobs[job]))

    def equivalence_class(self, job: Job, partition: str) -> EquivalenceClass:
        """Return the class of the job in one of its partitions. It assigns no numbers, so it may be called during a
        pass."""
        # without partitions, arrays and rules about owners, jobs of one spec have one class, so the caches by spec are
        # tried first
        if not (partition or job.array is not None or self.rules.distinguishes_owners):
            same = self._parts_by_spec.get(id(job.spec))
            parts = same[1] if same is not None else self._parts_by_key.get(shape_of(job.spec))
            if parts is not None:
                return parts[2]
        known = self._single.get(id(job)) or self._several.get((id(job), partition))
        return known.equivalence_class if known is not None else self._make_class(job, partition)

    def entry(self, job: Job, partition: str) -> QueueEntry:
        """Make the entry of the job in one of its partitions, with numbers. The caller keeps it."""
        spec = job.spec
        # where no rule distinguishes users, accounts or QOS, the spec alone decides; many jobs share one spec object
        if partition or job.array is not None or self.rules.distinguishes_owners:
            known = self._parts_of(job, partition, _parts_key(job, partition))
        elif (same := self._parts_by_spec.get(id(spec))) is not None:
            _, known = same
        else:
            known = self._parts_of(job, partition, shape_of(spec))
            self._parts_by_spec[id(spec)] = spec, known
            self.remembered += 1
        shape, number, equivalence_class, cpus, cards, free = known
        return QueueEntry(
            shape, number, spec.time_limit_seconds, job, equivalence_class, cpus, cards, free and is_unhindered(job)
        )

    def _parts_of(self, job: Job, partition: str, key: object) -> _EntryParts:
        known = self._parts_by_key.get(key)
        if known is None:
            known = self._parts_by_key[key] = self._number_parts(job, partition)
        # the parts are shared by all jobs of the key, but a begin time or reservation is no part of it: such a job is
        # not free
        return (*known[:-1], False) if known[-1] and is_conditional(job.spec) else known

    def purge(self, pairs: int) -> bool:
        """Forget everything if most of it belongs to jobs that left the queue. True: all numbers are new. `pairs`: how
        many entries the queue has."""
        # to forget means to judge the whole queue again, so it waits until far more is remembered than the queue has
        crowded = self.remembered > 4 * pairs + 1024
        if crowded:
            self._forget()
        return crowded

    def _forget(self) -> None:
        """Begin with empty caches, and with new numbers of shapes and classes."""
        self.remembered = 0
        """How many jobs, specs and classes are remembered."""
        self.shapes: list[Shape | None] = [None]
        """Shapes by number; the first place is NO_SHAPE's."""
        self.classes: list[EquivalenceClass] = []
        """Classes by number."""
        self.limit_cache = LimitCache()
        self._shape_numbers: dict[tuple[Shape, str], int] = {}
        """Numbers by shape and preemption key: of two jobs of one shape, only one may be able to preempt."""
        self._class_numbers: dict[EquivalenceClass, int] = {}
        self._parts_by_key: dict[object, _EntryParts] = {}
        """Entry parts by everything that decides them: the shape alone where no rule distinguishes users, else
        `_parts_key`."""
        self._parts_by_spec: dict[int, tuple[JobSpec, _EntryParts]] = {}
        """Entry parts by the identity of the job spec, where no rule distinguishes users. The spec is kept, so that no
        other object gets its `id()`."""
        self._single: dict[int, QueueEntry] = {}
        """Entries by the job's identity, of jobs with one partition."""
        self._several: dict[tuple[int, str], QueueEntry] = {}
        """Entries by the job's identity and partition, of all other jobs."""
        self._jobs: list[Job] = []
        """The jobs of those entries, kept so that no other object gets their `id()`."""

    def _entry_of(self, job: Job, partition: str) -> QueueEntry:
        known = self._several.get((id(job), partition))
        return known if known is not None else self._remember(job, partition)

    def _remember(self, job: Job, partition: str) -> QueueEntry:
        entry = self.entry(job, partition)
        self._jobs.append(job)
        self.remembered += 1
        if len(partitions_of(job)) == 1:
            self._single[id(job)] = entry
        else:
            self._several[id(job), partition] = entry
        return entry

    def _number_parts(self, job: Job, partition: str) -> _EntryParts:
        """Judge a job that no entry is known for, and give numbers to its shape and class."""
        made = self._make_class(job, partition)
        # numbers are positions in `classes`, so a pass can keep its bounds in plain lists
        number = self._class_numbers.setdefault(made, len(self.classes))
        if number == len(self.classes):
            self.classes.append(made)
            self.remembered += 1
        first, *others = job.spec.specs
        # a job that may preempt could start on a full cluster, so no count of free CPUs or cards rules it out
        cpus, cards = (first.cpus, first.whole_cards) if not (others or made.preemption_key) else (UNKNOWN, UNKNOWN)
        return self._shape_number(made), number, self.classes[number], cpus, cards, not made.is_bound

    def _shape_number(self, equivalence_class: EquivalenceClass) -> int:
        if equivalence_class.refused is not None:
            return NO_SHAPE
        number = self._shape_numbers.setdefault(
            (equivalence_class.shape, equivalence_class.preemption_key), len(self.shapes)
        )
        if number == len(self.shapes):
            self.shapes.append(equivalence_class.shape)
        return number

    def _make_class(self, job: Job, partition: str) -> EquivalenceClass:
        """Return the class of the job in the partition: its shape, and the limits and refusals of the rules."""
        shape = shape_of(job.spec, partition)
        # one object for equal shapes: dictionaries compare identities before they compare fields
        shape = self._shapes.setdefault(shape, shape)
        refused = self._refusal(job, shape)
        # its limits no longer matter, so all jobs of the shape that are refused for this reason share one class
        if refused is not None and never_starts(refused):
            return EquivalenceClass(shape, refused=refused)
        scope = self.rules.scope(job, partition)
        binding = scope if scope.running or scope.budgets or scope.queue else NO_SCOPE
        counts_time = self.rules.safe and bool(scope.budgets)
        task = job.array if job.array is not None and job.array.at_once else _NO_ARRAY
        # the time limit divides classes only where a budget counts it: else jobs of all lengths share one verdict
        seconds = job.spec.time_limit_seconds if counts_time else 0
        return EquivalenceClass(
            shape,
            binding,
            task.array,
            task.at_once,
            seconds,
            refused,
            preemption_key=self.rules.preemption_key(job, partition),
        )

    def _refusal(self, job: Job, shape: Shape) -> Reason | None:
        spec = job.spec
        owner = (job.account, job.submitter.name, job.qos)
        key = (shape, *owner, spec.time_limit_seconds, spec.divide_over_clusters)
        if key not in self._judged:
            self._judged[key] = self.rules.refusal(job, shape.partition)
        return self._judged[key]


def _parts_key(job: Job, partition: str) -> object:
    """Return everything in a job that decides its class in that partition."""
    spec, array = job.spec, job.array
    return (
        shape_of(spec, partition),
        spec.time_limit_seconds,
        spec.divide_over_clusters,
        job.account,
        job.submitter.name,
        job.qos,
        job.project,
        (array.array, array.at_once) if array is not None else None,
    )
