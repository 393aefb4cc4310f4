"""A copy of Kueue's objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from cockpit.backends.kubernetes.mapping.kueue_admission import KueueObjects
from cockpit.backends.kubernetes.objects.kueue import (
    ClusterQueue,
    KueueCohort,
    KueueWorkload,
    LocalQueue,
    ResourceFlavor,
)
from cockpit.backends.kubernetes.resources import CLUSTER_QUEUES, COHORTS, FLAVORS, KUEUE_WORKLOADS, LOCAL_QUEUES
from cockpit.backends.kubernetes.wire.reflector import keep_by_uid


class KueueCopy:
    """Kueue's objects by uid, as far as the user may see them."""

    def __init__(self, notify: Callable[[], None]) -> None:
        """`notify` is called after each change."""
        self._notify = notify
        self.version = 0
        """Grows with each change."""
        self.workloads: dict[str, KueueWorkload] = {}
        self.cluster_queues: dict[str, ClusterQueue] = {}
        self.local_queues: dict[str, LocalQueue] = {}
        self.cohorts: dict[str, KueueCohort] = {}
        self.flavors: dict[str, ResourceFlavor] = {}

    def reader(self, kind: str) -> tuple[type, Callable[..., None]]:
        """Return how objects of a kind are decoded, and what is called with each change: the old and the new one."""
        kept: dict[str, tuple[type, dict[str, Any]]] = {
            KUEUE_WORKLOADS.kind: (KueueWorkload, self.workloads),
            CLUSTER_QUEUES.kind: (ClusterQueue, self.cluster_queues),
            LOCAL_QUEUES.kind: (LocalQueue, self.local_queues),
            COHORTS.kind: (KueueCohort, self.cohorts),
            FLAVORS.kind: (ResourceFlavor, self.flavors),
        }
        struct, objects = kept[kind]
        return struct, partial(keep_by_uid, objects, self._changed)

    def objects(self, *, sees_all: bool) -> KueueObjects:
        """Return everything as it is now. `sees_all`: whether the user sees all namespaces."""
        return KueueObjects(
            tuple(self.workloads.values()),
            tuple(self.cluster_queues.values()),
            tuple(self.local_queues.values()),
            tuple(self.cohorts.values()),
            tuple(self.flavors.values()),
            sees_all,
        )

    def queue_names(self) -> Mapping[str, Collection[str]]:
        """Return the names of the queues of each namespace."""
        names: dict[str, list[str]] = {}
        for each in self.local_queues.values():
            names.setdefault(each.metadata.namespace, []).append(each.metadata.name)
        return names

    def _changed(self) -> None:
        self.version += 1
        self._notify()
