"""The pod template of a Kubernetes manifest as part of a job. Source: core/v1 PodTemplateSpec, PodSpec and Container.

Of several containers the first is the job's. A field that has no counterpart is named in the draft's notes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from cockpit.formats.foreign.draft import Draft, joined
from cockpit.formats.foreign.kubeargs import command_of, expand_references
from cockpit.formats.foreign.podresources import read_resources, read_volumes
from cockpit.launch.checks import COMPUTE_QOS, SUPERVISED
from cockpit.launch.command import ENTRYPOINT
from cockpit.model.labels import key_error, value_error
from cockpit.model.spec import PriorityWord

BEST_EFFORT: Final = "best-effort"
HOSTNAME: Final = "kubernetes.io/hostname"
_REASONS: Final[Mapping[str, str]] = {
    "imagePullPolicy": "nothing is ever pulled; left out",
    "imagePullSecrets": "nothing is ever pulled; left out",
    "ports": "every port is open between the replicas of a job, and none to others; left out",
    "workingDir": "the command starts in the job's own folder; left out",
    "envFrom": "its values are in the cluster; write them under env",
    "initContainers": "the script hooks.before_start runs before a command; left out",
    "schedulerName": "cockpit schedules; left out",
    "hostNetwork": "a job of one replica shares the machine's network, any other has its own; left out",
}


def read_name(metadata: Mapping[str, Any], draft: Draft) -> None:
    """Read the metadata of the whole job: name, namespace, labels; what is left of it is noted."""
    # Each known field is removed from the copy. What is left has no counterpart, and each is noted.
    left = dict(metadata)
    if name := str(left.pop("name", "") or left.pop("generateName", "").rstrip("-")):
        draft.values["name"] = name
    take_namespace(str(left.pop("namespace", "") or ""), "metadata.namespace", draft)
    take_labels(left.pop("labels", None) or {}, "metadata.labels", draft)
    for name in left.pop("annotations", None) or {}:
        draft.lacks(f"metadata.annotations.{name}")
    for name in left:
        draft.lacks(f"metadata.{name}")


def take_namespace(namespace: str, at: str, draft: Draft) -> None:
    """Take a namespace as the project; the default namespace means none."""
    # Kubernetes puts objects without a namespace there, so it says nothing about a project.
    if namespace == "default":
        draft.lacks(at, "is the default one; the project is the submitter's own")
    elif namespace:
        draft.values["project"] = namespace
        draft.lacks(at, f"is taken for the project {namespace}")


def take_labels(labels: Mapping[str, Any], at: str, draft: Draft) -> None:
    """Add labels to those of the job; note each that cannot be written as a label of cockpit."""
    for key, value in labels.items():
        if wrong := key_error(str(key)) or value_error(str(value)):
            draft.lacks(f"{at}.{key}={value}", f"{wrong}; left out")
        else:
            draft.values.setdefault("labels", {})[str(key)] = str(value)


def take_priority_class(name: object, at: str, draft: Draft) -> None:
    """Take a priority class that is called as a priority here; note any other."""
    if str(name) in {*PriorityWord}:
        draft.values["priority"] = str(name)
    elif name:
        draft.lacks(
            at if "=" in at else f"{at}={name}", f"no priority is called so; choose one of {', '.join(PriorityWord)}"
        )


def take_queue(name: object, at: str, draft: Draft) -> None:
    """Take a queue as the partition; the default queue means none."""
    if name and str(name) != "default":
        draft.values["partitions"] = [str(name)]
    elif name:
        draft.lacks(at, "is the default one; the partition is the cluster's default")


def read_template(template: Mapping[str, Any], at: str, draft: Draft, given: Collection[str] = ()) -> None:
    """Read a pod template.

    `given`: names of variables that the job's mode sets, which `$(NAME)` may mean.
    """
    for name in template:
        if name not in {"metadata", "spec"}:
            draft.lacks(f"{at}.template.{name}")
    _metadata(dict(template.get("metadata") or {}), at, draft)
    pod = dict(template.get("spec") or {})
    containers = pod.pop("containers", None) or [{}]
    for extra in containers[1:]:
        draft.lacks(f"{at}…containers[{extra.get('name', '')}]")
    read_container(dict(containers[0]), at, draft, given, volumes=pod.pop("volumes", None) or ())
    _place(pod, at, draft)
    if (grace := pod.pop("terminationGracePeriodSeconds", None)) is not None:
        draft.values["grace_period"] = draft.whole(grace, f"{at}.template.spec.terminationGracePeriodSeconds")
    if (seconds := pod.pop("activeDeadlineSeconds", None)) is not None:
        draft.values["time_limit"] = draft.whole(seconds, f"{at}.template.spec.activeDeadlineSeconds")
    take_priority_class(pod.pop("priorityClassName", None), f"{at}.template.spec.priorityClassName", draft)
    # A job here starts its command once unless it says otherwise, so this policy alone needs no note.
    if pod.get("restartPolicy") == "Never":
        del pod["restartPolicy"]
    for name in pod:
        draft.lacks(f"{at}.template.spec.{name}", *_because(name))


def read_container(
    container: dict[str, Any], at: str, draft: Draft, given: Collection[str] = (), volumes: Collection[Any] = ()
) -> None:
    """Read image, variables, command, resources and mounts of a container."""
    container.pop("name", None)
    if image := container.pop("image", None):
        draft.values["image"] = str(image)
    names = _environment(container.pop("env", None) or [], at, draft)
    take_command(container.pop("command", None), container.pop("args", None), draft, {*names, *given})
    read_resources(container.pop("resources", None) or {}, f"{at}…resources", draft)
    read_volumes(volumes, container.pop("volumeMounts", None) or (), at, draft)
    for name in container:
        draft.lacks(f"{at}…containers[0].{name}", *_because(name))


def take_command(command: object, args: object, draft: Draft, known: Collection[str]) -> None:
    """Set the job's command from a container's command and arguments.

    `known`: the names that `$(NAME)` may mean. Without a command the image's own ENTRYPOINT runs, with the arguments or
    else its CMD.
    """
    program, arguments = _words(command), _words(args)
    if not program:
        program = [ENTRYPOINT]
        draft.lacks("command", f"nothing is given; `{ENTRYPOINT}` is written for the ENTRYPOINT of the image")
    words = [*program, *arguments]
    plain = command_of(words, ())
    text = command_of(words, known)
    # Without a known variable in it each word stays one literal argument, quoted as needed; `$$` is a `$` then.
    draft.values["command"] = joined([expand_references(word, {}) for word in words]) if text == plain else text


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(word) for word in value] if isinstance(value, list) else []


def _environment(given: Collection[Mapping[str, Any]], at: str, draft: Draft) -> list[str]:
    """Return the names of all variables; those with a value become the job's, with earlier ones expanded in it."""
    values: dict[str, str] = {}
    names = []
    for each in given:
        name = str(each.get("name", ""))
        names.append(name)
        if each.get("valueFrom") is not None:
            draft.lacks(f"{at}…env.{name}", "its value is a reference into the cluster; left out")
            continue
        value = each.get("value")
        # YAML readers make true of an unquoted `true`; a container gets the lower-case word.
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        # core/v1 EnvVar: `$(NAME)` means variables before this one only, so that a single pass is enough.
        values[name] = expand_references(text, values)
        draft.env(name, values[name])
    return names


def _metadata(metadata: dict[str, Any], at: str, draft: Draft) -> None:
    """Read the label and the annotation that say how its pods share their nodes, and note what else there is."""
    labels, notes = dict(metadata.pop("labels", None) or {}), dict(metadata.pop("annotations", None) or {})
    # Removed here, so that it does not become a label of the job, too.
    if labels.get(COMPUTE_QOS) == BEST_EFFORT:
        del labels[COMPUTE_QOS]
        supervised = str(notes.pop(SUPERVISED, "")).lower() == "true"
        draft.values["elastic"] = {"best_effort": True, **({"supervised": True} if supervised else {})}
    take_labels(labels, f"{at}.template.metadata.labels", draft)
    for name in notes:
        draft.lacks(f"{at}.template.metadata.annotations.{name}")
    for name in metadata:
        draft.lacks(f"{at}.template.metadata.{name}")


def _place(pod: dict[str, Any], at: str, draft: Draft) -> None:
    """Read which nodes the pod accepts."""
    if selector := pod.pop("nodeSelector", None):
        draft.values["node_selector"] = {str(name): str(item) for name, item in selector.items()}
    # Kubernetes' scheduler is bypassed by a nodeName; here the job waits for that node like any other job.
    if name := pod.pop("nodeName", None):
        draft.values["node_names"] = [str(name)]
    for index, each in enumerate(pod.pop("tolerations", None) or ()):
        draft.values.setdefault("tolerations", []).append(_toleration(each))
        # An absent effect tolerates all effects.
        if each.get("effect", "NoSchedule") != "NoSchedule":
            draft.lacks(f"{at}…tolerations[{index}].effect={each['effect']}", "a taint keeps jobs off; taken for that")
        if "tolerationSeconds" in each:
            draft.lacks(f"{at}…tolerations[{index}].tolerationSeconds")
    _affinity(dict(pod.pop("affinity", None) or {}), f"{at}.template.spec.affinity", draft)


def _toleration(each: Mapping[str, Any]) -> str:
    key, value = each.get("key", ""), each.get("value")
    # core/v1 Toleration: `Exists` ignores the value, and without a key it tolerates every taint.
    exists = value is None or each.get("operator") == "Exists"
    return "*" if not key else str(key) if exists else f"{key}={value}"


def _affinity(affinity: dict[str, Any], at: str, draft: Draft) -> None:
    """Read which nodes the affinity requires, as far as labels and names can say it."""
    node = dict(affinity.pop("nodeAffinity", None) or {})
    required = dict(node.pop("requiredDuringSchedulingIgnoredDuringExecution", None) or {})
    terms = required.get("nodeSelectorTerms") or []
    # Several terms are alternatives (OR), and labels of a job must all hold (AND); only one term can be taken.
    carried = len(terms) == 1 and all(_take_expression(each, draft) for each in _expressions(terms[0]))
    if terms and not carried:
        draft.lacks(f"{at}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    for name in node:
        draft.lacks(f"{at}.nodeAffinity.{name}")
    for name in affinity:
        draft.lacks(f"{at}.{name}")


def _expressions(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    fields = [{**each, "key": HOSTNAME} for each in term.get("matchFields") or () if each.get("key") == "metadata.name"]
    others = [each for each in term.get("matchFields") or () if each.get("key") != "metadata.name"]
    return [*(term.get("matchExpressions") or ()), *fields, *({**each, "operator": ""} for each in others)]


def _take_expression(each: Mapping[str, Any], draft: Draft) -> bool:
    """Read one expression, and return whether a label or names of nodes express the same."""
    key, values = str(each.get("key", "")), [str(value) for value in each.get("values") or ()]
    # NotIn, Exists, Gt and the rest exclude or compare nodes, and a node selector only names values.
    if each.get("operator") != "In" or not values:
        return False
    if key == HOSTNAME:
        draft.values["node_names"] = values
        return True
    if len(values) == 1:
        draft.values.setdefault("node_selector", {})[key] = values[0]
    return len(values) == 1


def _because(name: str) -> tuple[str, ...]:
    return (_REASONS[name],) if name in _REASONS else ()
