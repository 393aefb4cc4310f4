"""Which changes of a job would have KubeQueue take it from its queue now: computed by cockpit from the quota tree.

1. Less of a resource that is short, or fewer pods. Such a job is a new one: no other may wait before it.
2. The lowest priority class with which no job is before it, if it fits as it is.
3. Another leaf of the tree, which a label of the job can name, with room and with no job before it.

What is dequeued has to find nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.kube_queue import QueueId
from cockpit.backends.kubernetes.mapping.planning import shown_spec
from cockpit.backends.kubernetes.mapping.quantities import CPU, MEMORY
from cockpit.backends.kubernetes.mapping.queue_what_ifs import (
    QueueTry,
    on_nodes,
    saved,
    smaller,
    unchanged_pods,
    what_if,
)
from cockpit.backends.kubernetes.mapping.scheduler_view import is_plain, template_needs
from cockpit.backends.kubernetes.mapping.what_ifs import higher_classes
from cockpit.model.forecast import Change, Forecast, NoBound, WhatIf
from cockpit.model.quota import RESOURCES, Amounts

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.mapping.quota import QuotaUse
    from cockpit.backends.kubernetes.mapping.scheduler_view import SchedulerView
    from cockpit.model.ids import JobId
    from cockpit.model.spec import JobSpec

_MIB = 1024**2
QueueKey = tuple[int, int, str]
"""The key by which a queue is ordered."""


class QuotaCase(NamedTuple):
    """A job that waits in a queue of KubeQueue."""

    number: JobId
    job: KubeJob
    use: QuotaUse
    own: QueueKey
    others: Callable[[QueueId], Iterable[QueueKey]]
    """Returns the keys of the other jobs in a queue."""
    leaves: Mapping[str, QueueId]
    """The queue of each other leaf of the tree that the job could name, by path."""


def dequeued_with(case: QuotaCase, view: SchedulerView, classes: Mapping[str, int]) -> tuple[WhatIf, ...]:
    """Return the changes with which the job is dequeued now and has nodes, the soonest start first."""
    found = []
    for each in _tries(case, shown_spec(case.job), classes):
        if is_plain(case.job):
            forecast = on_nodes(view, case.number, each.pods, (), None)
        else:
            # Another scheduler places its pods.
            forecast = Forecast(now=True, likely_at=view.now, no_bound=NoBound.LATER_SUBMISSIONS)
        if forecast is not None:
            found.append(what_if(each.change, forecast))
    return tuple(sorted(found, key=lambda each: each.forecast.likely_at or view.now))


def _tries(case: QuotaCase, spec: JobSpec, classes: Mapping[str, int]) -> Iterator[QueueTry]:
    turn, pods, use, job = case.job.turn, tuple(template_needs(case.job)), case.use, case.job
    assert turn is not None
    ahead = [each for each in case.others(turn.queue_id) if each < case.own]
    fits, priority = use.admits(job, {}), -case.own[0]
    if not fits and not any(each[0] <= case.own[0] for each in case.others(turn.queue_id)):  # step 1
        short = {name for name, counted in RESOURCES.items() if counted in use.short(job)}
        yield from smaller(pods, spec, short, lambda some: use.admits(job, _tres(saved(pods, some))))
    if fits and ahead:  # step 2
        for name, value in higher_classes(priority, classes):
            if all((-value, *case.own[1:]) < each for each in ahead):
                before = job.priority_class or str(priority)
                yield QueueTry(unchanged_pods(Change.PRIORITY_CLASS, before, name, replace(spec, qos=name)), pods)
                break
    for path, queue in case.leaves.items():  # step 3
        if use.admits(job, {}, path) and not any(each < case.own for each in case.others(queue)):
            moved = replace(spec, partitions=(queue.name,))
            yield QueueTry(unchanged_pods(Change.QUEUE, turn.queue, queue.name, moved), pods)


def _tres(amounts: Mapping[str, int]) -> Amounts:
    """Return what pods save as the quota tree counts it, in thousandths; what it does not count is left out."""
    own = {CPU: lambda amount: amount, MEMORY: lambda amount: 1000 * amount // _MIB}
    return {
        RESOURCES[name]: own.get(name, lambda amount: 1000 * amount)(amount)
        for name, amount in amounts.items()
        if name in RESOURCES
    }
