"""The jobs that Kueue has preempted for another one and that still end: until then they keep their quota.

Kueue marks the victims alone (`Evicted` and `Preempted`), each with the uid of the workload that it makes way for;
before 0.9 without it. The workload itself says at most how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from cockpit.backends.kubernetes.mapping.kueue import preempted_for
from cockpit.backends.kubernetes.objects.kueue import KueueWorkload
from cockpit.backends.kubernetes.objects.meta import condition

WAITS = "WaitingForPreemptedWorkloads"
_FOR = re.compile(r"\(UID: ([^,;)\s]+)")


def ending_for(
    workload: KueueWorkload, every: Iterable[KueueWorkload], lenders: Collection[str]
) -> list[KueueWorkload]:
    """Return the victims that end for a workload. `lenders`: the cluster queues of its cohort, its own included, where
    victims may be of which Kueue does not say for whom they end."""
    waits = waits_for_victims(workload)
    return [each for each in every if each.is_ending and _is_for(each, workload, lenders if waits else ())]


def waits_for_victims(workload: KueueWorkload) -> int:
    """Return for how many victims the workload waits, as far as it says itself; 0: for none."""
    quota = condition(workload.status.conditions, "QuotaReserved")
    if quota is None or quota.is_true:
        return 0
    return preempted_for(quota.message) or int(quota.reason == WAITS)


def _is_for(victim: KueueWorkload, workload: KueueWorkload, lenders: Collection[str]) -> bool:
    preempted = condition(victim.status.conditions, "Preempted")
    assert preempted is not None
    named = _FOR.search(preempted.message)
    if named is not None:
        return named[1] == workload.metadata.uid
    admission = victim.status.admission
    return admission is not None and admission.cluster_queue in lenders
