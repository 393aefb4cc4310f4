"""A CustomJob of Vertex AI, as its API and `gcloud ai custom-jobs create --config` take it.

Source: the REST reference of CustomJob, CustomJobSpec and WorkerPoolSpec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft, take_longest_wait
from cockpit.formats.foreign.kubeargs import escape, expand_references
from cockpit.formats.foreign.pods import take_labels
from cockpit.launch.command import ENTRYPOINT
from cockpit.model.machinetypes import machine_type

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_SECONDS: Final = re.compile(r"(?P<seconds>[0-9]+)(?:\.[0-9]+)?s")
_RESTARTS: Final = 3
"""The number of restarts for a job that is restarted with its workers, since the API gives no number."""
SPOT: Final = "spot"
"""The taint of spot nodes."""
_SPOT: Final = frozenset({"SPOT", "LOW_COST"})
_USUAL: Final = frozenset({"", "STRATEGY_UNSPECIFIED", "ON_DEMAND", "STANDARD"})
_NO_MODEL: Final = "ACCELERATOR_TYPE_UNSPECIFIED"
_SNAKE: Final = re.compile(r"_([a-z])")


def is_custom_job(value: object) -> bool:
    """Return whether a parsed document is a CustomJob, or the specification of one."""
    if not isinstance(value, dict):
        return False
    spec = value.get("jobSpec", value.get("job_spec", value))
    return isinstance(spec, dict) and bool({"workerPoolSpecs", "worker_pool_specs"} & spec.keys())


def read_custom_job(value: Mapping[str, Any]) -> Draft:
    """Read a CustomJob, or its specification alone."""
    whole = camel(value)
    job = whole.pop("jobSpec", None)
    # A file for `gcloud --config` has the content of jobSpec alone.
    spec = job if isinstance(job, dict) else whole
    draft = Draft(str(whole.pop("displayName", "") or ""))
    pools = spec.pop("workerPoolSpecs", [])
    _read_pools(listed(pools), draft)
    _scheduling(dict(spec.pop("scheduling", None) or {}), draft)
    take_labels(whole.pop("labels", None) or {}, "labels", draft)
    for name in {**whole, **spec}:
        draft.lacks(str(name))
    return draft


def listed(pools: object) -> list[Any]:
    """Return the pools; gcloud's reference writes the only one without a list."""
    if isinstance(pools, dict):
        return [pools]
    return pools if isinstance(pools, list) else []


def camel(value: object) -> Any:  # noqa: ANN401 - of any shape
    """Return the object with the API's names of fields, which may be written with underscores too."""
    if isinstance(value, dict):
        named = {str(name): item for name, item in value.items()}
        # Below these are names of users, not of fields.
        plain = {"env", "labels"}
        return {
            _SNAKE.sub(lambda match: match[1].upper(), name): item if name in plain else camel(item)
            for name, item in named.items()
        }
    return [camel(item) for item in value] if isinstance(value, list) else value


def _scheduling(scheduling: dict[str, Any], draft: Draft) -> None:
    """Read the time limit, the longest wait, the retries and the strategy."""
    limit = _seconds(scheduling.pop("timeout", None), "timeout", draft)
    if limit:
        draft.values["time_limit"] = limit
    wait = _seconds(scheduling.pop("maxWaitDuration", None), "maxWaitDuration", draft)
    if wait:
        take_longest_wait(wait, f"scheduling.maxWaitDuration={wait}s", draft, limit)
    never, again = scheduling.pop("disableRetries", None), scheduling.pop("restartJobOnWorkerRestart", None)
    # disableRetries wins in the API, too.
    if again and not never:
        draft.values["restart"] = {"max_restarts": _RESTARTS}
        draft.lacks("scheduling.restartJobOnWorkerRestart", f"the job restarts up to {_RESTARTS} times")
    if never:
        draft.lacks("scheduling.disableRetries", "a job restarts here only if `restart` says so")
    strategy = str(scheduling.pop("strategy", "") or "")
    if strategy in _SPOT:
        # Spot is a choice of the provider's price there; here spot nodes have a taint, which the job has to tolerate.
        draft.values["tolerations"] = [SPOT]
    elif strategy not in _USUAL:
        draft.lacks(f"scheduling.strategy={strategy}")
    for name in scheduling:
        draft.lacks(f"scheduling.{name}")


def _seconds(value: object, name: str, draft: Draft) -> int | None:
    if value is None:
        return None
    match = _SECONDS.fullmatch(str(value))
    if match is None:
        draft.lacks(f"scheduling.{name}={value}", 'is no duration such as "3600s"; left out')
    return int(match["seconds"]) if match is not None else None


def _read_pools(pools: Sequence[Any], draft: Draft) -> None:
    """Read pools into a job with worker pools; what all containers have in common is the job's."""
    draft.values["mode"] = "worker-pools"
    environments: list[dict[str, str]] = []
    read = [
        _pool(pool if isinstance(pool, dict) else {}, index, draft, environments) for index, pool in enumerate(pools)
    ]
    _environment(environments, draft)
    # None: an empty pool, which has no container.
    commands: list[list[str] | None] = [each.pop("run", None) for each in read]
    # The first command is the job's; pools with another one have it themselves.
    draft.run(next((command for command in commands if command), []))
    job_command = draft.values["command"]
    for each, command in zip(read, commands, strict=True):
        if command is not None and (own := _command_of(command)) != job_command:
            each["command"] = own
    draft.values["worker_pools"] = read


def _environment(environments: Sequence[Mapping[str, str]], draft: Draft) -> None:
    """Return the variables, which are the same for all replicas of a job here."""
    for each in environments:
        for name, value in each.items():
            if draft.values.get("env", {}).get(name, value) != value:
                draft.lacks(f"env.{name}={value}", f"all pools get {draft.values['env'][name]}, as the first has it")
            else:
                draft.env(name, value)
    missing = sorted({name for each in environments for name in draft.values.get("env", {}) if name not in each})
    if missing:
        draft.lacks(f"env.{', env.'.join(missing)}", "is set in all pools, also where it was not")


def _command_of(arguments: Sequence[str]) -> str:
    # `Draft.run` makes the text that is compared; a draft of its own, since the notes are not wanted twice.
    probe = Draft()
    probe.run(arguments)
    return str(probe.values["command"])


def _pool(pool: Mapping[str, Any], index: int, draft: Draft, environments: list[dict[str, str]]) -> dict[str, Any]:
    """Return a worker pool for the job file. Its variables are added to `environments`."""
    # The position of a pool is its role, so that a role that is left out has an empty pool.
    if not pool:
        return {}
    left, at = dict(pool), f"workerPoolSpecs[{index}]"
    # The API leaves a 0 away, so that 0 means its default.
    values: dict[str, Any] = {"replicas": draft.whole(left.pop("replicaCount", None), f"{at}.replicaCount") or 1}
    _machine(left.pop("machineSpec", None) or {}, values, f"{at}.machineSpec", draft)
    disk = dict(left.pop("diskSpec", None) or {})
    if kind := disk.pop("bootDiskType", None):
        values["disk_type"] = str(kind)
    if size := disk.pop("bootDiskSizeGb", None):
        values["disk_size"] = draft.whole(size, f"{at}.diskSpec.bootDiskSizeGb")
    container = left.pop("containerSpec", None)
    package = left.pop("pythonPackageSpec", None)
    environments.append(_variables((package or container or {}).get("env") or []))
    values["run"] = _arguments(container or {}, package, values, index, draft)
    for name in (*left, *(f"diskSpec.{each}" for each in disk)):
        draft.lacks(f"{at}.{name}")
    return values


def _machine(machine: Mapping[str, Any], values: dict[str, Any], at: str, draft: Draft) -> None:
    """Set what a replica asks for, by its machine type and accelerators."""
    left = dict(machine)
    name = str(left.pop("machineType", "") or "")
    model = left.pop("acceleratorType", None)
    count = draft.whole(left.pop("acceleratorCount", None), f"{at}.acceleratorCount")
    known = machine_type(name)
    spec: dict[str, Any] = {}
    if known is not None:
        spec = {"cpus": known.cpus, "memory": f"{known.memory_mib}M"}
        # Machine types such as a2-highgpu-1g have cards of their own.
        count, model = (count, model) if count else (known.cards, known.card_model)
    elif name:
        draft.lacks(f"{at}.machineType={name}", "is not known here; write what it has under spec")
    if model and not count and model != _NO_MODEL:
        draft.lacks(f"{at}.acceleratorType={model}", "has no acceleratorCount; left out")
    if count:
        spec["cards"] = count
        if model and model != _NO_MODEL:
            spec["card_models"] = [str(model)]
    if spec:
        values["spec"] = spec
    # A custom type names no bandwidth.
    if name and not name.startswith("custom-"):
        values["machine_type"] = name
    for each in left:
        draft.lacks(f"{at}.{each}")


def _arguments(
    container: Mapping[str, Any], package: Mapping[str, Any] | None, values: dict[str, Any], index: int, draft: Draft
) -> list[str]:
    """Return the command line of a pool's container or package, and set its image."""
    left = dict(package or container)
    if image := left.pop("executorImageUri" if package else "imageUri", None):
        values["image"] = str(image)
    left.pop("env", None)
    arguments = [str(word) for word in left.pop("args", None) or []]
    if package:
        # `pythonModule` names a module to run (v1 PythonPackageSpec).
        arguments = ["python3", "-m", str(left.pop("pythonModule", "")), *arguments]
    else:
        command = [str(word) for word in left.pop("command", None) or []]
        if arguments and not command:
            # Arguments alone are for the ENTRYPOINT of the image, as in Kubernetes.
            command = [ENTRYPOINT]
            draft.lacks(f"workerPoolSpecs[{index}].containerSpec.args", "are those of the image's own ENTRYPOINT")
        arguments = [*command, *arguments]
    for name in left:
        draft.lacks(f"workerPoolSpecs[{index}].{name}")
    return arguments


def _variables(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the variables, with references to earlier ones replaced."""
    values: dict[str, str] = {}
    for each in given:
        values[str(each.get("name", ""))] = expand_references(str(each.get("value", "")), values)
    return values


def write_custom_job(spec: JobSpec) -> dict[str, Any]:
    """Return the job as the API's JSON."""
    from cockpit.launch.pools import custom_job_spec

    job = custom_job_spec(spec)
    for pool in job["workerPoolSpecs"]:
        container = pool.get("containerSpec", {})
        # The image's own ENTRYPOINT runs where the API is given no command.
        if container.get("command") == [ENTRYPOINT]:
            del container["command"]
        # The API replaces `$(NAME)` in values, as Kubernetes does.
        for each in container.get("env", []):
            each["value"] = escape(each["value"])
    scheduling: dict[str, Any] = {"timeout": f"{spec.time_limit_seconds}s"}
    # Only the number that reading assumes: the API has none.
    if spec.restart is not None and spec.restart.max_restarts == _RESTARTS:
        scheduling["restartJobOnWorkerRestart"] = True
    if [each.text for each in spec.tolerations] == [SPOT]:
        scheduling["strategy"] = "SPOT"
    labels = {"labels": dict(spec.labels)} if spec.labels else {}
    return {"displayName": spec.name, "jobSpec": {**job, "scheduling": scheduling}, **labels}
