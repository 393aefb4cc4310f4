"""A job as the pod template and the policies of a Kubernetes manifest; `pods` and `roles` read them again."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from cockpit.formats.foreign.kubeargs import arguments_of, escape
from cockpit.formats.foreign.podresources import limits_of, written_volumes
from cockpit.formats.foreign.pods import BEST_EFFORT, HOSTNAME
from cockpit.launch.checks import COMPUTE_QOS, SUPERVISED
from cockpit.launch.command import ENTRYPOINT
from cockpit.model.image import HOST
from cockpit.model.spec import DEFAULT_GRACE_SECONDS, NO_LIMIT_SECONDS, PriorityWord

if TYPE_CHECKING:
    from cockpit.model.labels import Toleration
    from cockpit.model.spec import JobSpec, NodeSpec


def metadata_of(spec: JobSpec) -> dict[str, Any]:
    """Return the metadata of the whole job."""
    metadata: dict[str, Any] = {"name": spec.name}
    if spec.project:
        metadata["namespace"] = spec.project
    return metadata | ({"labels": dict(spec.labels)} if spec.labels else {})


def deadline_of(spec: JobSpec) -> dict[str, int]:
    """Return the field of the time limit; none for a job without a limit."""
    seconds = spec.time_limit_seconds
    return {"activeDeadlineSeconds": seconds} if seconds < NO_LIMIT_SECONDS else {}


def run_policy(spec: JobSpec) -> dict[str, Any]:
    """Return the run policy of the training operator."""
    policy: dict[str, Any] = {**deadline_of(spec)}
    if spec.elastic is not None:
        policy["backoffLimit"] = spec.elastic.backoff_limit
    elif spec.restart is not None:
        policy["backoffLimit"] = spec.restart.max_restarts
    if spec.hold:
        policy["suspend"] = True
    if spec.partitions:
        # A manifest has room for one queue; a job in several partitions loses the others, which is noted
        # (`exchange.written`).
        policy["schedulingPolicy"] = {"queue": spec.partitions[0]}
    return policy


def template_of(
    spec: JobSpec,
    name: str,
    given: Collection[str] = (),
    *,
    each: NodeSpec | None = None,
    image: str = "",
    command: str | None = None,
) -> dict[str, Any]:
    """Return the pod template. `name`: the container's; `given`: variables that the operator sets. The other arguments
    replace fields of the spec."""
    container = container_of(spec, given, each=each, image=image, command=command)
    pod: dict[str, Any] = {"containers": [{"name": name, **container}], **_place(spec)}
    volumes, mounts = written_volumes(spec)
    if volumes:
        pod["volumes"] = volumes
        pod["containers"][0]["volumeMounts"] = mounts
    if spec.grace_seconds != DEFAULT_GRACE_SECONDS:
        pod["terminationGracePeriodSeconds"] = spec.grace_seconds
    if spec.priority is not PriorityWord.NORMAL:
        pod["priorityClassName"] = str(spec.priority)
    return {**_best_effort(spec), "spec": pod}


def container_of(
    spec: JobSpec,
    given: Collection[str] = (),
    *,
    each: NodeSpec | None = None,
    image: str = "",
    command: str | None = None,
) -> dict[str, Any]:
    """Return the container, without its name."""
    container: dict[str, Any] = {}
    # The machine's own root is no image that a registry could give.
    if (root := image or spec.image) != HOST:
        container["image"] = root
    program, *rest = arguments_of(spec.command if command is None else command, {*spec.env, *given})
    # core/v1 Container: without `command` the image's ENTRYPOINT runs, with `args` in place of its CMD.
    if program != ENTRYPOINT:
        container["command"] = [program, *rest]
    elif rest:
        container["args"] = rest
    if spec.env:
        container["env"] = [{"name": name, "value": escape(value)} for name, value in spec.env.items()]
    if limits := limits_of(each or spec.specs[0]):
        container["resources"] = {"limits": limits}
    return container


def _best_effort(spec: JobSpec) -> dict[str, Any]:
    elastic = spec.elastic
    if elastic is None or not elastic.best_effort:
        return {}
    noted = {"annotations": {SUPERVISED: "true"}} if elastic.supervised else {}
    return {"metadata": {"labels": {COMPUTE_QOS: BEST_EFFORT}, **noted}}


def _place(spec: JobSpec) -> dict[str, Any]:
    """Return the fields of a pod that say which nodes it accepts."""
    place: dict[str, Any] = {}
    if spec.node_selector:
        place["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        place["tolerations"] = [_toleration(each) for each in spec.tolerations]
    if spec.node_names:
        # `nodeName` would allow a single node, and bypass the scheduler.
        names = {"key": HOSTNAME, "operator": "In", "values": list(spec.node_names)}
        term = {"nodeSelectorTerms": [{"matchExpressions": [names]}]}
        place["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    return place


def _toleration(each: Toleration) -> dict[str, str]:
    if not each.key:
        return {"operator": "Exists"}
    if each.value is None:
        return {"key": each.key, "operator": "Exists"}
    return {"key": each.key, "operator": "Equal", "value": each.value}
