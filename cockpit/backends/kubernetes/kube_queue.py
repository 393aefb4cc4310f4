"""The objects of KubeQueue on a cluster, and the job that each queue unit belongs to.

A queue unit names its job by kind and name, not by uid, and may be read before it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cockpit.backends.kubernetes.mapping.kube_queue import QueueTurn, queue_of
from cockpit.backends.kubernetes.mapping.quota import QuotaLeaves
from cockpit.backends.kubernetes.mapping.quota_tree import tree_of, tree_of_namespaces
from cockpit.backends.kubernetes.objects.kube_queue import (
    SUSPEND,
    ElasticQuotaTree,
    KubeQueue,
    QueueUnit,
)
from cockpit.backends.kubernetes.objects.surroundings import ResourceQuota
from cockpit.backends.kubernetes.wire.reflector import keep_by_uid
from cockpit.sched.rules.quotas import NO_LEAF

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.model.quota import QuotaTree

TREE_NAMESPACE = "kube-system"
"""The only namespace in which a quota tree counts."""


Q = TypeVar("Q", KubeQueue, ElasticQuotaTree, ResourceQuota)


class JobKey(NamedTuple):
    """A job as queue units name it."""

    group: str
    kind: str
    namespace: str
    name: str


class _Tree(NamedTuple):
    served: ElasticQuotaTree | None
    tree: QuotaTree | None
    leaves: QuotaLeaves


class KubeQueues:
    """The queue units, queues and quota trees that the user may see."""

    def __init__(self, mark: Callable[[str], None], changed: Callable[[], None]) -> None:
        """`mark`: called with the uid of each job whose turn has changed; `changed`: after each change of anything."""
        self._mark, self._notify = mark, changed
        self.version = 0
        """Grows with each change."""
        self.queues: dict[str, KubeQueue] = {}
        """The queues by uid."""
        self._by_uid: dict[str, QueueUnit] = {}
        self._units: dict[JobKey, QueueUnit] = {}
        self._jobs: dict[JobKey, str] = {}
        """The uids of the workloads."""
        self.trees: dict[str, ElasticQuotaTree] = {}
        """The quota trees by uid. A cluster has one."""
        self.quotas: dict[str, ResourceQuota] = {}
        """The quotas of namespaces by uid, where the cluster serves no quota trees."""

    @property
    def tree(self) -> QuotaTree | None:
        """The quota tree that is in force, or the quotas of namespaces as a tree; None: there is none."""
        return self._in_force.tree

    @property
    def served_tree(self) -> ElasticQuotaTree | None:
        """The object of that tree; None: there is no tree, or it is made of the quotas of namespaces."""
        return self._in_force.served

    @property
    def leaves(self) -> QuotaLeaves:
        return self._in_force.leaves

    def turn(self, resource: Resource, meta: ObjectMeta) -> QueueTurn | None:
        """Return a job's turn; None: KubeQueue has nothing to do with it."""
        unit = self._units.get(JobKey(resource.group, resource.kind, meta.namespace, meta.name))
        if unit is None and meta.annotation(SUSPEND) != "true":
            return None
        leaf = self.leaves.of(meta.namespace, lambda key: _label(unit, meta, key))
        return QueueTurn(unit, queue_of(unit, meta.namespace, leaf, self.queues.values()), leaf)

    def find(self, uid: str) -> QueueUnit | ElasticQuotaTree | None:
        """Return the queue unit or quota tree with this uid."""
        return self._by_uid.get(uid) or self.trees.get(uid)

    def takes_jobs_of(self, namespace: str) -> bool:
        """Return whether there is a queue for the jobs of a namespace, as far as the user may see the queues."""
        has_queue = any(each.metadata.namespace == namespace for each in self.queues.values())
        return has_queue or self.leaves.quotas.leaf(namespace) != NO_LEAF

    def note_job(self, resource: Resource, meta: ObjectMeta, *, present: bool) -> None:
        """Note that there is this job, or no longer is."""
        key = JobKey(resource.group, resource.kind, meta.namespace, meta.name)
        if present:
            self._jobs[key] = meta.uid
        # A new job of the name may have come already.
        elif self._jobs.get(key) == meta.uid:
            del self._jobs[key]

    def unit_changed(self, old: QueueUnit | None, new: QueueUnit | None) -> None:
        self.version += 1
        if old is not None:
            self._by_uid.pop(old.metadata.uid, None)
        if new is not None:
            self._by_uid[new.metadata.uid] = new
        for each in (old, new):
            if each is None or (key := _key(each)) is None:
                continue
            if each is new:
                self._units[key] = new
            elif new is None or _key(new) != key:
                self._units.pop(key, None)
            if key in self._jobs:
                self._mark(self._jobs[key])
        self._notify()

    def keep(self, kept: dict[str, Q], old: Q | None, new: Q | None) -> None:
        """Keep a queue, a quota tree or a quota. Its status changes nothing here, and may do so with every pod."""
        is_same = old is not None and new is not None and _decides(old) == _decides(new)
        keep_by_uid(kept, self._notify if is_same else self._queues_changed, old, new)

    def _queues_changed(self) -> None:
        """Mark every job that is in a queue: its queue's name follows from the queues and the quota tree."""
        self.version += 1
        self.__dict__.pop("_in_force", None)
        for key in self._units.keys() & self._jobs.keys():
            self._mark(self._jobs[key])
        self._notify()

    @cached_property
    def _in_force(self) -> _Tree:
        # The oldest one counts: a cluster may have a single tree.
        for each in sorted(self.trees.values(), key=lambda each: (each.metadata.created_at, each.metadata.name)):
            if (tree := tree_of(each)) is not None:
                return _Tree(each, tree, QuotaLeaves(tree))
        # KubeQueue has a queue for each namespace then.
        tree = tree_of_namespaces(self.quotas.values(), {each.metadata.namespace for each in self.queues.values()})
        return _Tree(None, tree, QuotaLeaves(tree))


def _key(unit: QueueUnit) -> JobKey | None:
    job = unit.spec.consumer_ref
    return JobKey(job.group, job.kind, job.namespace or unit.metadata.namespace, job.name) if job is not None else None


def _decides(each: KubeQueue | ElasticQuotaTree | ResourceQuota) -> tuple[object, object]:
    return each.spec, each.metadata.annotations


def _label(unit: QueueUnit | None, meta: ObjectMeta, key: str) -> str:
    return (unit.metadata.label(key) if unit is not None else "") or meta.label(key)
