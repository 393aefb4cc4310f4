"""Gangs: pods that start together or not at all, by pod groups or by labels of the pods.

Sources: Volcano (annotation `scheduling.k8s.io/group-name`), scheduler-plugins (label `scheduling.x-k8s.io/pod-group`,
earlier `pod-group.scheduling.sigs.k8s.io`, and without pod groups `pod-group.scheduling.sigs.k8s.io/name` with
`min-available`), Koordinator (its annotations `gang.scheduling.koordinator.sh/name` and `min-available`).
"""

from __future__ import annotations

from typing import NamedTuple

from cockpit.backends.kubernetes.objects.gang import PodGroup
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.volcano import VolcanoQueue

_NAME_LABELS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
_NAME_ANNOTATIONS = (
    "gang.scheduling.koordinator.sh/name",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
)
_LEAST_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
_LEAST_ANNOTATION = "gang.scheduling.koordinator.sh/min-available"


class GangKey(NamedTuple):
    """A gang's place."""

    namespace: str
    name: str


class Gang(NamedTuple):
    """A gang with the pods that it has at present."""

    name: str
    pods: tuple[Pod, ...]
    group: PodGroup | None
    """Its pod group; None: its pods' labels alone make it one."""

    @property
    def least(self) -> int:
        """The number of pods without which none starts; 0: not known."""
        if self.group is not None:
            return self.group.spec.min_member
        return max((_least(pod.metadata) for pod in self.pods), default=0)


def gang_key(meta: ObjectMeta) -> GangKey | None:
    """Return the gang that a pod names; None: it names none."""
    # Plain loops: they run for each change of each pod.
    for named, keys in ((meta.labels, _NAME_LABELS), (meta.annotations, _NAME_ANNOTATIONS)):
        for key in keys if named else ():
            if named and (name := named.get(key)):
                return GangKey(meta.namespace, name)
    return None


class BatchScheduling(NamedTuple):
    """What is kept of a job for the batch schedulers beside kube-scheduler."""

    gang: Gang | None = None
    queue: VolcanoQueue | None = None
    """Its queue of Volcano; None: it has none, or the queue may not be read."""
    missing_queue: str = ""
    """The name of a queue of Volcano that there is not; empty: it is there, or not known."""


def _least(meta: ObjectMeta) -> int:
    said = meta.label(_LEAST_LABEL) or meta.annotation(_LEAST_ANNOTATION)
    return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
