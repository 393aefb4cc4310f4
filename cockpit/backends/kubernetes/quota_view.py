"""What a cluster's quota tree and KubeQueue's queues tell: why a job waits in its queue, and the queues as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.kube_queue import queue_of_node
from cockpit.backends.kubernetes.mapping.quota import QuotaUse
from cockpit.model.job import ENDED
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.quota import places
from cockpit.model.reasons import Explanation, QuotaWaits
from cockpit.model.view import QueueKind, QueueRow

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.objects.kube_queue import KubeQueue
    from cockpit.model.ids import JobId
    from cockpit.model.reasons import Reason


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
        order = sorted(self._waiting_in(job.turn.queue))
        place = next(place for place, (_, each) in enumerate(order) if each == number)
        use = self._counted()
        short = use.shortage(job) if use is not None else None
        if short is not None:
            reason = QuotaWaits(reason, *short)
        return Explanation(number, reason, place + 1, tuple(each for _, each in order[:place][:most_ahead]))

    def rows(self) -> Iterator[QueueRow]:
        """Yield a row for each node of the quota tree, and for each queue that was made for none of them."""
        kube_queue = self._inventory.kube_queue
        queues = sorted(kube_queue.queues.values(), key=lambda each: (each.metadata.namespace, each.metadata.name))
        use, served = self._counted(), kube_queue.served_tree
        if use is not None and served is not None:
            yield from use.rows(queues, served.metadata.created_at)
        tree = kube_queue.tree
        paths = [place.path for place in places(tree.root)] if tree is not None else []
        of_nodes = {queue.metadata.uid for path in paths if (queue := queue_of_node(path, queues)) is not None}
        yield from self._plain_rows([each for each in queues if each.metadata.uid not in of_nodes])

    def _plain_rows(self, queues: list[KubeQueue]) -> Iterator[QueueRow]:
        live = [job for job in self._jobs.jobs.values() if job.turn is not None and job.state not in ENDED]
        waiting = Counter(job.queue for job in live if job.waits_in_queue)
        running = Counter(job.queue for job in live if not job.waits_in_queue)
        for each in queues:
            name = each.metadata.name
            yield QueueRow(
                kind=QueueKind.QUOTA,
                path=name,
                name=name,
                level=0,
                since=each.metadata.created_at or None,
                waiting=waiting[name],
                running=running[name],
                used={},
                min={},
                max={},
                alone=True,
            )

    def _waiting_in(self, queue: str) -> Iterator[tuple[tuple[int, int, str], JobId]]:
        """Yield the jobs that wait in a queue, each with the key by which the queue is ordered."""
        for number, job in self._jobs.jobs.items():
            if job.turn is None or job.turn.queue != queue or job.turn.is_held:
                continue
            if job.waits_in_queue and job.state not in ENDED:
                yield job.turn.order(job.meta.created_at, job.meta.name), number

    def _counted(self) -> QuotaUse | None:
        inventory, kube_queue = self._inventory, self._inventory.kube_queue
        version = (self._jobs.version, inventory.pods_version, kube_queue.version)
        if version != self._version:
            tree, jobs = kube_queue.tree, self._jobs.jobs
            others = inventory.other_pods()
            self._use = QuotaUse(tree, kube_queue.leaves, jobs, others) if tree is not None else None
            self._version = version
        return self._use
