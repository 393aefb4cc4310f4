"""A copy of the objects that jobs and nodes are made of, and the jobs that changes of them concern.

A job's pods belong to it directly or through other objects: TrainJob → JobSet → Job → Pod. The topmost object of a
known kind is the job; pods with cards that belong to none of these are jobs by their owner (`Owners`). Each change of
an object marks its job; `take_changes` then puts only the marked jobs together anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.copies import Copies, Reading
from cockpit.backends.kubernetes.devices import Devices
from cockpit.backends.kubernetes.fleet_host import FleetHost
from cockpit.backends.kubernetes.kube_queue import TREE_NAMESPACE, KubeQueues
from cockpit.backends.kubernetes.kueue_copy import KueueCopy
from cockpit.backends.kubernetes.mapping.cards.claims import claims_cards
from cockpit.backends.kubernetes.mapping.cards.hami import is_register
from cockpit.backends.kubernetes.mapping.cards.requests import has_cards
from cockpit.backends.kubernetes.mapping.cards.volcano import REGISTER
from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.nodes import DRAINED_BECAUSE, node_of
from cockpit.backends.kubernetes.mapping.quantities import requested
from cockpit.backends.kubernetes.objects.fleet import FLEET_KINDS
from cockpit.backends.kubernetes.objects.kube_queue import ElasticQuotaTree, KubeQueue, QueueUnit
from cockpit.backends.kubernetes.objects.kueue import KueueWorkload
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.scaler import Scaler
from cockpit.backends.kubernetes.objects.surroundings import ResourceQuota
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.backends.kubernetes.owners import Owner, Owners
from cockpit.backends.kubernetes.resources import (
    BATCH_SCHEDULING,
    DEVICES,
    KUBE_QUEUE_KINDS,
    KUBE_QUEUES,
    KUEUE_WORKLOADS,
    NODES,
    PODS,
    QUEUE_UNITS,
    QUEUES,
    QUOTA_TREES,
    RESOURCE_QUOTAS,
    SCALERS,
    TRAINING_JOBS,
    WORKLOADS,
    Resource,
)
from cockpit.backends.kubernetes.schedulers import BatchSchedulers
from cockpit.backends.kubernetes.training_scalers import TrainingScalers
from cockpit.backends.kubernetes.wire.access import VisibleNamespaces
from cockpit.backends.kubernetes.wire.served_kinds import ServedKinds

if TYPE_CHECKING:
    from random import Random

    from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
    from cockpit.backends.kubernetes.mapping.kube_queue import QueueTurn
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.wire.api import Api
    from cockpit.errors import CockpitError
    from cockpit.model.node import Node

NAMESPACES_ANEW = 10
"""So many namespaces are asked about anew at once, of those in which the user may or may not list pods."""


class Inventory:
    """The objects of one cluster, as far as the user may see them. Reads nothing before `start`."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        random: Random,
        changed: Callable[[], None],
        named: tuple[str, ...] = (),
    ) -> None:
        """`namespace`: that of the kubeconfig's context. `changed` is called after each change of anything.
        `named`: the namespaces that are read; empty: all that the user may list."""
        self._notify, self._named = changed, named
        self._visible = VisibleNamespaces(api, namespace, PODS)
        self.moved: Callable[[], None] = lambda: None
        """Called when `synced`, `trouble` or `absent` may have changed."""
        self._kinds = ServedKinds(
            api, (*WORKLOADS, *QUEUES, *KUBE_QUEUE_KINDS, *BATCH_SCHEDULING, *DEVICES, *SCALERS, *FLEET_KINDS)
        )
        self._copies = Copies(api, random, self._has_moved)
        self.namespaces: tuple[str, ...] = ()
        """The namespaces that are read; one empty name: all."""
        self.served: frozenset[Resource] = frozenset()
        """The kinds of jobs that the cluster serves."""
        self.nodes: dict[str, KubeNode] = {}
        """The nodes by name."""
        self._shown_nodes: tuple[ClusterCards | None, list[Node]] = (None, [])
        """The nodes as cockpit shows them, and the cards of which they were made."""
        self.nodes_version = 0
        """Grows with each change of a node other than its heartbeat."""
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
        self.kube_queue = KubeQueues(self.mark, self._notify)
        self.queue_kinds: frozenset[Resource] = frozenset()
        """The kinds of queue managers and batch schedulers that the cluster serves."""
        self._owners = Owners(api, self._owner_found)
        self._watched: frozenset[tuple[str, str]] = frozenset()
        """The groups and kinds of objects that are listed, or that own pods without being jobs."""
        self.devices = Devices(self._claim_changed)
        """What tells of cards beside nodes and pods."""
        self.kueue = KueueCopy(self._notify)
        self.schedulers = BatchSchedulers(self._mark_owner, self._notify)
        """What Volcano, Koordinator and scheduler-plugins keep."""
        self.scalers = TrainingScalers(self.mark)
        """The changes of the numbers of workers of TrainingJobs."""
        self.fleet = FleetHost(self.mark, self._notify)
        """What it keeps if it is the host of a fleet."""
        self.fleet.absent = lambda: self.absent

    async def start(self) -> None:
        """Find out what there is to read, and start to read it. Raises `CockpitError` where the server does not answer.

        1. Which namespaces the user may see, by the right to list pods, unless the user names some.
        2. Which kinds of objects the cluster serves.
        3. One reflector for each kind and namespace; nodes belong to no namespace.
        """
        if not self._named:
            await self._visible.look()  # step 1
        await self._kinds.look()  # step 2
        self._follow()  # step 3

    async def look_for_kinds(self, *, whole: bool = False) -> None:
        """Ask which kinds the cluster serves now, and read these. Raises `CockpitError` without an answer.

        `whole`: also ask a server for which that takes many requests, because it lacks a kind that it served.
        """
        if await self._kinds.look(whole=whole):
            self._follow()
            # Whether a job is in a queue follows from the kinds that are served, too.
            self._marked |= self._workloads.keys() | self._pods.keys()
            self._has_moved()

    async def look_for_namespaces(self) -> None:
        """Ask which namespaces the user may see now, and read these. Raises `CockpitError` without an answer."""
        if not self._named and await self._visible.look(NAMESPACES_ANEW):
            self._follow()
            self._has_moved()

    def rights_changed(self, namespace: str, concerns: Callable[[Resource], bool]) -> None:
        """Read anew what the user may read in a namespace from now on, or no longer. `concerns`: which kinds."""
        # Rights for the whole cluster are among those of each namespace.
        self._copies.look_again(lambda kind, read_in: read_in in ("", namespace) and concerns(kind))

    def _follow(self) -> None:
        self.namespaces = self._named or self._visible.names
        self.served = self._kinds.among(WORKLOADS)
        self.queue_kinds = self._kinds.among((*QUEUES, *KUBE_QUEUE_KINDS, *BATCH_SCHEDULING))
        self.fleet.kinds = self._kinds.among(FLEET_KINDS)
        self._watched = frozenset((each.group, each.kind) for each in (*self.served, NODES))
        self._copies.follow(self._readings())

    def _readings(self) -> Iterator[Reading]:
        """Yield what is read of the kinds that are served."""
        for resource in (each for each in WORKLOADS if each in self.served):
            yield from self._reading(resource, Workload, partial(self._workload_changed, resource))
        yield from self._reading(PODS, Pod, self._pod_changed)
        yield from self._reading(NODES, KubeNode, self._node_changed)
        for resource in (each for each in QUEUES if each in self.queue_kinds):
            yield from self._reading(resource, *self._queue_reader(resource))
        yield from self._kube_queue_readings()
        for resource in (each for each in BATCH_SCHEDULING if each in self.queue_kinds):
            yield from self._reading(resource, *self.schedulers.reader(resource))
        if TRAINING_JOBS in self.served:
            for resource in sorted(self._kinds.among(SCALERS)):
                yield from self._reading(resource, Scaler, self.scalers.scaler_changed)
        for resource in self.fleet.kinds if self.fleet.is_host else ():
            yield from self._reading(resource, *self.fleet.reader(resource))
        for resource in sorted(self._kinds.among(DEVICES)):
            yield from self._reading(resource, *self.devices.reflected(resource))

    def _reading(self, resource: Resource, kind: type, changed: Callable[..., None]) -> Iterator[Reading]:
        for namespace in self.namespaces if resource.namespaced else ("",):
            yield Reading(resource, kind, changed, namespace)

    @property
    def cards(self) -> ClusterCards:
        """The cards of all nodes, the same object until something of them has changed."""
        return self.devices.cards(self.nodes, self.nodes_version)

    @property
    def versions(self) -> tuple[int, ...]:
        """Equal as long as nothing has changed that the scheduler's copy of the cluster is made of, but its jobs."""
        return self.nodes_version, self.pods_version, self.kube_queue.version, self.devices.version

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return self._copies.synced and self._owners.settled

    @property
    def trouble(self) -> CockpitError | None:
        """Why the copy is old at present; None: it is not."""
        return self._copies.trouble

    @property
    def absent(self) -> dict[Resource, str]:
        """Why objects of a kind are not there for this user, in the server's words."""
        return self._copies.absent

    @property
    def unseen(self) -> tuple[str, ...]:
        """A sentence about the namespaces that are not read although the user has named none; empty: all are read."""
        return self._visible.unseen

    @property
    def takes_jobs_of(self) -> Callable[[str], bool] | None:
        """Whether KubeQueue has a queue for the jobs of a namespace; None: the cluster has no KubeQueue."""
        return self.kube_queue.takes_jobs_of if QUEUE_UNITS in (self.queue_kinds or ()) else None

    def shown_nodes(self) -> list[Node]:
        """Return the nodes as cockpit shows them."""
        # The header is computed with each change of a pod; nodes and their cards change seldom.
        cards = self.cards
        if self._shown_nodes[0] is not cards:
            self._shown_nodes = cards, [node_of(each, cards.nodes[name].cards) for name, each in self.nodes.items()]
        return self._shown_nodes[1]

    async def stop(self) -> None:
        await self._owners.stop()
        await self._copies.stop()

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

    def version(self, meta: ObjectMeta) -> str | None:
        """Return the version in which an object was last seen: of a job, a pod, a node, KubeQueue, a policy of a
        fleet; None: it is not there."""
        uid = meta.uid
        found = (
            self._workloads.get(uid)
            or self._pods.get(uid)
            or self.kube_queue.find(uid)
            or self.fleet.find(uid)
            or self.nodes.get(meta.name)
        )
        return found.metadata.resource_version if found is not None and found.metadata.uid == uid else None

    def is_read(self, meta: ObjectMeta) -> bool:
        """Return whether objects of this one's namespace are read at all."""
        return self.namespaces == ("",) or not meta.namespace or meta.namespace in self.namespaces

    def other_pods(self) -> Iterator[Pod]:
        """Yield the placed pods that belong to no job: what runs on nodes beside the jobs."""
        for uid, pod in self._without_cards.items():
            if self._job_uid(pod.metadata) == uid:
                yield pod

    def pods(self) -> Iterable[Pod]:
        """Return all pods that the user may see."""
        return self._pods.values()

    def _has_moved(self) -> None:
        self.moved()
        self._notify()

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

    def _queue_reader(self, resource: Resource) -> tuple[type, Callable[..., None]]:
        """Return how a kind of Kueue is decoded, and what is called with each change."""
        struct, keep = self.kueue.reader(resource.kind)

        def changed(old: KueueWorkload | None, new: KueueWorkload | None) -> None:
            keep(old, new)
            if resource.kind == KUEUE_WORKLOADS.kind:
                self._queued_changed(old, new)

        return struct, changed

    def _kube_queue_readings(self) -> Iterator[Reading]:
        """Yield what is read of KubeQueue. A quota tree counts in one namespace only."""
        own, kinds = self.kube_queue, self.queue_kinds
        if QUEUE_UNITS in kinds:
            yield from self._reading(QUEUE_UNITS, QueueUnit, own.unit_changed)
        if KUBE_QUEUES in kinds:
            yield from self._reading(KUBE_QUEUES, KubeQueue, partial(own.keep, own.queues))
        if QUOTA_TREES in kinds:
            yield Reading(QUOTA_TREES, ElasticQuotaTree, partial(own.keep, own.trees), TREE_NAMESPACE)
        elif KUBE_QUEUES in kinds:
            yield from self._reading(RESOURCE_QUOTAS, ResourceQuota, partial(own.keep, own.quotas))

    def _turn(self, uid: str, meta: ObjectMeta) -> QueueTurn | None:
        """Return the job's turn in a queue of KubeQueue; None: it is in none."""
        return self.kube_queue.turn(self._resources[uid], meta) if QUEUE_UNITS in self.queue_kinds else None

    def _queued_changed(self, old: KueueWorkload | None, new: KueueWorkload | None) -> None:
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
        while owner is not None and owner.api_version and (owner.group, owner.kind) not in self._watched:
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

    def _workload_changed(self, resource: Resource, old: Workload | None, new: Workload | None) -> None:
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

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
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

    def _node_changed(self, old: KubeNode | None, new: KubeNode | None) -> None:
        if old is not None and (new is None or new.metadata.name != old.metadata.name):
            self.nodes.pop(old.metadata.name, None)
        if new is not None:
            self.nodes[new.metadata.name] = new
        # Heartbeats change nothing that is shown; the conditions' times stay while their status does.
        if old is None or new is None or _shown(old) != _shown(new):
            self.nodes_version += 1
            self._notify()


def _shown(node: KubeNode) -> tuple[object, ...]:
    """Return what of a node is shown."""
    # Other annotations, such as the marks of a living device plugin, change often.
    annotations = (node.metadata.annotations or {}).items()
    registers = [each for each in annotations if is_register(each[0]) or each[0] in {REGISTER, DRAINED_BECAUSE}]
    return node.spec, node.status, node.metadata.labels, registers


def _move(members: set[str], uid: str, *, present: bool) -> None:
    if present:
        members.add(uid)
    else:
        members.discard(uid)
