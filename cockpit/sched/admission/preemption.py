"""Which jobs would be preempted so that another gets its quota.

1. Candidates are jobs of the same queue, as its policy allows, and jobs of other queues of the cohort that use borrowed
   quota.
2. They are taken away in order until the job fits: evicted ones first, those of other queues, the lowest priority, the
   latest admitted.
3. Those are put back, the last one first, without which it fits all the same.

Source: Kueue's documentation of preemption, "Classic preemption".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cockpit.sched.admission.quotas import COHORT, CohortQuotas, FlavorResource, Usage
from cockpit.sched.admission.workloads import AdmissionQueue, AdmissionWorkload, Preempts


class _Candidate(NamedTuple):
    workload: AdmissionWorkload
    root: str
    """The lowest cohort above both queues; the own queue where it is the same."""
    only_without_borrowing: bool
    rank: int
    """0: the other jobs use quota that belongs to the own subtree; 1: others; 2: jobs of the same queue."""


def find_victims(
    quotas: CohortQuotas,
    queue: AdmissionQueue,
    workload: AdmissionWorkload,
    usage: Usage,
    admitted: Mapping[str, Iterable[AdmissionWorkload]],
) -> tuple[AdmissionWorkload, ...]:
    """Return the jobs to preempt so that the workload may use this; none: there is no such set. `quotas` is unchanged.
    `admitted`: the jobs that have quota, by queue."""
    short = {cell for cell, amount in usage.items() if amount > quotas.available(queue.name, cell)}
    # step 1
    candidates = sorted(
        (each for each in _candidates(quotas, queue, workload, usage, short, admitted)),
        key=lambda each: (
            not each.workload.ending,
            each.rank,
            each.workload.priority,
            -(each.workload.admitted_at or 0),
            each.workload.key,
        ),
    )
    if not _could_suffice(quotas, queue.name, usage, candidates):
        return ()
    others = [each for each in candidates if each.rank < 2]
    under_nominal = not any(quotas.would_borrow(queue.name, cell, 0) for cell in short)
    if not others or (not queue.while_borrowing and not under_nominal):
        attempts = [True]
    elif not queue.while_borrowing and not any(each.rank == 0 for each in others):
        attempts = [False, True]
    else:
        attempts = [True, False]
    for borrowing in attempts:
        if victims := _fewest(quotas.copy(), queue.name, usage, short, candidates, borrowing=borrowing):
            return victims
    return ()


def _could_suffice(quotas: CohortQuotas, queue: str, usage: Usage, candidates: Sequence[_Candidate]) -> bool:
    """Return whether all candidates together use what is missing. Most jobs that wait are told apart by this sum, which
    costs far less than to take the candidates away one by one."""
    return all(
        amount - quotas.available(queue, cell) <= sum(each.workload.usage.get(cell, 0) for each in candidates)
        for cell, amount in usage.items()
    )


def _fewest(
    quotas: CohortQuotas,
    queue: str,
    usage: Usage,
    short: set[FlavorResource],
    candidates: Sequence[_Candidate],
    *,
    borrowing: bool,
) -> tuple[AdmissionWorkload, ...]:
    victims: list[AdmissionWorkload] = []
    for each in candidates:  # step 2
        if not _is_valid(quotas, queue, each, short, borrowing=borrowing):
            continue
        quotas.change(each.workload.queue, each.workload.usage, -1)
        victims.append(each.workload)
        if _fits(quotas, queue, usage, borrowing=borrowing):
            break
    else:
        return ()
    for victim in reversed(victims[:-1]):  # step 3
        quotas.change(victim.queue, victim.usage)
        if _fits(quotas, queue, usage, borrowing=borrowing):
            victims.remove(victim)
        else:
            quotas.change(victim.queue, victim.usage, -1)
    return tuple(victims)


def _fits(quotas: CohortQuotas, queue: str, usage: Usage, *, borrowing: bool) -> bool:
    return all(
        (borrowing or not quotas.would_borrow(queue, cell, amount)) and amount <= quotas.available(queue, cell)
        for cell, amount in usage.items()
    )


def _is_valid(
    quotas: CohortQuotas, queue: str, each: _Candidate, short: set[FlavorResource], *, borrowing: bool
) -> bool:
    """Return whether it still helps: other removals may have brought its queue back to its own quota."""
    if each.workload.queue == queue:
        return True
    if borrowing and each.only_without_borrowing:
        return False
    return not any(_is_within_quota(quotas, node, short) for node in _below(quotas, each.workload.queue, each.root))


def _below(quotas: CohortQuotas, node: str, root: str) -> Iterator[str]:
    """Yield the node and the cohorts above it that are below the root."""
    yield node
    for above in quotas.ancestors(node):
        if above == root:
            return
        yield above


def _is_within_quota(quotas: CohortQuotas, node: str, cells: set[FlavorResource]) -> bool:
    return not any(quotas.would_borrow(node, cell, 0) for cell in cells)


def _candidates(
    quotas: CohortQuotas,
    queue: AdmissionQueue,
    workload: AdmissionWorkload,
    usage: Usage,
    short: set[FlavorResource],
    admitted: Mapping[str, Iterable[AdmissionWorkload]],
) -> Iterator[_Candidate]:
    for each in admitted.get(queue.name, ()) if queue.within is not Preempts.NEVER else ():
        if short & each.usage.keys() and _may_preempt(workload, each, queue.within):
            yield _Candidate(each, queue.name, only_without_borrowing=False, rank=2)
    if queue.reclaim is Preempts.NEVER:
        return
    fits, rest = _fits_in_subtree(quotas, queue.name, usage)
    below = queue.name
    for root in quotas.ancestors(queue.name):
        for other in _borrowing_queues(quotas, root, below, short):
            for each in admitted.get(other, ()):
                if not (short & each.usage.keys() and _may_preempt(workload, each, queue.reclaim)):
                    continue
                above = each.priority >= workload.priority or (
                    queue.threshold is not None and each.priority > queue.threshold
                )
                only_without = not fits and (not queue.while_borrowing or above)
                yield _Candidate(each, root, only_without, 0 if fits else 1)
        covered, rest = _fits_in_subtree(quotas, root, rest)
        # A job that uses quota of a subtree which covers the job takes it from the job, also in all larger subtrees.
        fits, below = fits or covered, root


def _fits_in_subtree(quotas: CohortQuotas, node: str, usage: Usage) -> tuple[bool, Usage]:
    """Return whether the quota of the subtree covers this, and what it would have to get from above."""
    fits = not any(quotas.would_borrow(node, cell, amount) for cell, amount in usage.items())
    return fits, {cell: max(0, amount - quotas.local_free(node, cell)) for cell, amount in usage.items()}


def _borrowing_queues(quotas: CohortQuotas, cohort: str, except_for: str, short: set[FlavorResource]) -> Iterator[str]:
    """Yield the queues below a cohort that use more than their quota of something that is short."""
    for node in quotas.children(cohort):
        if node == except_for or _is_within_quota(quotas, node, short):
            continue
        if node.startswith(COHORT):
            yield from _borrowing_queues(quotas, node, except_for, short)
        else:
            yield node


def _may_preempt(workload: AdmissionWorkload, other: AdmissionWorkload, policy: Preempts) -> bool:
    if policy is Preempts.ANY:
        return True
    if policy is Preempts.NEVER:
        return False
    newer_equal = (
        policy is Preempts.LOWER_OR_NEWER and other.priority == workload.priority and workload.since < other.since
    )
    return other.priority < workload.priority or newer_equal
