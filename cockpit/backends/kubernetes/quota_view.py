"""What a cluster's quota tree and KubeQueue's queues tell: why a job waits in its queue, and the queues as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.kube_queue import KUBE_QUEUE, QueueId, queue_of
from cockpit.backends.kubernetes.mapping.quota import QuotaShortage, QuotaUse
from cockpit.backends.kubernetes.mapping.quota_answer import holding_job, with_holders
from cockpit.backends.kubernetes.mapping.quota_tree import OF_NAMESPACES
from cockpit.backends.kubernetes.quota_what_ifs import QuotaCase
from cockpit.model.forecast import AwaitedJob, Forecast, NoBound, Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ENDED
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.quota import SEPARATOR
from cockpit.model.reasons import Explanation, QuotaFull, QuotaWaits
from cockpit.model.view import QueueKind, QueueRow

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.kube_queue import KubeQueue
    from cockpit.model.reasons import Reason


MOST_NAMED = 10
"""The most jobs that are named as those ahead."""
_MANAGERS = frozenset({"kube-queue", "koord-queue"})
"""Namespaces with queues for the jobs of other namespaces."""


class QuotaView:
    """Answers from the objects that were read last. The use of the tree is counted anew only after a change."""

    def __init__(self, inventory: Inventory, jobs: JobList) -> None:
        self._inventory, self._jobs = inventory, jobs
        self._version: object = None
        self._use: QuotaUse | None = None

    def explanation(self, number: JobId, reason: Reason, most_ahead: int) -> Explanation | None:
        """Return why a job waits in its queue, and its place there; None: it waits in none. `reason`: the one that its
        row has; `most_ahead`: the largest number of jobs before it that are named."""
        job = self._jobs.jobs[number]
        if job.turn is None or not job.waits_in_queue or not isinstance(reason, QueueWaits):
            return None
        order = sorted(self._waiting_in(job.turn.queue_id))
        place = next(place for place, (_, each) in enumerate(order) if each == number)
        use = self._counted()
        short = use.shortage(job) if use is not None else None
        if short is not None:
            reason = QuotaWaits(reason, *short)
        return Explanation(number, reason, place + 1, tuple(each for _, each in order[:place][:most_ahead]))

    def predicted(self, job: KubeJob, priority: int, at: Millis) -> Outlook | None:
        """Return why a job that is submitted at this moment would wait in its queue, and when it fits; None: KubeQueue
        would dequeue it at once, or has no queue for it. `priority`: that of its pods."""
        kube_queue, use, namespace = self._inventory.kube_queue, self._counted(), job.meta.namespace
        if use is None or not kube_queue.takes_jobs_of(namespace):
            return None
        leaf = kube_queue.leaves.of(namespace, job.named)
        queue = queue_of(None, namespace, leaf, kube_queue.queues.values())
        ahead = [number for key, number in sorted(self._waiting_in(queue)) if key < (-priority, at, job.meta.name)]
        short = use.shortage(job)
        if short is None and not ahead:
            return None
        waits = QueueWaits(KUBE_QUEUE, queue.name)
        reason = QuotaWaits(waits, *short) if short is not None else waits
        explanation = Explanation(JobId(0), reason, len(ahead) + 1, tuple(ahead[:MOST_NAMED]))
        named = dict.fromkeys((*explanation.ahead, *([short.after] if short is not None and short.after else [])))
        outlook = Outlook(
            job=JobId(0),
            name=job.meta.name,
            position=len(ahead) + 1,
            explanation=explanation,
            # Who is ahead may take what comes free, and how long that is held is not known.
            forecast=_fits(short, at) if short is not None and not ahead else Forecast(),
            named=tuple(holding_job(self._jobs.rows[each]) for each in named if each in self._jobs.rows),
            scheduler=KUBE_QUEUE,
        )
        return self.with_holders(outlook, reason)

    def case(self, number: JobId) -> QuotaCase | None:
        """Return what decides about a job that waits in a queue; None: it waits in none, or there is no tree."""
        job, use, kube_queue = self._jobs.jobs[number], self._counted(), self._inventory.kube_queue
        if job.turn is None or not job.waits_in_queue or job.turn.is_held or use is None:
            return None
        own, turn, leaves = job.turn.order(job.meta.created_at, job.meta.name), job.turn, kube_queue.leaves
        others = {
            share.path: queue_of(None, job.meta.namespace, share.path, kube_queue.queues.values())
            for share in leaves.borrowing
            if share.path != turn.leaf and leaves.can_be_named(share.path)
        }
        return QuotaCase(
            number,
            job,
            use,
            own,
            lambda queue: [key for key, each in self._waiting_in(queue) if each != number],
            others,
        )

    def with_holders(self, outlook: Outlook, reason: Reason) -> Outlook:
        """Return the outlook of a job that waits for this reason with the jobs that use what it waits for."""
        use = self._counted()
        if not isinstance(reason, QuotaWaits) or use is None:
            return outlook
        return with_holders(outlook, use.holders(reason.limit), self._jobs.rows)

    def rows(self) -> Iterator[QueueRow]:
        """Yield a row for each node of the quota tree, and for each queue that was made for none of them, as far as the
        user may see it or has jobs in it."""
        kube_queue = self._inventory.kube_queue
        queues = sorted(kube_queue.queues.values(), key=lambda each: (each.metadata.namespace, each.metadata.name))
        use, served = self._counted(), kube_queue.served_tree
        if use is None or served is None:
            quotas = {row.path: row for row in use.rows((), Millis(0))} if use is not None else {}
            yield from self._plain_rows(queues, quotas)
            return
        of_tree = list(use.rows(queues, served.metadata.created_at))
        yield from of_tree
        names = {row.name for row in of_tree}
        yield from (row for row in self._plain_rows(queues, {}) if row.name not in names)

    def _plain_rows(self, queues: Iterable[KubeQueue], quotas: Mapping[str, QueueRow]) -> Iterator[QueueRow]:
        """Yield the rows of queues by themselves. `quotas`: those of namespaces, by path."""
        waiting, running = Counter[QueueId](), Counter[QueueId]()
        for job in self._jobs.jobs.values():
            if job.turn is not None and job.state not in ENDED:
                (waiting if job.waits_in_queue else running)[job.turn.queue_id] += 1
        of_jobs = {*waiting, *running}
        since = {_id_of(each, of_jobs): each.metadata.created_at for each in queues}
        every = (*since, *sorted(of_jobs - since.keys()))
        names = Counter(each.name for each in every)
        for each in every:
            quota = quotas.get(f"{OF_NAMESPACES}{SEPARATOR}{each.home}")
            yield QueueRow(
                kind=QueueKind.QUOTA,
                # Queues of several namespaces may have one name.
                path=each.name if names[each.name] == 1 else f"{each.home}{SEPARATOR}{each.name}",
                name=each.name,
                level=0,
                since=since.get(each) or None,
                waiting=waiting[each],
                running=running[each],
                used=quota.used if quota is not None else {},
                min={},
                max=quota.max if quota is not None else {},
                projects=(each.home,) if each.home else (),
                alone=True,
            )

    def _waiting_in(self, queue: QueueId) -> Iterator[tuple[tuple[int, int, str], JobId]]:
        """Yield the jobs that wait in a queue, each with the key by which the queue is ordered."""
        for number, job in self._jobs.jobs.items():
            if job.turn is None or job.turn.queue_id != queue or job.turn.is_held:
                continue
            if job.waits_in_queue and job.state not in ENDED:
                yield job.turn.order(job.meta.created_at, job.meta.name), number

    def _counted(self) -> QuotaUse | None:
        inventory, kube_queue = self._inventory, self._inventory.kube_queue
        version = (self._jobs.version, inventory.jobs.pods_version, kube_queue.version)
        if version != self._version:
            tree, jobs = kube_queue.tree, self._jobs.jobs
            others = inventory.jobs.other_pods()
            self._use = QuotaUse(tree, kube_queue.leaves, jobs, others) if tree is not None else None
            self._version = version
        return self._use


def _fits(short: QuotaShortage, now: Millis) -> Forecast:
    """Return when a job fits into the quota tree if the jobs there use their whole time limits."""
    if short.after is None or short.fits_at is None:
        never = isinstance(short.limit, QuotaFull) and short.limit.never
        return Forecast() if never else Forecast(no_bound=NoBound.NO_TIME_LIMIT)
    at = max(now, short.fits_at)
    return Forecast(likely_at=at, after=(AwaitedJob(short.after, at),), no_bound=NoBound.LATER_SUBMISSIONS)


def _id_of(queue: KubeQueue, of_jobs: Collection[QueueId]) -> QueueId:
    """Return the queue as its jobs have it."""
    name, namespace = queue.metadata.name, queue.metadata.namespace
    at_home, for_all = QueueId(name, namespace), QueueId(name)
    if at_home in of_jobs or for_all in of_jobs:
        return at_home if at_home in of_jobs else for_all
    return for_all if namespace in _MANAGERS else at_home
