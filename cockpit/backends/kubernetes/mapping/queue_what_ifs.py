"""Changes of a job that waits in a queue with which the queue might admit it now, whatever manages the queue.

1. Less of a resource that is short, or fewer pods: the largest of these that the quota takes, found by halving.
2. What a queue would admit may still find no nodes, so that the pods are simulated beside all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds
from cockpit.backends.kubernetes.mapping.pod_scheduling import Simulation, WaitingJob
from cockpit.backends.kubernetes.mapping.quantities import CPU, MEMORY
from cockpit.backends.kubernetes.mapping.scheduler_view import SchedulerView
from cockpit.backends.kubernetes.mapping.what_ifs import PodChange, bound, with_amount
from cockpit.model.forecast import Change, Forecast, NoBound, WhatIf
from cockpit.model.ids import JobId, Millis
from cockpit.model.spec import JobSpec

_STEPS = {CPU: 1000, MEMORY: 1024**3}
"""Whole CPUs and GiB; of all else one."""
Pods = tuple[PodNeeds, ...]


class QueueTry(NamedTuple):
    """A job after one change."""

    change: PodChange
    pods: Pods


def smaller(pods: Pods, spec: JobSpec, short: Collection[str], admits: Callable[[Pods], bool]) -> Iterator[QueueTry]:
    """Yield the job with less of each resource that is short, and with fewer pods, as large as the quota admits it.
    `admits`: whether the quota takes these pods; what takes some also takes fewer or smaller ones."""
    for name in sorted(short):
        most, step = max((dict(each.request).get(name, 0) for each in pods), default=0), _STEPS.get(name, 1)

        def bounded(steps: int, name: str = name, step: int = step) -> Pods:
            return tuple(bound(name, steps * step, each) for each in pods)

        if steps := _largest((most - 1) // step, lambda steps: admits(bounded(steps))):
            for change in with_amount(name, most, steps * step, spec):
                yield QueueTry(change, bounded(steps))
    if fewer := _largest(len(pods) - 1, lambda count: admits(pods[:count])):
        yield QueueTry(
            unchanged_pods(Change.NODES, str(len(pods)), str(fewer), replace(spec, nodes=fewer)), pods[:fewer]
        )


def unchanged_pods(change: Change, before: str, after: str, spec: JobSpec) -> PodChange:
    """Return a change that leaves each pod as it is."""
    return PodChange(change, before, after, lambda needs: needs, spec)


def on_nodes(
    view: SchedulerView, job: JobId, pods: Pods, victims: Collection[JobId], until: Millis | None
) -> Forecast | None:
    """Return when the pods of a job that is admitted now have nodes; None: not before `until`, or never as far as is
    known. `victims`: jobs that end for it."""
    if not view.nodes:
        return Forecast(now=True, likely_at=view.now, no_bound=NoBound.NODES_UNSEEN)
    ends = {number: at for at, number in view.ends} | dict.fromkeys(victims, view.now)
    by_time = ((at, number) for number, at in ends.items())
    arrival = WaitingJob(job, view.now, pods, None)
    found = Simulation(view.nodes, view.waiting.values(), by_time, view.now, [arrival]).run(job, until)
    if found is None or (until is not None and found.at >= until):
        return None
    return Forecast(now=found.at <= view.now, likely_at=found.at, no_bound=NoBound.NOTHING_RESERVED)


def what_if(change: PodChange, forecast: Forecast, evicts: int = 0) -> WhatIf:
    """Return the change with the start that it leads to."""
    return WhatIf(change.change, change.before, change.after, change.spec, forecast, evicts=evicts)


def saved(before: Sequence[PodNeeds], after: Sequence[PodNeeds]) -> dict[str, int]:
    """Return how much less of each resource the pods request; those that are left out are the last ones."""
    total: dict[str, int] = {}
    for place, each in enumerate(before):
        kept = dict(after[place].request) if place < len(after) else {}
        for name, amount in each.request:
            if less := amount - kept.get(name, 0):
                total[name] = total.get(name, 0) + less
    return total


def _largest(most: int, is_enough: Callable[[int], bool]) -> int:
    """Return the largest number from 1 to `most` for which this is true, as it is for all smaller ones; 0: none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_enough(middle) else (low, middle - 1)
    return low
