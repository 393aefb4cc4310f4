"""What a queue does with a job now: which flavors it gets, whether others are preempted, or which quota is short.

1. For each pod set and each group of resources that it requests, the group's flavors are tried in order.
2. Flavors whose nodes the pods cannot use are passed over.
3. Each resource is compared with the quota: it fits, it fits after preemption, it waits, or it can never fit.
4. The first flavor that serves well enough ends the search, by the queue's rules; else the best one counts.
5. The worst group decides for the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cockpit.sched.admission.preemption import find_victims
from cockpit.sched.admission.quotas import CohortQuotas, FlavorResource, Usage
from cockpit.sched.admission.workloads import (
    AdmissionQueue,
    AdmissionWorkload,
    Cause,
    FlavorAttempt,
    Mode,
    PodSetRequest,
    Shortage,
    Verdict,
)

_PREEMPTING = frozenset({Mode.PREEMPT, Mode.RECLAIM})


class _Choice(NamedTuple):
    """How one flavor serves a group."""

    mode: Mode
    level: int
    usage: dict[FlavorResource, int]
    attempt: FlavorAttempt


def judge(
    quotas: CohortQuotas,
    queue: AdmissionQueue,
    workload: AdmissionWorkload,
    admitted: Mapping[str, Iterable[AdmissionWorkload]],
) -> Verdict:
    """Return what the queue does with the job. `admitted`: the jobs that have quota, by queue."""
    return _Judgement(quotas, queue, workload, admitted).verdict()


class _Judgement:
    """One job before one queue."""

    def __init__(
        self,
        quotas: CohortQuotas,
        queue: AdmissionQueue,
        workload: AdmissionWorkload,
        admitted: Mapping[str, Iterable[AdmissionWorkload]],
    ) -> None:
        self._quotas, self._queue, self._workload, self._admitted = quotas, queue, workload, admitted
        self._usage: dict[FlavorResource, int] = {}
        """What the groups and pod sets that were served already will use."""
        self._attempts: list[FlavorAttempt] = []
        self._flavors: dict[str, tuple[str, ...]] = {}

    def verdict(self) -> Verdict:
        mode, level = Mode.FIT, 0
        for request in self._workload.requests:
            for number, group in enumerate(self._queue.groups):  # step 1
                wanted = {name: request.amounts[name] for name in group.resources if request.amounts.get(name)}
                if not wanted:
                    continue
                best = self._best(request, number, wanted)
                if best is None:
                    return self._no_fit(_cause(self._attempts))
                mode, level = min(mode, best.mode), max(level, best.level)  # step 5
                self._flavors[request.name] = (*self._flavors.get(request.name, ()), best.attempt.flavor)
                for cell, amount in best.usage.items():
                    self._usage[cell] = self._usage.get(cell, 0) + amount
            covered = {name for group in self._queue.groups for name in group.resources}
            if left := [name for name, amount in request.amounts.items() if amount and name not in covered]:
                return self._no_fit(Cause.NO_FLAVOR, left[0])
        victims = self._victims(self._usage) if mode in _PREEMPTING else ()
        if mode in _PREEMPTING and not victims:
            mode = Mode.NO_CANDIDATES
        cause = Cause.QUOTA if mode is Mode.NO_CANDIDATES else None
        return Verdict(
            mode,
            self._usage,
            level,
            tuple(self._attempts),
            tuple(each.key for each in victims),
            cause,
            flavors=self._flavors,
        )

    def _no_fit(self, cause: Cause, undeclared: str = "") -> Verdict:
        return Verdict(Mode.NO_FIT, attempts=tuple(self._attempts), cause=cause, undeclared=undeclared)

    def _victims(self, usage: Usage) -> tuple[AdmissionWorkload, ...]:
        return find_victims(self._quotas, self._queue, self._workload, usage, self._admitted)

    def _best(self, request: PodSetRequest, group: int, wanted: dict[str, int]) -> _Choice | None:
        """Return the flavor that is taken for a group of resources; None: none serves (step 4)."""
        best: _Choice | None = None
        for flavor in self._queue.groups[group].flavors:
            each = self._attempt(request, group, flavor, wanted)
            self._attempts.append(each.attempt)
            if each.mode is Mode.NO_FIT:
                continue
            if not _goes_on(self._queue, each):
                return each
            if best is None or _rank(self._queue, each) > _rank(self._queue, best):
                best = each
        return best

    def _attempt(self, request: PodSetRequest, group: int, flavor: str, wanted: dict[str, int]) -> _Choice:
        if why := request.excluded.get(flavor):  # step 2
            return _Choice(Mode.NO_FIT, 0, {}, FlavorAttempt(request.name, group, flavor, Mode.NO_FIT, excluded=why))
        worst, level, shortages = Mode.FIT, 0, list[Shortage]()
        for resource, amount in wanted.items():  # step 3
            cell = FlavorResource(flavor, resource)
            asked = self._usage.get(cell, 0) + amount
            mode, borrows = self._mode(cell, asked)
            worst, level = min(worst, mode), max(level, borrows)
            if mode is not Mode.FIT:
                name = self._queue.name
                # Below 0 where more is used than there is.
                available = max(0, self._quotas.available(name, cell))
                shortages.append(Shortage(cell, asked, available, self._quotas.potential(name, cell)))
        attempt = FlavorAttempt(request.name, group, flavor, worst, shortages=tuple(shortages))
        usage = {FlavorResource(flavor, resource): amount for resource, amount in wanted.items()}
        return _Choice(worst, level, usage, attempt)

    def _mode(self, cell: FlavorResource, asked: int) -> tuple[Mode, int]:
        """Return how a quota serves this amount, and how far up it would have to be borrowed."""
        quotas, queue = self._quotas, self._queue
        if asked > quotas.potential(queue.name, cell):
            return Mode.NO_FIT, 0
        level, may_reclaim = quotas.borrowing_level(queue.name, cell, asked)
        if asked <= quotas.available(queue.name, cell):
            return Mode.FIT, level
        if not (quotas.quota(queue.name, cell).nominal >= asked or may_reclaim or queue.while_borrowing):
            return Mode.NO_FIT, level
        victims = self._victims({cell: asked})
        if not victims:
            return Mode.NO_CANDIDATES, level
        return (Mode.PREEMPT if any(each.queue == queue.name for each in victims) else Mode.RECLAIM), level


def _goes_on(queue: AdmissionQueue, each: _Choice) -> bool:
    """Return whether a further flavor is tried although this one would serve."""
    if each.mode is Mode.NO_CANDIDATES or (each.mode in _PREEMPTING and queue.next_flavor_before_preempting):
        return True
    return each.level > 0 and queue.next_flavor_before_borrowing


def _rank(queue: AdmissionQueue, each: _Choice) -> tuple[int, int]:
    # Without candidates nothing is gained by either, so it is always the last choice.
    if queue.preempts_before_borrowing and each.mode is not Mode.NO_CANDIDATES:
        return -each.level, each.mode
    return each.mode, -each.level


def _cause(attempts: Sequence[FlavorAttempt]) -> Cause:
    """Return why nothing fits: in a group the flavor that is nearest to fit counts, of all groups the farthest."""
    nearest: dict[tuple[str, int], Cause] = {}
    for each in attempts:
        if each.mode is not Mode.NO_FIT:
            continue
        if each.excluded:
            cause = Cause.NO_FLAVOR
        else:
            cause = Cause.NEVER if any(short.is_never for short in each.shortages) else Cause.QUOTA
        key = each.pod_set, each.group
        nearest[key] = min(nearest.get(key, cause), cause)
    return max(nearest.values(), default=Cause.NO_FLAVOR)
