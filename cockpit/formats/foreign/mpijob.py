"""An MPIJob of Kubeflow. Source: kubeflow.org/v1 and v2beta1, MPIJobSpec.

Its launcher runs the command, and starts processes on the workers: so does the first node of the mode `horovod`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import read_name
from cockpit.formats.foreign.podwriting import metadata_of, run_policy, template_of
from cockpit.formats.foreign.roles import Role, read_policy, read_roles
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.modes import LAUNCHED_BY_FIRST
from cockpit.model.spec import WHOLE_CARD

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_AT: Final = "spec.mpiReplicaSpecs"
_OF_LAUNCHER: Final = ("command", "env")
_NO_CONCERN: Final = frozenset({"sshAuthMountPath", "launcherCreationPolicy"})


def read_mpi_job(value: Mapping[str, Any]) -> Draft:
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    draft.values["mode"] = "horovod"
    roles = read_roles(spec.pop("mpiReplicaSpecs", None) or {}, ("Launcher", "Worker"), _AT, draft)
    by_name = {role.name: role for role in roles if role.replicas}
    _take_roles(by_name.get("Launcher"), by_name.get("Worker"), draft)
    if spec.pop("runLauncherAsWorker", False) and "Worker" in by_name:
        draft.values["nodes"] += 1
    _slots(spec.pop("slotsPerWorker", None), draft)
    policy = dict(spec.pop("runPolicy", None) or {})
    for name in ("cleanPodPolicy", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        if name in spec:
            policy.setdefault(name, spec.pop(name))
    read_policy(policy, roles, "spec.runPolicy", draft)
    if str(which := spec.pop("mpiImplementation", "") or "OpenMPI") != "OpenMPI":
        draft.lacks(f"spec.mpiImplementation={which}", "the image's own is taken, whichever it is")
    for name in spec:
        draft.lacks(f"spec.{name}", *(("there is no SSH here; left out",) if name in _NO_CONCERN else ()))
    return draft


def _take_roles(launcher: Role | None, worker: Role | None, draft: Draft) -> None:
    whole = worker or launcher
    if whole is None:
        draft.run([])
        return
    draft.values |= whole.values
    draft.values["nodes"] = worker.replicas if worker is not None else 1
    if launcher is None or worker is None:
        return
    draft.values["command"] = launcher.values["command"]
    if not launcher.values["command"].startswith(ENTRYPOINT):  # that workers give none is as it should be
        draft.notes = [note for note in draft.notes if not note.startswith("command:")]
    if env := {**worker.values.get("env", {}), **launcher.values.get("env", {})}:
        draft.values["env"] = env
    for name in sorted(launcher.values.keys() - {*_OF_LAUNCHER}):
        if launcher.values[name] != worker.values.get(name):
            draft.lacks(f"{_AT}.Launcher", f"the command runs on the first worker, with the workers' {name}")
    for name, value in launcher.values.get("env", {}).items():
        if worker.values.get("env", {}).get(name, value) != value:
            draft.lacks(f"{_AT}.Worker…env.{name}", "all replicas get the launcher's value")


def _slots(count: object, draft: Draft) -> None:
    cards = (draft.values.get("specs") or [{}])[0].get("cards", 0)
    if count is not None and str(count) != str(max(1, cards)):
        draft.lacks(f"spec.slotsPerWorker={count}", f"a node has a slot for each card, {max(1, cards)} here; left out")


def write_mpi_job(spec: JobSpec) -> dict[str, Any]:
    """The manifest."""
    template = template_of(spec, "mpi")
    waits = {**template, "spec": {**template["spec"], "containers": [dict(template["spec"]["containers"][0])]}}
    if spec.mode in LAUNCHED_BY_FIRST:
        waits["spec"]["containers"][0].pop("command", None)
    replicas = {
        "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": template},
        "Worker": {"replicas": spec.nodes, "restartPolicy": "Never", "template": waits},
    }
    body = {
        "slotsPerWorker": max(1, -(-spec.specs[0].card_milli // WHOLE_CARD)),
        "runPolicy": run_policy(spec),
        "mpiReplicaSpecs": replicas,
    }
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata_of(spec), "spec": body}
