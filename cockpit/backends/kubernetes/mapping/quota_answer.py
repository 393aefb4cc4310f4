"""Which quota of a batch scheduler a job does not fit into, with figures, and who uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.elastic_quotas import MANAGER, ElasticQuotas
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.quantities import pod_tres, requested, tres_amounts
from cockpit.backends.kubernetes.mapping.quota_levels import QuotaLevel, first_short
from cockpit.backends.kubernetes.mapping.volcano import VOLCANO, parent_of
from cockpit.backends.kubernetes.objects.volcano import VolcanoQueue
from cockpit.model.forecast import HoldingJob, Outlook
from cockpit.model.ids import JobId
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import QuotaFull

QUOTA_WORDS = frozenset({(VOLCANO, "InQueue"), (MANAGER, "Quota")})
"""Managers and codes of `QueueWaits` behind which a quota may be."""


class QuotaAnswer(NamedTuple):
    """A quota that is too small for a job at present."""

    reason: QuotaFull
    holders: tuple[JobId, ...]
    """The jobs that use it, the largest use of the resource first."""


class QuotaBook:
    """The quotas of Koordinator and scheduler-plugins, and the capabilities of Volcano's queues."""

    def __init__(self, quotas: ElasticQuotas, queues: Mapping[str, VolcanoQueue]) -> None:
        self._quotas, self._queues = quotas, queues

    def levels(self, job: KubeJob) -> Iterator[QuotaLevel]:
        """Yield the queues and quotas that the job counts to, its own before those above."""
        queue = job.batch.queue
        seen: set[str] = set()
        while queue is not None and queue.metadata.name not in seen:
            seen.add(queue.metadata.name)
            allocated, capability = queue.status.allocated or {}, queue.spec.capability or {}
            yield QuotaLevel(queue.metadata.name, tres_amounts(allocated), tres_amounts(capability))
            queue = self._queues.get(parent_of(queue))
        if (place := self._quotas.of(job)) is not None:
            yield from self._quotas.levels(place)

    def answer(self, job: KubeJob, jobs: Mapping[JobId, KubeJob]) -> QuotaAnswer | None:
        """Return the first quota that the job does not fit into; None: it fits into all of them."""
        reason = first_short(list(self.levels(job)), dict(asked(job)))
        if reason is None:
            return None
        used = {
            number: held
            for number, each in jobs.items()
            if (held := _placed(each)[reason.resource]) and reason.queue in {level.path for level in self.levels(each)}
        }
        return QuotaAnswer(reason, tuple(sorted(used, key=lambda number: (-used[number], number))))


MOST_HOLDERS = 10
"""Most jobs that an answer names as those that use a quota."""


def with_holders(outlook: Outlook, holders: Sequence[JobId], rows: Mapping[JobId, JobRow]) -> Outlook:
    """Return the outlook with the jobs that use the quota that is short, the largest use first."""
    shown = tuple(holders[:MOST_HOLDERS])
    known = {each.job for each in outlook.named}
    named = (holding_job(rows[each]) for each in shown if each not in known)
    return replace(outlook, holders=shown, holders_in_all=len(holders), named=(*outlook.named, *named))


def holding_job(row: JobRow) -> HoldingJob:
    """Return a job as an answer names it."""
    return HoldingJob(
        job=row.id,
        name=row.name,
        user=row.user or "-",
        running=bool(row.placed_on),
        nodes=row.nodes,
        cpus=row.cpus,
        memory_mib=row.memory_mib,
        card_milli=row.card_milli,
    )


def asked(job: KubeJob) -> Counter[str]:
    """Return what the job needs to start beside what its placed pods have: of pods that work independently, one's
    request; of others, that of the least number which starts."""
    gang = job.batch.gang
    left = 1 if job.is_divisible and gang is None else (gang.least if gang is not None else job.wanted)
    total: Counter[str] = Counter()
    for group, (_, size) in zip(job.groups, job.sizes, strict=True):
        count = min(group.least, left)
        left -= count
        total.update({resource: count * amount for resource, amount in pod_tres(size).items()})
    return total if job.is_divisible else total - _placed(job)


def _placed(job: KubeJob) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in job.placed:
        total.update(pod_tres(requested(pod.spec)))
    return total
