"""The objects that jobs are made of, and the jobs that changes of them concern.

A job's pods belong to it directly or through other objects: TrainJob → JobSet → Job → Pod. The topmost object of a
known kind is the job; pods with cards that belong to none of these are jobs by their owner (`Owners`). Each change of
an object marks its job; `take_changes` then puts only the marked jobs together anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.devices import Devices
from cockpit.backends.kubernetes.fleet_host import FleetHost
from cockpit.backends.kubernetes.kube_queue import KubeQueues
from cockpit.backends.kubernetes.mapping.cards.claims import claims_cards
from cockpit.backends.kubernetes.mapping.cards.requests import has_cards
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.backends.kubernetes.owners import Owner, Owners
from cockpit.backends.kubernetes.resources import PODS, Resource
from cockpit.backends.kubernetes.schedulers import BatchSchedulers
from cockpit.backends.kubernetes.training_scalers import TrainingScalers

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_queue import QueueTurn
    from cockpit.backends.kubernetes.objects.kueue import KueueWorkload
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.objects.workload import Workload
    from cockpit.backends.kubernetes.wire.api import Api


class JobObjects:
    """The workloads and pods of one cluster, with what queue managers and schedulers keep of them."""

    def __init__(self, api: Api, changed: Callable[[], None]) -> None:
        """`changed` is called after each change of anything."""
        self._notify = changed
        self.watched: frozenset[tuple[str, str]] = frozenset()
        """The groups and kinds of objects that are listed, or that own pods without being jobs."""
        self.has_queue_units = False
        """Whether the cluster serves queue units of KubeQueue."""
        self.pods_version = 0
        """Grows with each change of a pod."""
        self._resources: dict[str, Resource] = {}
        self._workloads: dict[str, Workload] = {}
        self._pods: dict[str, Pod] = {}
        self._without_cards: dict[str, Pod] = {}
        """The placed pods that request no card."""
        self._pods_of: dict[str, dict[str, Pod]] = {}
        self._parts: dict[str, set[str]] = {}
        """The workloads that another workload controls, by its uid."""
        self._marked: set[str] = set()
        self._queued: dict[str, KueueWorkload] = {}
        """Kueue's workloads, by the uid of the job that controls each."""
        self._owners = Owners(api, self._owner_found)
        self.kube_queue = KubeQueues(self.mark, self._notify)
        self.devices = Devices(self._claim_changed)
        """What tells of cards beside nodes and pods."""
        self.schedulers = BatchSchedulers(self._mark_owner, self._notify)
        """What Volcano, Koordinator and scheduler-plugins keep."""
        self.scalers = TrainingScalers(self.mark)
        """The changes of the numbers of workers of TrainingJobs."""
        self.fleet = FleetHost(self.mark, self._notify)
        """What it keeps if it is the host of a fleet."""

    @property
    def settled(self) -> bool:
        """Whether no owner of a pod is being read."""
        return self._owners.settled

    async def stop(self) -> None:
        await self._owners.stop()

    def find(self, uid: str) -> Workload | Pod | None:
        """Return the workload or pod with this uid."""
        return self._workloads.get(uid) or self._pods.get(uid)

    def mark_all(self) -> None:
        """Have `take_changes` yield every job."""
        self._marked |= self._workloads.keys() | self._pods.keys()

    @property
    def has_changes(self) -> bool:
        """Whether `take_changes` would yield anything."""
        return bool(self._marked)

    def take_changes(self, most: int | None = None) -> Iterator[tuple[str, KubeJob | None]]:
        """Yield the uid of each job that has changed since it was last yielded, with the job; None: it is gone.

        `most`: the largest number of jobs; None: all.
        """
        for _ in range(len(self._marked) if most is None else min(most, len(self._marked))):
            uid = self._marked.pop()
            yield uid, self.job(uid)

    def job(self, uid: str) -> KubeJob | None:
        """Return the job with this uid; None where it is none: it is gone, or belongs to another job."""
        workload = self._workloads.get(uid)
        if workload is not None:
            if self._job_uid(workload.metadata) != uid:
                return None
            kind, turn = self._resources[uid].title, self._turn(uid, workload.metadata)
            pods, queued = self._pods_below(uid), self._queued_below(uid)
            found = self._with_schedulers(KubeJob(kind, workload.metadata, workload, pods, queued, turn))
            found.fleet = self.fleet.of(self._resources[uid], workload.metadata)
            return found
        owner = self._owners.get(uid)
        if owner is not None:
            owned = tuple(self._pods_below(uid)) if self._job_uid(owner.meta) == uid else ()
            # Its own end is not told: without pods it holds nothing.
            job = KubeJob(owner.kind, owner.meta, None, owned, self._queued_below(uid))
            return self._with_schedulers(job) if owned else None
        pod = self._pods.get(uid)
        if pod is None or self._job_uid(pod.metadata) != uid or not self._has_cards(pod):
            return None
        return self._with_schedulers(KubeJob(PODS.kind, pod.metadata, None, (pod,), self._queued.get(uid)))

    def mark(self, uid: str) -> None:
        """Have `take_changes` yield the job: something has changed that is in none of its objects."""
        self._marked.add(uid)
        self._notify()

    def resource(self, uid: str) -> Resource | None:
        """Return the kind of the job's own object; None for an unknown job."""
        owner = self._owners.get(uid)
        return self._resources.get(uid) or (PODS if uid in self._pods else owner.resource if owner else None)

    def other_pods(self) -> Iterator[Pod]:
        """Yield the placed pods that belong to no job: what runs on nodes beside the jobs."""
        for uid, pod in self._without_cards.items():
            if self._job_uid(pod.metadata) == uid:
                yield pod

    def pods(self) -> Iterable[Pod]:
        """Return all pods that the user may see."""
        return self._pods.values()

    def _has_cards(self, pod: Pod) -> bool:
        return has_cards(requested(pod.spec)) or any(map(claims_cards, self.devices.claims(pod)))

    def _claim_changed(self, uid: str) -> None:
        """Mark the job of a pod that uses a claim which has changed."""
        if (pod := self._pods.get(uid)) is not None:
            self._sort_out(pod)
            self.mark(self._job_uid(pod.metadata))

    def _sort_out(self, pod: Pod) -> None:
        """Keep a placed pod apart if it has no cards."""
        if pod.is_placed and not self._has_cards(pod):
            self._without_cards[pod.metadata.uid] = pod
        else:
            self._without_cards.pop(pod.metadata.uid, None)

    def _turn(self, uid: str, meta: ObjectMeta) -> QueueTurn | None:
        """Return the job's turn in a queue of KubeQueue; None: it is in none."""
        return self.kube_queue.turn(self._resources[uid], meta) if self.has_queue_units else None

    def queued_changed(self, old: KueueWorkload | None, new: KueueWorkload | None) -> None:
        each = new if new is not None else old
        assert each is not None
        owner = each.metadata.controller
        if owner is None:
            return
        if new is not None:
            self._queued[owner.uid] = new
        else:
            self._queued.pop(owner.uid, None)
        self._mark_owner(owner.uid)

    def _mark_owner(self, uid: str) -> None:
        """Mark the job that the workload or pod belongs to."""
        self.mark(self._job_uid(self._workloads[uid].metadata) if uid in self._workloads else uid)

    def _with_schedulers(self, job: KubeJob) -> KubeJob:
        job.batch = self.schedulers.of(job)
        job.scaling = self.scalers.of(job.meta)
        return job

    def _job_uid(self, meta: ObjectMeta) -> str:
        """Return the uid of the topmost object that this one belongs to; its own where it belongs to none."""
        uid, owner = meta.uid, meta.controller
        while owner is not None and (above := self._meta_of(owner.uid)) is not None:
            uid, owner = owner.uid, above.controller
        return uid

    def _meta_of(self, uid: str) -> ObjectMeta | None:
        """Return the metadata of an object that is known; pods, too, may own others."""
        known = self._workloads.get(uid) or self._pods.get(uid)
        if known is not None:
            return known.metadata
        owner = self._owners.get(uid)
        return owner.meta if owner is not None else None

    def _seek_owner(self, meta: ObjectMeta) -> None:
        """Read the owner that is missing above a pod with cards, if there is one.

        A workload is listed in time, and its own owner is left alone: each run of a CronJob is a job of its own.
        """
        owner = meta.controller
        while owner is not None and owner.api_version and (owner.group, owner.kind) not in self.watched:
            above = self._meta_of(owner.uid)
            if above is None:
                self._owners.seek(owner, meta)
                return
            meta, owner = above, above.controller

    def _owner_found(self, owner: Owner) -> None:
        if owner.meta.controller is not None:
            self._parts.setdefault(owner.meta.controller.uid, set()).add(owner.meta.uid)
            self._seek_owner(owner.meta)
        # Until now its pods were jobs of their own.
        self._marked |= {pod.metadata.uid for pod in self._pods_below(owner.meta.uid)}
        self._marked |= {owner.meta.uid, self._job_uid(owner.meta)} | self._parts.get(owner.meta.uid, set())
        self._notify()

    def _queued_below(self, uid: str) -> KueueWorkload | None:
        """Return the job as its queue manager sees it, which may look at a part of the job, such as its JobSet."""
        own = self._queued.get(uid)
        return own if own is not None else next(filter(None, map(self._queued_below, self._parts.get(uid, ()))), None)

    def _pods_below(self, uid: str) -> Iterator[Pod]:
        for pod in self._pods_of.get(uid, {}).values():
            yield pod
            if pod.metadata.uid in self._parts:
                yield from self._pods_below(pod.metadata.uid)
        for part in self._parts.get(uid, ()):
            yield from self._pods_below(part)

    def workload_changed(self, resource: Resource, old: Workload | None, new: Workload | None) -> None:
        each = new if new is not None else old
        assert each is not None
        uid, owner = each.metadata.uid, each.metadata.controller
        # Before and after, since with the object the chain of owners ends.
        self._marked.add(self._job_uid(each.metadata))
        if new is not None:
            self._workloads[uid], self._resources[uid] = new, resource
        else:
            self._workloads.pop(uid, None)
            self._resources.pop(uid, None)
        self._marked |= {uid, self._job_uid(each.metadata)}
        self.kube_queue.note_job(resource, each.metadata, present=new is not None)
        self.scalers.note_job(resource, each.metadata, present=new is not None)
        self.fleet.note_job(resource, each.metadata, present=new is not None)
        if owner is not None:
            _move(self._parts.setdefault(owner.uid, set()), uid, present=new is not None)
        # Pods and parts that were listed before their owner were jobs of their own until now.
        if old is None or new is None:
            self._marked |= self._pods_of.get(uid, {}).keys() | self._parts.get(uid, set())
        self._notify()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        each = new if new is not None else old
        assert each is not None
        uid, owner = each.metadata.uid, each.metadata.controller
        self.pods_version += 1
        if new is not None:
            self._pods[uid] = new
        else:
            self._pods.pop(uid, None)
        self.devices.pod_changed(old, new)
        if new is not None:
            self._sort_out(new)
        else:
            self._without_cards.pop(uid, None)
        if owner is not None:
            pods = self._pods_of.setdefault(owner.uid, {})
            if new is not None:
                pods[uid] = new
            else:
                pods.pop(uid, None)
                if not pods:
                    del self._pods_of[owner.uid]
        self._marked.add(self._job_uid(each.metadata))
        self.schedulers.pod_changed(old, new)
        if new is not None and owner is not None and self._has_cards(new):
            self._seek_owner(new.metadata)
        self._notify()


def _move(members: set[str], uid: str, *, present: bool) -> None:
    if present:
        members.add(uid)
    else:
        members.discard(uid)
