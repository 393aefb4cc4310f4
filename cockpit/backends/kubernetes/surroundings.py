"""What is read about one waiting job when a user asks why it waits, and is not watched.

What the user may not read is left out: it only makes the answer shorter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from cockpit.backends.kubernetes.mapping.namespace_quotas import QuotaLine, quota_lines
from cockpit.backends.kubernetes.objects.event import KubeEvent
from cockpit.backends.kubernetes.objects.placing import NodeSelectorTerm
from cockpit.backends.kubernetes.objects.surroundings import (
    Namespace,
    PersistentVolume,
    ResourceQuota,
    StorageClass,
    VolumeClaim,
)
from cockpit.backends.kubernetes.priority_classes import PriorityClass, PriorityClasses
from cockpit.backends.kubernetes.resources import EVENTS, NAMESPACES, RESOURCE_QUOTAS, Resource
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.lists import Page, decode_answer, read_list
from cockpit.model.ids import Millis
from cockpit.model.pod_reasons import ClaimTrouble, ClaimWaits, PodsStarting, StartStep

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.wire.api import Api

T = TypeVar("T")

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
MOUNT_FAILURES = frozenset({"FailedMount", "FailedAttachVolume"})
LONGEST = 400
"""Characters of Kubernetes' words that are kept."""
FAILED_CREATE, FAILED_SCHEDULING = "FailedCreate", "FailedScheduling"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_EVENTS = msgspec.json.Decoder(Page[KubeEvent])
_CLAIM, _VOLUME = msgspec.json.Decoder(VolumeClaim), msgspec.json.Decoder(PersistentVolume)
_NAMESPACE = msgspec.json.Decoder(Namespace)
_QUOTAS = msgspec.json.Decoder(Page[ResourceQuota])
_STORAGE = msgspec.json.Decoder(Page[StorageClass])


class Surroundings(NamedTuple):
    """What is known around a waiting job."""

    classes: Mapping[str, int] = MappingProxyType({})
    """The values of the cluster's priority classes."""
    default_priority: int = 0
    """The priority of pods that name no class."""
    message_at: Millis | None = None
    """When the scheduler last refused one of its pods."""
    creation: str = ""
    """Why its controller could not create a pod, in the controller's words; empty: nothing is known."""
    claims: tuple[ClaimWaits, ...] = ()
    """The volume claims for which it waits."""
    volumes: tuple[tuple[NodeSelectorTerm, ...], ...] = ()
    """The nodes that can use each of its volumes, as terms of which one must hold."""
    quotas: tuple[QuotaLine, ...] = ()
    """The quotas of its namespace, if it has no pods yet that are counted there."""
    labels: Mapping[str, str] | None = None
    """The labels of its namespace; None: they were not read, or may not be."""

    def priority(self, job: KubeJob) -> int:
        """Return the priority that the cluster will give the job's pods."""
        return self.classes.get(job.priority_class, self.default_priority)


async def read_surroundings(api: Api, job: KubeJob) -> Surroundings:
    """Read everything that is known around a job."""
    refused, failed, classes, (waits, volumes) = await asyncio.gather(
        _refused_at(api, job), _creation_failure(api, job), PriorityClasses(api).of_pods(), _claims(api, job)
    )
    quotas = () if job.pods else await _quotas(api, job.meta.namespace)
    return _of_classes(classes)._replace(
        message_at=refused, creation=failed, claims=waits, volumes=volumes, quotas=quotas
    )


async def read_namespace(api: Api, namespace: str) -> Surroundings:
    """Read what decides about a job of the namespace that is not submitted yet."""
    classes, quotas, labels = await asyncio.gather(
        PriorityClasses(api).of_pods(), _quotas(api, namespace), namespace_labels(api, namespace)
    )
    return _of_classes(classes)._replace(quotas=quotas, labels=labels)


async def namespace_labels(api: Api, namespace: str) -> Mapping[str, str] | None:
    """Return the labels of a namespace; None: they may not be read."""
    try:
        answer = await api.get(NAMESPACES.path(name=namespace))
    except ApiError:
        return None
    return decode_answer(answer, _NAMESPACE, NAMESPACES).metadata.labels or {}


async def _quotas(api: Api, namespace: str) -> tuple[QuotaLine, ...]:
    return quota_lines(await _listed(api, RESOURCE_QUOTAS, _QUOTAS, namespace))


def _of_classes(classes: Mapping[str, PriorityClass]) -> Surroundings:
    """Return what follows from the priority classes."""
    default = next((each.value for each in classes.values() if each.global_default), 0)
    return Surroundings({name: each.value for name, each in classes.items()}, default)


async def with_mount_failure(api: Api, job: KubeJob, reason: PodsStarting) -> PodsStarting:
    """Return the reason of placed pods with the volume that the kubelet cannot attach or mount; as it is without one:
    a pod's own state says only that its containers are being created."""
    waiting = [pod for pod in job.placed if pod.now.phase == "Pending"]
    if reason.step is not StartStep.CONTAINER or not waiting:
        return reason
    events = await _events(api, job, f"involvedObject.uid={waiting[0].metadata.uid}")
    failed = max((each for each in events if each.reason in MOUNT_FAILURES), key=lambda each: each.at, default=None)
    if failed is None:
        return reason
    return replace(reason, step=StartStep.VOLUME, code=failed.reason, message=failed.message[:LONGEST])


async def _refused_at(api: Api, job: KubeJob) -> Millis | None:
    """Return when the scheduler last refused the job's first waiting pod."""
    if not job.waiting:
        return None
    about = f"involvedObject.uid={job.waiting[0].metadata.uid},reason={FAILED_SCHEDULING}"
    return max((each.at for each in await _events(api, job, about)), default=None)


async def _creation_failure(api: Api, job: KubeJob) -> str:
    """Return why a controller could not create a pod of a job that has none; empty: nothing is known."""
    if job.pods:
        return ""
    # A part of the job, such as the Job of a JobSet, has the job's name before its own.
    failed = [
        each
        for each in await _events(api, job, f"reason={FAILED_CREATE}")
        if each.involved_object.uid == job.meta.uid or each.involved_object.name.startswith(f"{job.meta.name}-")
    ]
    last = max(failed, key=lambda each: each.at, default=None)
    return last.message if last is not None else ""


async def _events(api: Api, job: KubeJob, fields: str) -> list[KubeEvent]:
    return await _listed(api, EVENTS, _EVENTS, job.meta.namespace, fields)


async def _listed(
    api: Api, resource: Resource, decoder: msgspec.json.Decoder[Page[T]], namespace: str = "", fields: str = ""
) -> list[T]:
    try:
        return (await read_list(api, resource, decoder, namespace, fields=fields)).items
    except ApiError:
        return []


async def _claims(api: Api, job: KubeJob) -> tuple[tuple[ClaimWaits, ...], tuple[tuple[NodeSelectorTerm, ...], ...]]:
    """Return the claims without a volume, and the nodes that can use the volumes of the others."""
    names = dict.fromkeys(
        volume.persistent_volume_claim.claim_name
        for volume in job.pod_spec.volumes or ()
        if volume.persistent_volume_claim is not None
    )
    waits: list[ClaimWaits] = []
    volumes: list[tuple[NodeSelectorTerm, ...]] = []
    for name in names:
        try:
            claim = await _one(api, CLAIMS, _CLAIM, name, job.meta.namespace)
        except ApiError as error:
            if error.is_absent:
                waits.append(ClaimWaits(name, ClaimTrouble.ABSENT))
            continue
        if claim.status.phase == "Bound":
            volumes += await _nodes_of(api, claim)
        elif (trouble := await _trouble(api, claim)) is not None:
            waits.append(ClaimWaits(name, trouble, claim.spec.storage_class_name or ""))
    return tuple(waits), tuple(volumes)


async def _one(api: Api, resource: Resource, decoder: msgspec.json.Decoder[T], name: str, namespace: str = "") -> T:
    return decode_answer(await api.get(resource.path(namespace, name)), decoder, resource)


async def _nodes_of(api: Api, claim: VolumeClaim) -> list[tuple[NodeSelectorTerm, ...]]:
    try:
        volume = await _one(api, VOLUMES, _VOLUME, claim.spec.volume_name)
    except ApiError:
        return []
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    return [required.node_selector_terms or ()] if required is not None else []


async def _trouble(api: Api, claim: VolumeClaim) -> ClaimTrouble | None:
    """Return why the claim has no volume; None: it gets one when its pod is placed."""
    classes = await _listed(api, STORAGE_CLASSES, _STORAGE)
    named = claim.spec.storage_class_name
    if named is None:
        found = next((each for each in classes if each.metadata.annotation(DEFAULT_CLASS) == "true"), None)
    else:
        found = next((each for each in classes if each.metadata.name == named), None)
    if found is None:
        # A claim of the class "" waits for a volume that an administrator makes.
        return ClaimTrouble.UNBOUND if named == "" else ClaimTrouble.NO_CLASS
    return None if found.volume_binding_mode == "WaitForFirstConsumer" else ClaimTrouble.UNBOUND
