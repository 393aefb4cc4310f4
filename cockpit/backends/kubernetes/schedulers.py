"""A copy of what batch schedulers beside kube-scheduler keep: pod groups, Volcano's queues, and elastic quotas.

Each change marks the jobs that it concerns: those of a gang when one of its pods or its group changes, and those of a
queue when that opens or closes. What queues and quotas use changes all the time; it is looked at when a user asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.membership import BatchScheduling, Gang, GangKey, gang_key
from cockpit.backends.kubernetes.objects.elastic_quota import ElasticQuota
from cockpit.backends.kubernetes.objects.gang import PodGroup
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.volcano import VolcanoQueue
from cockpit.backends.kubernetes.resources import VOLCANO_POD_GROUPS, VOLCANO_QUEUES, Resource


class Reader(NamedTuple):
    """How objects of a kind are read."""

    struct: type
    changed: Callable[[Any, Any], None]
    """Receives an object before and after a change; None: it was not there, or is gone."""


class BatchSchedulers:
    """Pod groups, gangs, queues and quotas of one cluster."""

    def __init__(self, mark: Callable[[str], None], notify: Callable[[], None]) -> None:
        """`mark`: has the job looked at anew to which the object with this uid belongs. `notify`: called when something
        changed that is in no job."""
        self._mark, self._notify = mark, notify
        self.queues: dict[str, VolcanoQueue] = {}
        """Volcano's queues by name."""
        self.quotas: dict[str, tuple[Resource, ElasticQuota]] = {}
        """The elastic quotas by uid, each with the kind that it is of: two groups have one of the same name."""
        self.groups: dict[GangKey, PodGroup] = {}
        """The pod groups by their places."""
        self._keys: dict[str, GangKey] = {}
        """The pod group of an object, by the uid of the object that controls the group."""
        self._pods: dict[GangKey, dict[str, Pod]] = {}
        self._owners: dict[GangKey, Counter[str]] = {}
        """The objects to which the pods of a gang belong, with the number of its pods."""

    def reader(self, resource: Resource) -> Reader:
        """Return how one of `BATCH_SCHEDULING` is read."""
        if resource == VOLCANO_QUEUES:
            return Reader(VolcanoQueue, self.queue_changed)
        if resource.plural == VOLCANO_POD_GROUPS.plural:
            return Reader(PodGroup, self.group_changed)
        return Reader(ElasticQuota, partial(self.quota_changed, resource))

    def of(self, job: KubeJob) -> BatchScheduling:
        """Return what is kept of a job."""
        named = (key for pod in job.pods if (key := gang_key(pod.metadata)) is not None)
        key = self._keys.get(job.meta.uid) or next(named, None)
        named_queue = job.workload.spec.queue if job.workload is not None and job.workload.spec.tasks else ""
        # Volcano always has queues: without any, they may not be read.
        missing = named_queue if self.queues and named_queue not in self.queues else ""
        if key is None:
            return BatchScheduling(missing_queue=missing)
        group = self.groups.get(key)
        gang = Gang(key.name, tuple(self._pods.get(key, {}).values()), group)
        return BatchScheduling(gang, self.queues.get(group.spec.queue) if group is not None else None, missing)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take over a change of a pod. Its own job is looked at anew anyhow."""
        for pod, count in ((old, -1), (new, 1)):
            key = gang_key(pod.metadata) if pod is not None else None
            if pod is None or key is None:
                continue
            own = _owner(pod)
            pods, owners = self._pods.setdefault(key, {}), self._owners.setdefault(key, Counter())
            if count > 0:
                pods[pod.metadata.uid] = pod
            else:
                pods.pop(pod.metadata.uid, None)
            owners[own] += count
            if not owners[own]:
                del owners[own]
            # Pods of one object are one job, and most gangs are such pods: then no other job changes.
            for owner in owners:
                if owner != own:
                    self._mark(owner)
            if not pods:
                del self._pods[key], self._owners[key]

    def group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Take over a change of a pod group."""
        for group, is_there in ((old, False), (new, True)):
            if group is None:
                continue
            key = GangKey(group.metadata.namespace, group.metadata.name)
            owner = group.metadata.controller
            if is_there:
                self.groups[key] = group
                if owner is not None:
                    self._keys[owner.uid] = key
            else:
                self.groups.pop(key, None)
                if owner is not None:
                    self._keys.pop(owner.uid, None)
        each = new if new is not None else old
        assert each is not None
        self._mark_group(each)

    def queue_changed(self, old: VolcanoQueue | None, new: VolcanoQueue | None) -> None:
        """Take over a change of a queue."""
        if old is not None:
            self.queues.pop(old.metadata.name, None)
        if new is not None:
            self.queues[new.metadata.name] = new
        if (old is not None and old.is_open) != (new is not None and new.is_open):
            changed = {each.metadata.name for each in (old, new) if each is not None}
            for group in self.groups.values():
                if group.spec.queue in changed:
                    self._mark_group(group)
        self._notify()

    def quota_changed(self, resource: Resource, old: ElasticQuota | None, new: ElasticQuota | None) -> None:
        """Take over a change of an elastic quota."""
        if old is not None:
            self.quotas.pop(old.metadata.uid, None)
        if new is not None:
            self.quotas[new.metadata.uid] = (resource, new)
        self._notify()

    def _mark_group(self, group: PodGroup) -> None:
        if (owner := group.metadata.controller) is not None:
            self._mark(owner.uid)
        self._mark_gang(GangKey(group.metadata.namespace, group.metadata.name))

    def _mark_gang(self, key: GangKey) -> None:
        for owner in self._owners.get(key, ()):
            self._mark(owner)


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller
    return owner.uid if owner is not None else pod.metadata.uid
