"""What is read of a cluster: the kinds that it serves, in the namespaces that the user may see, and its nodes.

Which objects make a job is `JobObjects`' subject, which gets each change of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.copies import Copies, Reading
from cockpit.backends.kubernetes.job_objects import JobObjects
from cockpit.backends.kubernetes.kube_queue import TREE_NAMESPACE
from cockpit.backends.kubernetes.kueue_copy import KueueCopy
from cockpit.backends.kubernetes.mapping.cards.hami import is_register
from cockpit.backends.kubernetes.mapping.cards.volcano import REGISTER
from cockpit.backends.kubernetes.mapping.nodes import DRAINED_BECAUSE, node_of
from cockpit.backends.kubernetes.objects.fleet import FLEET_KINDS
from cockpit.backends.kubernetes.objects.kube_queue import ElasticQuotaTree, KubeQueue, QueueUnit
from cockpit.backends.kubernetes.objects.kueue import KueueWorkload
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.scaler import Scaler
from cockpit.backends.kubernetes.objects.surroundings import ResourceQuota
from cockpit.backends.kubernetes.objects.workload import Workload
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
from cockpit.backends.kubernetes.wire.access import VisibleNamespaces
from cockpit.backends.kubernetes.wire.served_kinds import ServedKinds

if TYPE_CHECKING:
    from random import Random

    from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
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
        self.queue_kinds: frozenset[Resource] = frozenset()
        """The kinds of queue managers and batch schedulers that the cluster serves."""
        self.jobs = jobs = JobObjects(api, changed)
        """The objects that jobs are made of."""
        self.kube_queue, self.devices, self.schedulers = jobs.kube_queue, jobs.devices, jobs.schedulers
        self.fleet = jobs.fleet
        self.fleet.absent = lambda: self.absent
        self.kueue = KueueCopy(self._notify)

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
            self.jobs.mark_all()
            self._has_moved()

    def claims_kind(self, path: str) -> bool:
        """Return whether a path of an API group is about a kind that counts as served."""
        return self._kinds.claims(path)

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
        self.jobs.has_queue_units = QUEUE_UNITS in self.queue_kinds
        self.jobs.watched = frozenset((each.group, each.kind) for each in (*self.served, NODES))
        self._copies.follow(self._readings())

    def _readings(self) -> Iterator[Reading]:
        """Yield what is read of the kinds that are served."""
        for resource in (each for each in WORKLOADS if each in self.served):
            yield from self._reading(resource, Workload, partial(self.jobs.workload_changed, resource))
        yield from self._reading(PODS, Pod, self.jobs.pod_changed)
        yield from self._reading(NODES, KubeNode, self._node_changed)
        for resource in (each for each in QUEUES if each in self.queue_kinds):
            yield from self._reading(resource, *self._queue_reader(resource))
        yield from self._kube_queue_readings()
        for resource in (each for each in BATCH_SCHEDULING if each in self.queue_kinds):
            yield from self._reading(resource, *self.schedulers.reader(resource))
        if TRAINING_JOBS in self.served:
            for resource in sorted(self._kinds.among(SCALERS)):
                yield from self._reading(resource, Scaler, self.jobs.scalers.scaler_changed)
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
        return self.nodes_version, self.jobs.pods_version, self.kube_queue.version, self.devices.version

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return self._copies.synced and self.jobs.settled

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
        await self.jobs.stop()
        await self._copies.stop()

    def version(self, meta: ObjectMeta) -> str | None:
        """Return the version in which an object was last seen: of a job, a pod, a node, KubeQueue, a policy of a
        fleet; None: it is not there."""
        uid = meta.uid
        found = self.jobs.find(uid) or self.kube_queue.find(uid) or self.fleet.find(uid) or self.nodes.get(meta.name)
        return found.metadata.resource_version if found is not None and found.metadata.uid == uid else None

    def is_read(self, meta: ObjectMeta) -> bool:
        """Return whether objects of this one's namespace are read at all."""
        return self.namespaces == ("",) or not meta.namespace or meta.namespace in self.namespaces

    def _has_moved(self) -> None:
        self.moved()
        self._notify()

    def _queue_reader(self, resource: Resource) -> tuple[type, Callable[..., None]]:
        """Return how a kind of Kueue is decoded, and what is called with each change."""
        struct, keep = self.kueue.reader(resource.kind)

        def changed(old: KueueWorkload | None, new: KueueWorkload | None) -> None:
            keep(old, new)
            if resource.kind == KUEUE_WORKLOADS.kind:
                self.jobs.queued_changed(old, new)

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
