"""The manifest by which a job can be created once more, out of its object as the server has it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from cockpit.backends.kubernetes.mapping.ids import NUMBER
from cockpit.backends.kubernetes.mapping.kube_jobs import JOB_SUSPENDED, JOB_VERDICT, SUSPENDED_BY
from cockpit.model.ids import JobId

_KEPT = ("name", "namespace", "labels", "annotations")
_OF_THE_JOB = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)
"""Labels by which the server tells the pods of one Job from those of all others (JobSpec, manualSelector)."""
_OF_ITS_PAST = frozenset({JOB_SUSPENDED, JOB_VERDICT, SUSPENDED_BY})
"""Annotations that say how a TrainingJob ended, with which a new one would not begin."""
_ADDED_VOLUME = "kube-api-access-"
"""Beginning of the name of the volume with a service account's token, which the server adds to each pod anew."""


def recreated(present: Mapping[str, Any], number: JobId) -> dict[str, Any]:
    """Return the manifest of the same job without what the server has added. `number`: the one that it keeps."""
    meta = {name: deepcopy(present["metadata"][name]) for name in _KEPT if present["metadata"].get(name)}
    notes = {name: value for name, value in meta.get("annotations", {}).items() if name not in _OF_ITS_PAST}
    meta["annotations"] = {**notes, NUMBER: str(number)}
    spec = deepcopy(dict(present["spec"]))
    if present["kind"] == "Job" and str(present["apiVersion"]).startswith("batch/"):
        _forget_selector(meta, spec)
    elif present["kind"] == "Pod":
        _forget_node(spec)
    return {"apiVersion": present["apiVersion"], "kind": present["kind"], "metadata": meta, "spec": spec}


def _forget_selector(meta: dict[str, Any], spec: dict[str, Any]) -> None:
    if spec.get("manualSelector"):
        return
    spec.pop("selector", None)
    template = (spec.get("template") or {}).get("metadata") or {}
    for labels in (meta.get("labels") or {}, template.get("labels") or {}):
        for name in _OF_THE_JOB:
            labels.pop(name, None)


def _forget_node(spec: dict[str, Any]) -> None:
    for name in ("nodeName", "ephemeralContainers"):
        spec.pop(name, None)
    spec["volumes"] = [each for each in spec.get("volumes") or () if not _is_added(each)]
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        container["volumeMounts"] = [each for each in container.get("volumeMounts") or () if not _is_added(each)]


def _is_added(named: Mapping[str, Any]) -> bool:
    return str(named.get("name", "")).startswith(_ADDED_VOLUME)
