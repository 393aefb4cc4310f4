"""A Job of Volcano. Source: batch.volcano.sh/v1alpha1, JobSpec and TaskSpec.

Its plugins say which framework its tasks are; the first task is the one that decides, as the master of that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.podresources import take_folder
from cockpit.formats.foreign.pods import read_name, take_priority_class, take_queue
from cockpit.formats.foreign.podwriting import deadline_of, metadata_of, template_of
from cockpit.formats.foreign.pytorchjob import GIVEN, take_torchrun
from cockpit.formats.foreign.roles import Role, merge, read_roles
from cockpit.formats.foreign.torchrun import without_nodes
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.modes import LAUNCHED_BY_FIRST
from cockpit.model.spec import PARAMETER_SERVER, Mode

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_PLUGINS: Final = {"pytorch": "pytorch", "tensorflow": "tensorflow", "mpi": "horovod"}
_NEEDLESS: Final = frozenset({"ssh", "svc", "env"})
"""Plugins by which replicas reach each other: here they always do."""
_SERVERS: Final = frozenset({"ps", "parameter-server"})
_OF_PLUGINS: Final = re.compile(r"\b(?:VC|VK)_[A-Z0-9_]+\b|/etc/volcano/[\w./-]+")
"""The variables that the plugins `env` and `svc` give to each container."""
_OF_MASTER: Final = ("command", "env")


def read_volcano_job(value: Mapping[str, Any]) -> Draft:
    """Read a Job of Volcano."""
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    roles = _tasks(spec.pop("tasks", None) or [], draft)
    mode = _mode(spec.pop("plugins", None) or {}, roles, draft)
    if mode:
        draft.values["mode"] = mode
    if retries := draft.whole(spec.pop("maxRetry", None), "spec.maxRetry"):
        draft.values["restart"] = {"max_restarts": retries}
    _take_roles(roles, mode, draft)
    take_queue(spec.pop("queue", None), "spec.queue", draft)
    take_priority_class(spec.pop("priorityClassName", None), "spec.priorityClassName", draft)
    _volumes(spec.pop("volumes", None) or [], draft)
    _least(spec, roles, draft)
    take_torchrun(draft)
    _note_plugins_gifts(mode, draft)
    for name in spec:
        draft.lacks(f"spec.{name}", *(("cockpit schedules; left out",) if name == "schedulerName" else ()))
    return draft


def _note_plugins_gifts(mode: str, draft: Draft) -> None:
    for name in dict.fromkeys(_OF_PLUGINS.findall(str(draft.values.get("command", "")))):
        # That one cockpit sets, too.
        if not (name == "VK_TASK_INDEX" and mode == "tensorflow"):
            draft.lacks(name, "is set by a plugin of Volcano, which cockpit lacks; docs/launch.md has what a mode sets")


def _tasks(tasks: list[Mapping[str, Any]], draft: Draft) -> list[Role]:
    """Return the tasks as roles, without those that have no replicas."""
    named = {str(task.get("name", "") or index): dict(task) for index, task in enumerate(tasks)}
    for task in named.values():
        task.pop("name", None)
        template = dict(task.get("template") or {})
        pod = dict(template.get("spec") or {})
        # Volcano has the policy in the pod; `read_roles` expects it where the training operator has it.
        task["restartPolicy"] = pod.pop("restartPolicy", None)
        task["template"] = {**template, "spec": pod}
        # All replicas together, as every job here starts.
        if task.get("minAvailable") == task.get("replicas"):
            task.pop("minAvailable", None)
    return [role for role in read_roles(named, list(named), "spec.tasks", draft, GIVEN) if role.replicas]


def _mode(plugins: Mapping[str, Any], roles: list[Role], draft: Draft) -> str:
    """Return the mode by the plugins, else by the command or the names of tasks."""
    by_plugin = next((mode for name, mode in _PLUGINS.items() if name in plugins), "")
    for name, arguments in plugins.items():
        if name not in _PLUGINS and name not in _NEEDLESS:
            draft.lacks(f"spec.plugins.{name}")
        elif arguments and name not in _NEEDLESS:
            draft.lacks(f"spec.plugins.{name}", "its arguments have no counterpart here; left out")
    count = sum(role.replicas for role in roles)
    # A single replica needs no mode: its command runs as it is.
    if by_plugin or count <= 1:
        return by_plugin
    # Many manifests come without plugins; the command and the names of the tasks tell the framework, too.
    if any(word in str(role.values.get("command", "")) for role in roles for word in ("mpirun", "mpiexec")):
        return "horovod"
    if any(role.name in _SERVERS for role in roles):
        return "tensorflow"
    draft.lacks("mode", f"no plugin names a framework; pytorch is used, which runs the command on {count} nodes")
    return "pytorch"


def _take_roles(roles: list[Role], mode: str, draft: Draft) -> None:
    """Set nodes, parameter servers and the command from the roles."""
    if not roles:
        draft.run([])
        return
    # In any other mode a task of this name is one like the others.
    servers = [role for role in roles if role.name in _SERVERS] if mode == "tensorflow" else []
    others = [role for role in roles if role not in servers] or roles
    if servers:
        draft.values["parameter_servers"] = sum(role.replicas for role in servers)
        if any(role.values.get("specs") for role in servers):
            size = f"{PARAMETER_SERVER.cpus} CPU and {PARAMETER_SERVER.memory_mib} MiB"
            draft.lacks(f"spec.tasks.{servers[0].name}…resources", f"a parameter server has {size}")
    first, *rest = others
    if mode == "horovod" and rest:
        _take_launcher(first, rest, draft)
    else:
        merge([*others, *servers], "spec.tasks", draft, besides=("specs",) if servers else ())
        # The job has the workers' size; servers have one of their own, as noted above.
        if servers and "specs" in first.values:
            draft.values["specs"] = first.values["specs"]
        if (count := sum(role.replicas for role in others)) > 1:
            draft.values["nodes"] = count
    for role in roles:
        if role.restart_policy not in {"Never", "OnFailure"} or (
            role.restart_policy == "OnFailure" and "restart" not in draft.values
        ):
            draft.lacks(
                f"spec.tasks.{role.name}…restartPolicy={role.restart_policy}", "no container restarts by itself"
            )


def _take_launcher(launcher: Role, workers: list[Role], draft: Draft) -> None:
    """Give the launcher's command to the workers' nodes."""
    merge(workers, "spec.tasks", draft)
    draft.values["nodes"] = sum(role.replicas for role in workers)
    draft.values["command"] = launcher.values["command"]
    if not str(launcher.values["command"]).startswith(ENTRYPOINT):
        # Workers without a command are usual: they wait for the launcher.
        draft.notes = [note for note in draft.notes if not note.startswith("command:")]
    if env := {**draft.values.get("env", {}), **launcher.values.get("env", {})}:
        draft.values["env"] = env
    for name in sorted(launcher.values.keys() - {*_OF_MASTER}):
        if launcher.values[name] != workers[0].values.get(name):
            draft.lacks(
                f"spec.tasks.{launcher.name}", f"the command runs on the first worker, with the workers' {name}"
            )


def _volumes(volumes: list[Mapping[str, Any]], draft: Draft) -> None:
    for index, each in enumerate(volumes):
        at = f"spec.volumes[{index}]"
        if name := each.get("volumeClaimName"):
            take_folder(str(name), "", str(each.get("mountPath", "")), at, draft)
            draft.lacks(f"{at}.volumeClaimName", "is the volume of that name in the catalogue")
        else:
            draft.lacks(at)


def _least(spec: dict[str, Any], roles: list[Role], draft: Draft) -> None:
    least, count = spec.pop("minAvailable", None), sum(role.replicas for role in roles)
    # 0 stands for a missing field, for which Volcano takes the sum of the replicas.
    if draft.whole(least, "spec.minAvailable") not in {0, count}:
        draft.lacks(f"spec.minAvailable={least}", f"all {count} replicas start together or not at all")


def write_volcano_job(spec: JobSpec) -> dict[str, Any]:
    """Return the manifest of a Job (batch.volcano.sh/v1alpha1)."""
    tasks = _written_tasks(spec)
    # minAvailable is Volcano's gang: all replicas, as every job here starts.
    body: dict[str, Any] = {"schedulerName": "volcano", "minAvailable": sum(task["replicas"] for task in tasks)}
    plugin = next((name for name, mode in _PLUGINS.items() if mode == spec.mode), "")
    if plugin:
        # svc gives the pods host names, by which the framework's plugin lets them find each other.
        body["plugins"] = {plugin: [], "svc": []}
    if spec.partitions:
        body["queue"] = spec.partitions[0]
    body["maxRetry"] = spec.restart.max_restarts if spec.restart is not None else 0
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata_of(spec),
        "spec": {**body, "tasks": tasks},
    }


def _written_tasks(spec: JobSpec) -> list[dict[str, Any]]:
    """Return the tasks of a job, by its mode."""
    template = template_of(spec, "main", GIVEN, command=without_nodes(spec.command))
    # A Job of Volcano has no time limit of its own, so each pod gets it.
    template["spec"] |= deadline_of(spec)
    if spec.mode in LAUNCHED_BY_FIRST:
        # A copy down to the container, whose command is removed: the launcher has the same template.
        waiting = {**template, "spec": {**template["spec"], "containers": [dict(template["spec"]["containers"][0])]}}
        waiting["spec"]["containers"][0].pop("command", None)
        return [_task("master", 1, template), _task("worker", spec.nodes, waiting)]
    if spec.mode is Mode.TENSORFLOW:
        servers = [_task("ps", spec.parameter_servers, template)] if spec.parameter_servers else []
        return [_task("worker", spec.nodes, template), *servers]
    rest = [_task("worker", spec.nodes - 1, template)] if spec.nodes > 1 else []
    return [_task("master", 1, template), *rest]


def _task(name: str, replicas: int, template: dict[str, Any]) -> dict[str, Any]:
    never = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    return {"name": name, "replicas": replicas, "template": never}
