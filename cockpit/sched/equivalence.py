"""What distinguishes one queued job from another to a cycle: jobs of one request wait for one reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from operator import itemgetter

import msgspec

from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask, Job
from cockpit.model.reasons import NotEvaluated, Reason, never_starts
from cockpit.model.spec import JobSpec
from cockpit.sched.conditions import is_conditional, is_unhindered
from cockpit.sched.queue_order import PartitionEntry, partitions_of
from cockpit.sched.rules.limit_cache import LimitCache
from cockpit.sched.rules.limits import NO_SCOPE, LimitScope
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.shape import Shape, shape_of

Bounds = MutableSequence[int]
"""By the number of a shape or request: the time limit, in seconds, from which on nothing of it is tried any more."""
OPEN = 1 << 62
"""Longer than any time limit, also those of other systems that mean none."""
NO_SHAPE = 0
_UNJUDGED = NotEvaluated()
_Kin = tuple[int, int, "EquivalenceClass", int, int, bool]
"""Shape, number, request, cpus and cards of an ask, and whether it is free as far as what it asks for goes."""
_NO_ARRAY = ArrayTask(JobId(0), 0)
_job_of = itemgetter(0)


class EquivalenceClass(msgspec.Struct, frozen=True, cache_hash=True):
    """A shape, and what the rules make of it for somebody. A condition that a job carries itself is no part of it."""

    shape: Shape
    scope: LimitScope = NO_SCOPE
    array: JobId = JobId(0)
    """Whose tasks may not all run at once; 0: no bound."""
    at_once: int = 0
    seconds: int = 0
    """The time limit, where a limit counts it; else 0."""
    refused: Reason | None = None
    """What the rules alone say, whatever runs."""
    preemption_key: str = ""
    """What decides whose room it may take (`Rulebook.claim`); empty: nobody's."""

    @property
    def bound(self) -> bool:
        """Whether there is a rule that may stop it."""
        return self.refused is not None or bool(self.array or self.scope.running or self.scope.budgets)


class QueueEntry(msgspec.Struct, frozen=True, gc=False):
    """A queued job in one of its partitions, ready for a pass."""

    shape: int
    """Number of the request's shape in the book; NO_SHAPE where the rules alone refuse."""
    number: int
    """Of the request in the book."""
    seconds: int
    """The job's time limit."""
    job: Job
    equivalence_class: EquivalenceClass
    cpus: int
    """A node with fewer of them is of no use; 0 where others may give way, or that depends on the alternative."""
    cards: int
    """The same for cards that nobody is on."""
    free: bool
    """Nothing but room and time can keep it waiting: neither a condition of its own nor a rule."""


class EquivalenceCache:
    """Remembers what every queued job asks for: judging 100 000 jobs each cycle would cost more than the cycle.

    Only a memory: it changes no answer, so successive indexes share one while the rules stay what they are. One pass at
    a time writes to it.
    """

    def __init__(self, rules: Rulebook) -> None:
        self.rules = rules
        self._judged: dict[object, Reason | None] = {}
        self._shapes: dict[Shape, Shape] = {}
        """Each that was ever asked for, as the one object by which it is looked up quickly."""
        self._forget()

    def entries(self, pairs: Sequence[PartitionEntry]) -> list[QueueEntry]:
        """In the order of the entries. Forgets the jobs that left the queue once they are the majority."""
        self.tidied(len(pairs))
        # a job's record is replaced when the job changes, so to know it by its identity is enough
        found = map(self._single.get, map(id, map(_job_of, pairs)))
        return [entry or self._of_several(*pair) for entry, pair in zip(found, pairs, strict=True)]

    def further_entries(self, pairs: Iterable[PartitionEntry]) -> list[QueueEntry]:
        """Of entries that come to those known already; numbers stay what they are."""
        return [self._single.get(id(job)) or self._of_several(job, partition) for job, partition in pairs]

    def entries_of(self, jobs: Mapping[JobId, Job], queued: Iterable[JobId]) -> list[QueueEntry]:
        """Of these jobs, in each of their partitions."""
        return self.further_entries((jobs[job], name) for job in queued for name in partitions_of(jobs[job]))

    def equivalence_class(self, job: Job, partition: str) -> EquivalenceClass:
        """What the job asks for in one of its partitions. Gives no numbers, so it may be asked during a pass."""
        if not (partition or job.array is not None or self.rules.tell_apart):
            same = self._of_spec.get(id(job.spec))
            kin = same[1] if same is not None else self._of_kin.get(shape_of(job.spec))
            if kin is not None:
                return kin[2]
        known = self._single.get(id(job)) or self._several.get((id(job), partition))
        return known.equivalence_class if known is not None else self._made(job, partition)

    def entry(self, job: Job, partition: str) -> QueueEntry:
        """What the job asks for in one of its partitions, with numbers; the asker remembers it."""
        spec = job.spec
        if partition or job.array is not None or self.rules.tell_apart:
            known = self._kin(job, partition, _alike(job, partition))
        elif (same := self._of_spec.get(id(spec))) is not None:
            _, known = same
        else:
            known = self._kin(job, partition, shape_of(spec))
            self._of_spec[id(spec)] = spec, known
            self.held += 1
        shape, number, equivalence_class, cpus, cards, free = known
        return QueueEntry(
            shape, number, spec.time_limit_seconds, job, equivalence_class, cpus, cards, free and is_unhindered(job)
        )

    def _kin(self, job: Job, partition: str, alike: object) -> _Kin:
        known = self._of_kin.get(alike)
        if known is None:
            known = self._of_kin[alike] = self._numbered(job, partition)
        return (*known[:-1], False) if known[-1] and is_conditional(job.spec) else known

    def tidied(self, pairs: int) -> bool:
        """Whether all numbers are new, since most of the old ones were of jobs that are gone."""
        crowded = self.held > 4 * pairs + 1024
        if crowded:
            self._forget()
        return crowded

    def _forget(self) -> None:
        self.held = 0
        """So many jobs, specs and requests are remembered."""
        self.shapes: list[Shape | None] = [None]
        """By number; the first is NO_SHAPE's."""
        self.classes: list[EquivalenceClass] = []
        """By number."""
        self.limit_cache = LimitCache()
        self._shape_numbers: dict[tuple[Shape, str], int] = {}
        """With the claim: of two jobs of a shape one may find room by making it."""
        self._class_numbers: dict[EquivalenceClass, int] = {}
        self._of_kin: dict[object, _Kin] = {}
        """What asks have in common, by all that decides it: where it does not matter whose a job is, by shape."""
        self._of_spec: dict[int, tuple[JobSpec, _Kin]] = {}
        """The same by identity of what jobs ask for, where it does not matter whose they are."""
        self._single: dict[int, QueueEntry] = {}
        """By identity, of the jobs that may run in one partition."""
        self._several: dict[tuple[int, str], QueueEntry] = {}
        """By identity and partition, of all others."""
        self._jobs: list[Job] = []
        """Kept, lest another take over the identity."""

    def _of_several(self, job: Job, partition: str) -> QueueEntry:
        known = self._several.get((id(job), partition))
        return known if known is not None else self._learn(job, partition)

    def _learn(self, job: Job, partition: str) -> QueueEntry:
        entry = self.entry(job, partition)
        self._jobs.append(job)
        self.held += 1
        if len(partitions_of(job)) == 1:
            self._single[id(job)] = entry
        else:
            self._several[id(job), partition] = entry
        return entry

    def _numbered(self, job: Job, partition: str) -> _Kin:
        made = self._made(job, partition)
        number = self._class_numbers.setdefault(made, len(self.classes))
        if number == len(self.classes):
            self.classes.append(made)
            self.held += 1
        first, *others = job.spec.specs
        cpus, cards = (first.cpus, first.whole_cards) if not (others or made.preemption_key) else (0, 0)
        return self._shape_number(made), number, self.classes[number], cpus, cards, not made.bound

    def _shape_number(self, equivalence_class: EquivalenceClass) -> int:
        if equivalence_class.refused is not None:
            return NO_SHAPE
        number = self._shape_numbers.setdefault(
            (equivalence_class.shape, equivalence_class.preemption_key), len(self.shapes)
        )
        if number == len(self.shapes):
            self.shapes.append(equivalence_class.shape)
        return number

    def _made(self, job: Job, partition: str) -> EquivalenceClass:
        shape = shape_of(job.spec, partition)
        shape = self._shapes.setdefault(shape, shape)
        refused = self._judgement(job, shape)
        if refused is not None and never_starts(refused):
            return EquivalenceClass(shape, refused=refused)
        scope = self.rules.scope(job, partition)
        binding = scope if scope.running or scope.budgets or scope.queue else NO_SCOPE
        counts_time = self.rules.safe and bool(scope.budgets)
        task = job.array if job.array is not None and job.array.at_once else _NO_ARRAY
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

    def _judgement(self, job: Job, shape: Shape) -> Reason | None:
        spec = job.spec
        whose = (job.account, job.submitter.name, job.qos)
        alike = (shape, *whose, spec.time_limit_seconds, spec.divide_over_clusters)
        judged = self._judged.get(alike, _UNJUDGED)
        if judged is _UNJUDGED:  # no second look-up: a large pass forgets in a thread of its own
            judged = self._judged[alike] = self.rules.refusal(job, shape.partition)
        return judged


def _alike(job: Job, partition: str) -> object:
    """All of the job that decides what it asks for there."""
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
