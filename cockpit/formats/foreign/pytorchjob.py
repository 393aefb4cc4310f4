"""A PyTorchJob of the Kubeflow training operator. Source: kubeflow.org/v1, PyTorchJobSpec and PodSpec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft, cpu_count, memory_mib
from cockpit.launch.checks import COMPUTE_QOS, SUPERVISED
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.shellform import plain_arguments
from cockpit.model.image import HOST
from cockpit.model.spec import WHOLE_CARD

if TYPE_CHECKING:
    from cockpit.model.resilience import Elastic
    from cockpit.model.spec import JobSpec, NodeSpec

_GPU: Final = "nvidia.com/gpu"
_CARDS: Final = (_GPU, "amd.com/gpu", "cambricon.com/mlu", "huawei.com/Ascend910", "huawei.com/ascend-1980")
BEST_EFFORT: Final = "best-effort"
_OF_NO_CONCERN: Final = frozenset({"name", "ports", "imagePullPolicy"})


def is_pytorch_job(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == "PyTorchJob"


def read_pytorch_job(value: Mapping[str, Any]) -> Draft:
    metadata, spec = dict(value.get("metadata") or {}), dict(value.get("spec") or {})
    draft = Draft(str(metadata.pop("name", "") or metadata.pop("generateName", "job").rstrip("-")))
    for name in metadata:
        draft.lacks(f"metadata.{name}")
    draft.values["mode"] = "pytorch"
    replicas = dict(spec.pop("pytorchReplicaSpecs", None) or {})
    _replicas(replicas, draft)
    _elastic(spec.pop("elasticPolicy", None), draft)
    _policy(spec.pop("runPolicy", None) or {}, draft)
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def _replicas(replicas: dict[str, Any], draft: Draft) -> None:
    kinds = [(kind, dict(replicas.pop(kind) or {})) for kind in ("Master", "Worker") if kind in replicas]
    for name in replicas:
        draft.lacks(f"spec.pytorchReplicaSpecs.{name}")
    draft.values["nodes"] = sum(int(each.get("replicas", 1)) for _, each in kinds) or 1
    read: list[dict[str, Any]] = []
    for kind, each in kinds:
        own = Draft()
        _pod(kind, each, own)
        read.append(own.values)
        draft.notes += [note for note in own.notes if note not in draft.notes]
    if not read:
        draft.run([])
        return
    draft.values |= read[0]
    if any(other != read[0] for other in read[1:]):
        differing = sorted(
            {name for other in read[1:] for name in {*other, *read[0]} if other.get(name) != read[0].get(name)}
        )
        draft.lacks("spec.pytorchReplicaSpecs.Worker", f"all replicas get the master's {', '.join(differing)}")


def _pod(kind: str, replica: dict[str, Any], draft: Draft) -> None:
    at = f"spec.pytorchReplicaSpecs.{kind}"
    if (policy := replica.get("restartPolicy", "Never")) != "Never":
        draft.lacks(f"{at}.restartPolicy={policy}", "containers here are not restarted; see restart")
    template = replica.get("template") or {}
    _metadata(dict(template.get("metadata") or {}), at, draft)
    pod = dict(template.get("spec") or {})
    containers = pod.pop("containers", None) or [{}]
    for extra in containers[1:]:
        draft.lacks(f"{at}…containers[{extra.get('name', '')}]")
    _container(dict(containers[0]), at, draft)
    if selector := pod.pop("nodeSelector", None):
        draft.values["node_selector"] = {str(name): str(item) for name, item in selector.items()}
    if tolerations := pod.pop("tolerations", None):
        draft.values["tolerations"] = [_toleration(each) for each in tolerations]
    if pod.get("restartPolicy") == "Never":
        del pod["restartPolicy"]
    for name in pod:
        draft.lacks(f"{at}.template.spec.{name}")


def _metadata(metadata: dict[str, Any], at: str, draft: Draft) -> None:
    """The label and the annotation that say how its pods share their nodes, and what else there is."""
    labels, notes = dict(metadata.pop("labels", None) or {}), dict(metadata.pop("annotations", None) or {})
    if labels.get(COMPUTE_QOS) == BEST_EFFORT:
        del labels[COMPUTE_QOS]
        supervised = str(notes.pop(SUPERVISED, "")).lower() == "true"
        draft.values["elastic"] = {"best_effort": True, **({"supervised": True} if supervised else {})}
    for group, left in (("labels", labels), ("annotations", notes)):
        for name in left:
            draft.lacks(f"{at}.template.metadata.{group}.{name}")
    for name in metadata:
        draft.lacks(f"{at}.template.metadata.{name}")


def _toleration(each: Mapping[str, Any]) -> str:
    key, value = each.get("key", ""), each.get("value")
    return "*" if not key else f"{key}={value}" if value is not None else str(key)


def _container(container: dict[str, Any], at: str, draft: Draft) -> None:
    if image := container.pop("image", None):
        draft.values["image"] = str(image)
    command = [str(word) for word in container.pop("command", None) or []]
    arguments = [str(word) for word in container.pop("args", None) or []]
    if arguments and not command:
        draft.lacks(f"{at}…containers[0].args", "stand behind the image's own command")
        command = [ENTRYPOINT]
    draft.run([*command, *arguments])
    for each in container.pop("env", None) or []:
        if "value" in each:
            draft.env(str(each["name"]), str(each["value"]))
        else:
            draft.lacks(f"{at}…env.{each.get('name')}", "its value is a reference into the cluster; left out")
    _resources(container.pop("resources", None) or {}, at, draft)
    if folder := container.pop("workingDir", None):
        draft.lacks(f"{at}…workingDir={folder}")
    for name in container:
        if name not in _OF_NO_CONCERN:
            draft.lacks(f"{at}…containers[0].{name}")


def _resources(resources: Mapping[str, Any], at: str, draft: Draft) -> None:
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    for name, quantity in asked.items():
        if name == "cpu" and (cpus := cpu_count(quantity)):
            draft.spec(cpus=cpus)
        elif name == "memory" and (mib := memory_mib(quantity)):
            draft.spec(memory=f"{mib}M")
        elif name in _CARDS and str(quantity).isdigit():
            draft.spec(cards=int(quantity))
        else:
            draft.lacks(f"{at}…resources.{name}={quantity}")


def _policy(policy: Mapping[str, Any], draft: Draft) -> None:
    for name, value in policy.items():
        if name == "activeDeadlineSeconds":
            draft.values["time_limit"] = int(value)
        elif name == "backoffLimit" and "elastic" in draft.values:
            draft.values["elastic"]["backoff_limit"] = int(value)
        elif name == "backoffLimit" and int(value):
            draft.values["restart"] = {"max_restarts": int(value)}
        elif name == "suspend" and value:
            draft.values["hold"] = True
        elif value:
            draft.lacks(f"spec.runPolicy.{name}")


def _elastic(policy: Mapping[str, Any] | None, draft: Draft) -> None:
    best_effort = draft.values.pop("elastic", {})
    if policy is None and not best_effort:
        return
    left = dict(policy or {"minReplicas": draft.values.get("nodes", 1)})
    sizes = {
        name: left.pop(key)
        for name, key in (("min_workers", "minReplicas"), ("max_workers", "maxReplicas"))
        if key in left
    }
    workers = draft.values.pop("nodes", 1)
    draft.values["elastic"] = {"workers": workers, "max_workers": max(workers, sizes.get("min_workers", 1)), **sizes}
    draft.values["elastic"] |= best_effort
    for name in left:
        draft.lacks(f"spec.elasticPolicy.{name}")


def write_pytorch_job(spec: JobSpec) -> dict[str, Any]:
    """The manifest."""
    count = spec.nodes if spec.elastic is None else spec.elastic.workers
    kinds = {"Master": 1, "Worker": count - 1}
    metadata = _pod_metadata(spec.elastic) if spec.elastic is not None and spec.elastic.best_effort else {}
    template = {**metadata, "spec": _pod_spec(spec)}
    replicas = {
        kind: {"replicas": number, "restartPolicy": "Never", "template": template}
        for kind, number in kinds.items()
        if number
    }
    policy: dict[str, Any] = {"activeDeadlineSeconds": spec.time_limit_seconds}
    if spec.elastic is not None:
        policy["backoffLimit"] = spec.elastic.backoff_limit
    elif spec.restart is not None:
        policy["backoffLimit"] = spec.restart.max_restarts
    if spec.hold:
        policy["suspend"] = True
    body: dict[str, Any] = {"runPolicy": policy, "pytorchReplicaSpecs": replicas}
    if spec.elastic is not None:
        body["elasticPolicy"] = {"minReplicas": spec.elastic.min_workers, "maxReplicas": spec.elastic.max_workers}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": spec.name}, "spec": body}


def _pod_metadata(elastic: Elastic) -> dict[str, Any]:
    noted = {"annotations": {SUPERVISED: "true"}} if elastic.supervised else {}
    return {"metadata": {"labels": {COMPUTE_QOS: BEST_EFFORT}, **noted}}


def _pod_spec(spec: JobSpec) -> dict[str, Any]:
    arguments = list(plain_arguments(spec.command))
    container: dict[str, Any] = {"name": "pytorch"}
    if spec.image != HOST:
        container["image"] = spec.image
    if arguments != [ENTRYPOINT]:
        container["command"] = arguments
    if spec.env:
        container["env"] = [{"name": name, "value": value} for name, value in spec.env.items()]
    container["resources"] = {"limits": _limits(spec.specs[0])}
    pod: dict[str, Any] = {"containers": [container]}
    if spec.node_selector:
        pod["nodeSelector"] = dict(spec.node_selector)
    if spec.tolerations:
        pod["tolerations"] = [
            {"operator": "Exists"}
            if not each.key
            else {"key": each.key, "operator": "Exists"}
            if each.value is None
            else {"key": each.key, "operator": "Equal", "value": each.value}
            for each in spec.tolerations
        ]
    return pod


def _limits(spec: NodeSpec) -> dict[str, Any]:
    limits: dict[str, Any] = {"cpu": str(spec.cpus), "memory": f"{spec.memory_mib}Mi"} if spec.cpus else {}
    if spec.card_milli >= WHOLE_CARD:
        limits[_GPU] = spec.whole_cards
    return limits
