"""Predicted admissions: the queues' rules applied again and again while admitted jobs end.

1. In a cycle each queue offers its first job. All are judged by the quotas at the cycle's begin.
2. They are admitted in order: those that borrow less, the higher priority, the older; if they still fit.
3. A job that does not fit is set aside until something ends; in a strict queue it holds up the others.
4. When no queue can offer a job any more, the next end frees its quota. The first jobs of strict queues are offered at
   once, which Kueue looks at all the time; the jobs that were set aside a second later, when it has gathered them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.sched.admission.judging import judge
from cockpit.sched.admission.quotas import CohortQuotas, Usage
from cockpit.sched.admission.workloads import (
    AdmissionQueue,
    AdmissionWorkload,
    Mode,
    PodSetRequest,
    Preempts,
    Verdict,
)

MOST_ENDS = 500
"""The number of ends after which a simulation stops: later admissions are too uncertain to be told."""
MOST_JUDGEMENTS = 5_000
"""The number of judgements after which it stops likewise, so that thousands of jobs cost a second or two."""
MOST_CYCLES = 100_000
"""A bound that no real queue reaches: each cycle admits a job or sets one aside."""


class Admission(NamedTuple):
    """A predicted admission."""

    at: Millis
    after: tuple[tuple[str, Millis], ...]
    """The ends since the one before it waited in vain, the last first: which job ends when."""
    flavors: Mapping[str, tuple[str, ...]] = {}
    """The flavors that each pod set gets."""


class PredictedAdmissions(NamedTuple):
    """What the queues are likely to do."""

    admissions: Mapping[str, Admission]
    """When each waiting job is admitted; jobs without an entry never are, as far as can be told."""
    preemptions: Mapping[str, Millis]
    """When jobs lose the quota that they have now."""


class AdmissionState:
    """Queues, quotas and jobs at one moment, and what the queues do next."""

    def __init__(
        self, quotas: CohortQuotas, queues: Iterable[AdmissionQueue], workloads: Iterable[AdmissionWorkload]
    ) -> None:
        """`quotas`: with the use of all admitted jobs, also of those that are not among `workloads`, since the user may
        not see them."""
        self.quotas = quotas
        self.queues = {each.name: each for each in queues}
        self.admitted: dict[str, AdmissionWorkload] = {}
        self._by_queue: dict[str, dict[str, AdmissionWorkload]] = {}
        """The admitted jobs of each queue."""
        self.waiting: dict[str, list[AdmissionWorkload]] = {}
        self.judgements = 0
        """How many jobs were judged."""
        self.preempted: list[str] = []
        """The jobs that were preempted, in this order."""
        for each in workloads:
            if each.admitted_at is not None:
                self._put(each)
            elif each.queue in self.queues:
                self.waiting.setdefault(each.queue, []).append(each)
        for queued in self.waiting.values():
            queued.sort(key=queue_order)
        self._aside: set[_JobClass] = set()
        """The classes of jobs that were set aside: what keeps a job back keeps back all later ones of its class."""
        self._freed = False
        """Whether something has ended since the jobs were set aside."""
        self._classes = {each.key: _class_of(each) for queued in self.waiting.values() for each in queued}

    def copy(self) -> AdmissionState:
        """Return a copy in which other jobs may be admitted."""
        copied = AdmissionState(self.quotas.copy(), self.queues.values(), self.admitted.values())
        copied.waiting = {queue: list(queued) for queue, queued in self.waiting.items()}
        copied._classes = dict(self._classes)
        return copied

    def add(self, workload: AdmissionWorkload) -> None:
        """Put a job into its queue."""
        queued = self.waiting.setdefault(workload.queue, [])
        queued.append(workload)
        queued.sort(key=queue_order)
        self._classes[workload.key] = _class_of(workload)

    def remove(self, workload: AdmissionWorkload) -> None:
        """Take a job that waits out of its queue."""
        self.waiting[workload.queue].remove(workload)

    def judge(self, workload: AdmissionWorkload) -> Verdict:
        """Return what its queue would do with the job now, were it the first."""
        self.judgements += 1
        admitted = {queue: each.values() for queue, each in self._by_queue.items()}
        return judge(self.quotas, self.queues[workload.queue], workload, admitted)

    def end(self, key: str) -> None:
        """Have an admitted job end."""
        workload = self.admitted.pop(key)
        del self._by_queue[workload.queue][key]
        self.quotas.change(workload.queue, workload.usage, -1)
        self._aside = {each for each in self._aside if not self.queues[each.queue].strict}
        self._freed = True

    def settle(self, now: Millis) -> list[str]:
        """Go through cycles until nothing more is admitted; return the admitted jobs in order."""
        admitted: list[str] = []
        for _ in range(MOST_CYCLES):
            heads = self._heads()  # step 1
            before = len(admitted), len(self._aside)
            if not all(map(self._is_aside, heads)):
                admitted += self._cycle(heads, now)
            if self.judgements > MOST_JUDGEMENTS:
                break
            # A job that fits may still be held up, in every cycle, by what is reserved for the first of a strict queue.
            if before == (len(admitted), len(self._aside)):
                if not self._freed:
                    break
                self._aside.clear()  # step 4
                self._freed = False
        return admitted

    def _cycle(self, heads: Sequence[AdmissionWorkload], now: Millis) -> list[str]:
        admitted: list[str] = []
        entries = [(head, self.judge(head)) for head in heads]
        entries.sort(key=lambda each: (each[1].level, *queue_order(each[0])))
        reserved: list[tuple[str, Usage]] = []
        for head, verdict in entries:  # step 2
            if (final := self._final_verdict(head, verdict, reserved)) is not None:
                self._preempt(final)
                self._admit(head, final, now)
                admitted.append(head.key)
            elif verdict.mode is not Mode.FIT and not verdict.victims:
                self._aside.add(self._classes[head.key])  # step 3
                reserved.append((head.queue, self._reserve(head, verdict)))
        return admitted

    def _final_verdict(
        self, head: AdmissionWorkload, verdict: Verdict, reserved: Sequence[tuple[str, Usage]]
    ) -> Verdict | None:
        """Return the verdict by which the job is admitted after the jobs before it in the cycle; None: it is not. If
        these have taken what it would have used of a flavor, it goes on with the next one."""
        if self._serves(verdict) and self._still_fits(head, verdict, reserved):
            return verdict
        while verdict.mode is Mode.FIT:
            head = replace(head, requests=tuple(_without(each, verdict.flavors) for each in head.requests))
            verdict = self.judge(head)
            if verdict.mode is Mode.FIT and self._still_fits(head, verdict, reserved):
                return verdict
        return None

    def _heads(self) -> list[AdmissionWorkload]:
        """Return the job that each queue offers, also the one that holds up a strict queue."""
        heads = []
        for name, queued in self.waiting.items():
            queue = self.queues[name]
            if queue.stopped:
                continue
            head = next((each for each in queued if queue.strict or not self._is_aside(each)), None)
            if head is not None:
                heads.append(head)
        return heads

    def _is_aside(self, workload: AdmissionWorkload) -> bool:
        return self._classes[workload.key] in self._aside

    def _serves(self, verdict: Verdict) -> bool:
        """Return whether it fits, or the jobs that it would preempt are all still there."""
        return verdict.mode is Mode.FIT or (
            bool(verdict.victims) and all(victim in self.admitted for victim in verdict.victims)
        )

    def _reserve(self, workload: AdmissionWorkload, verdict: Verdict) -> Usage:
        """Return what is held back for the rest of the cycle for a job that waits for quota of its own queue, so that
        others do not borrow it. Nothing, if the queue could take it back at any time."""
        if verdict.mode is not Mode.NO_CANDIDATES or self.queues[workload.queue].reclaim is Preempts.ANY:
            return {}
        reserved = {}
        for cell, amount in verdict.usage.items():
            quota, most = self.quotas.quota(workload.queue, cell), amount
            if not verdict.level:
                most = quota.nominal - self.quotas.used(workload.queue, cell)
            elif quota.borrowing_limit is not None:
                most = quota.nominal + quota.borrowing_limit - self.quotas.used(workload.queue, cell)
            reserved[cell] = max(0, min(amount, most))
        return reserved

    def _still_fits(self, workload: AdmissionWorkload, verdict: Verdict, reserved: Sequence[tuple[str, Usage]]) -> bool:
        """Return whether it fits after the jobs before it in the cycle, once its victims are gone."""
        if not verdict.victims and not any(usage for _, usage in reserved):
            return all(amount <= self.quotas.available(workload.queue, cell) for cell, amount in verdict.usage.items())
        quotas = self.quotas.copy()
        for queue, usage in reserved:
            quotas.change(queue, usage)
        for key in verdict.victims:
            quotas.change(self.admitted[key].queue, self.admitted[key].usage, -1)
        return all(amount <= quotas.available(workload.queue, cell) for cell, amount in verdict.usage.items())

    def _admit(self, workload: AdmissionWorkload, verdict: Verdict, now: Millis) -> None:
        self.waiting[workload.queue].remove(workload)
        self.quotas.change(workload.queue, verdict.usage)
        self._put(replace(workload, usage=verdict.usage, flavors=verdict.flavors, admitted_at=now))

    def _put(self, workload: AdmissionWorkload) -> None:
        self.admitted[workload.key] = workload
        self._by_queue.setdefault(workload.queue, {})[workload.key] = workload

    def _preempt(self, verdict: Verdict) -> None:
        for key in verdict.victims:
            victim = self.admitted[key]
            self.end(key)
            self.preempted.append(key)
            self.add(_waiting_again(victim))


def _waiting_again(victim: AdmissionWorkload) -> AdmissionWorkload:
    """Return a preempted job as it waits for its quota once more."""
    return replace(victim, usage={}, flavors={}, admitted_at=None, ending=False)


def _without(request: PodSetRequest, tried: Mapping[str, tuple[str, ...]]) -> PodSetRequest:
    """Return the request without the flavors that were tried for it."""
    return request._replace(excluded={**request.excluded, **dict.fromkeys(tried.get(request.name, ()), "tried")})


class _JobClass(NamedTuple):
    """What jobs of a queue have in common that all fit, or all do not."""

    queue: str
    priority: int
    requests: tuple[object, ...]


def _class_of(workload: AdmissionWorkload) -> _JobClass:
    requests = (
        (each.name, *map(tuple, map(sorted, (each.amounts.items(), each.excluded.items()))))
        for each in workload.requests
    )
    return _JobClass(workload.queue, workload.priority, tuple(requests))


def queue_order(workload: AdmissionWorkload) -> tuple[int, int, str]:
    """Return the key by which a queue orders its jobs: the highest priority, then the oldest."""
    return -workload.priority, workload.since, workload.key


def predict_admissions(
    state: AdmissionState, now: Millis, ends: Mapping[str, Millis | None], run_ms: Callable[[str], int | None]
) -> PredictedAdmissions:
    """Return when each waiting job would be admitted, and which admitted ones are preempted for them.

    `ends`: of the admitted jobs, when each ends; None: unknown. `run_ms`: how long a waiting job runs; None: unknown.
    """
    state = state.copy()
    last: dict[str, Millis] = {
        key: max(now, at) for key, at in ends.items() if key in state.admitted and at is not None
    }
    found: dict[str, Admission] = {}
    preempted: dict[str, Millis] = {}
    freed: list[tuple[str, Millis]] = []

    def settle(at: Millis) -> None:
        new = state.settle(at)
        for key in new:
            flavors = state.admitted[key].flavors if key in state.admitted else {}
            found[key] = Admission(at, tuple(freed[:10]), flavors)
            if (length := run_ms(key)) is not None:
                last[key] = Millis(at + length)
        # Preempted jobs run their whole time again, later.
        for key in state.preempted:
            last.pop(key, None)
            preempted.setdefault(key, at)
        state.preempted.clear()
        if new:
            freed.clear()

    settle(now)
    for _ in range(MOST_ENDS):  # step 4
        if not last or not any(state.waiting.values()) or state.judgements > MOST_JUDGEMENTS:
            break
        key = min(last, key=lambda each: (last[each], each))
        at, ended = last.pop(key), state.admitted[key]
        state.end(key)
        if ended.ending:
            state.add(_waiting_again(ended))
        freed.insert(0, (key, at))
        # Jobs that end at the same moment free their quotas together.
        if at not in last.values():
            settle(at)
    return PredictedAdmissions(found, preempted)
