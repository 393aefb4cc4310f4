"""A Job of Kubernetes. Source: batch/v1 JobSpec. Completions are the tasks of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import read_name, read_template
from cockpit.formats.foreign.podwriting import metadata_of, template_of

if TYPE_CHECKING:
    from cockpit.model.spec import Array, JobSpec

_INDEX: Final = "JOB_COMPLETION_INDEX"
_TASK: Final = f"env {_INDEX}=${{SLURM_ARRAY_TASK_ID}} "
"""Gives a task its index by the name that it has in Kubernetes."""


_DEFAULT_RETRIES = 6
"""What Kubernetes takes for a missing `backoffLimit`, unless a limit for each index is given."""


def read_job(value: Mapping[str, Any]) -> Draft:
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    template = dict(spec.pop("template", None) or {})
    pod = dict(template.get("spec") or {})
    restarts = pod.get("restartPolicy") == "OnFailure"
    if restarts:
        del pod["restartPolicy"]
    read_template({**template, "spec": pod}, "spec", draft, {_INDEX})
    retries = spec.pop("backoffLimit", None)
    if retries is None:
        retries = 0 if spec.get("backoffLimitPerIndex") is not None else _DEFAULT_RETRIES
    if int(retries):
        draft.values["restart"] = {"max_restarts": int(retries)}
    elif restarts:
        draft.lacks("spec.template.spec.restartPolicy=OnFailure", "`restart` says how often the job begins again")
    if (seconds := spec.pop("activeDeadlineSeconds", None)) is not None:
        draft.values["time_limit"] = int(seconds)
    if spec.pop("suspend", False):
        draft.values["hold"] = True
    _take_completions(spec, draft)
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def _take_completions(spec: dict[str, Any], draft: Draft) -> None:
    mode = str(spec.pop("completionMode", "") or "NonIndexed")
    index, task = f"${{{_INDEX}}}", "${SLURM_ARRAY_TASK_ID}"
    completions, parallelism = spec.pop("completions", None), spec.pop("parallelism", None)
    at_once = 1 if parallelism is None else int(parallelism)
    if completions is None and at_once > 1:
        draft.lacks(f"spec.parallelism={at_once}", "without completions one success ends the others; here all run on")
    count = int(completions) if completions is not None else max(1, at_once)
    if parallelism is not None and not at_once:
        draft.values["hold"] = True
    if mode == "Indexed":
        draft.values["command"] = _TASK + draft.values["command"].replace(index, task)
    if count > 1 or mode == "Indexed":
        bound = f"%{at_once}" if 0 < at_once < count else ""
        draft.values["array"] = f"0-{count - 1}{bound}"


def write_job(spec: JobSpec) -> dict[str, Any]:
    """The manifest."""
    body: dict[str, Any] = {
        "activeDeadlineSeconds": spec.time_limit_seconds,
        "backoffLimit": spec.restart.max_restarts if spec.restart is not None else 0,
    }
    if spec.hold:
        body["suspend"] = True
    command = spec.command
    if spec.array is not None:
        body |= _completions(spec.array, indexed=command.startswith(_TASK))
        command = command.removeprefix(_TASK).replace("${SLURM_ARRAY_TASK_ID}", f"${{{_INDEX}}}")
    template = template_of(spec, "main", {_INDEX}, command=command)
    template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata_of(spec),
        "spec": {**body, "template": template},
    }


def _completions(array: Array, *, indexed: bool) -> dict[str, Any]:
    count = len(array.indices)
    found = {"completions": count, "parallelism": array.at_once or count}
    return {**found, "completionMode": "Indexed"} if indexed else found
