"""A TrainingJob of Alibaba's elastic training operator, which `arena submit etjob` creates.

Source: kai.alibabacloud.com/v1alpha1, TrainingJobSpec; arena's chart `etjob` for what it writes beside that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cockpit.formats.foreign.draft import Draft, runnable
from cockpit.formats.foreign.kubeargs import escape, expand_references
from cockpit.formats.foreign.kubernetes_jobs import take_slots
from cockpit.formats.foreign.pods import read_name
from cockpit.formats.foreign.podwriting import deadline_of, metadata_of, template_of
from cockpit.formats.foreign.roles import Role, read_roles
from cockpit.formats.foreign.torchrun import without_nodes
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.shellform import without_patterns
from cockpit.model.resilience import Elastic, WorkerRestart
from cockpit.model.spec import WHOLE_CARD, Mode

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

SPOT: Final = "job-supervisor.kube-ai.io/spot-instance"
MAX_WAIT: Final = "job-supervisor.kube-ai.io/max-wait-time"
"""Annotation with the longest time, in seconds, that the job waits for its least number of workers."""
_AT: Final = "spec.etReplicaSpecs"
_BACKOFF_LIMIT: Final = 6
"""The definition's own default."""
_GIVEN: Final = frozenset({"workers", "gpus", "minWorkers", "maxWorkers"})
"""Variables that arena sets for the command, and cockpit for the launcher of any elastic job."""
_SHELL: Final = ("sh", "-c")


def read_training_job(value: Mapping[str, Any]) -> Draft:
    """Read a TrainingJob."""
    spec, draft = dict(value.get("spec") or {}), Draft()
    draft.values["mode"] = "horovod"
    elastic = _supervision(dict(value.get("metadata") or {}), draft)
    # arena's older definition has the names of the roles in capitals.
    replicas = {str(name).lower(): dict(role or {}) for name, role in (spec.pop("etReplicaSpecs", None) or {}).items()}
    for name, field in (("minReplicas", "min_workers"), ("maxReplicas", "max_workers")):
        if (count := replicas.get("worker", {}).pop(name, None)) is not None:
            elastic[field] = draft.whole(count, f"{_AT}.worker.{name}")
    by_name = {role.name: role for role in read_roles(replicas, ("launcher", "worker"), _AT, draft)}
    launcher, worker = by_name.get("launcher"), by_name.get("worker")
    _take_workers(worker, elastic, draft)
    _take_launcher(launcher, _command_text(replicas.get("launcher", {}), launcher), elastic, draft)
    take_slots(spec.pop("slotsPerWorker", None), draft)
    elastic["job_restart_policy"] = str(spec.pop("restartPolicy", None) or "Never")
    elastic["backoff_limit"] = draft.whole(spec.pop("backoffLimit", None), "spec.backoffLimit", missing=_BACKOFF_LIMIT)
    draft.values["elastic"] = elastic
    for name in spec:
        draft.lacks(f"spec.{name}", *(("there is no SSH here; left out",) if name == "launcherAttachMode" else ()))
    return draft


def _supervision(metadata: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Read the metadata of the job; return what its annotations for the job supervisor say of an elastic job."""
    notes = dict(metadata.pop("annotations", None) or {})
    elastic: dict[str, Any] = {}
    if str(notes.pop(SPOT, "")).lower() == "true":
        elastic["spot"] = True
    if (seconds := notes.pop(MAX_WAIT, None)) is not None:
        elastic["max_wait_time"] = draft.whole(seconds, f"metadata.annotations.{MAX_WAIT}")
    read_name({**metadata, "annotations": notes}, draft)
    return elastic


def _take_workers(worker: Role | None, elastic: dict[str, Any], draft: Draft) -> None:
    """Give the job what the workers have: their number, size, image and nodes."""
    count = worker.replicas if worker is not None else 1
    # TrainingJobSpec: without bounds the least number is that of the replicas, and the most is not limited.
    elastic.setdefault("min_workers", count)
    elastic["workers"] = count
    if "max_workers" not in elastic:
        draft.lacks(f"{_AT}.worker.maxReplicas", "is missing; the job grows to its replicas only")
    if worker is None:
        draft.run([])
        return
    elastic |= worker.values.pop("elastic", {})
    elastic["worker_restart_policy"] = worker.restart_policy
    labels = {**draft.values.get("labels", {}), **worker.values.get("labels", {})}
    draft.values |= {**worker.values, **({"labels": labels} if labels else {})}


def _take_launcher(launcher: Role | None, text: str, elastic: dict[str, Any], draft: Draft) -> None:
    """Give the job the launcher's command, variables and nodes. `text`: what its shell runs; empty: it has none."""
    if launcher is None:
        draft.lacks(f"{_AT}.launcher", "is missing; the workers' command runs in a launcher")
        return
    draft.values["command"] = runnable(text) if text else launcher.values["command"]
    draft.values["mode"] = "deepspeed" if "deepspeed" in str(draft.values["command"]).split() else "horovod"
    if not draft.values["command"].startswith(ENTRYPOINT):  # that workers give none is as it should be
        draft.notes = [note for note in draft.notes if not note.startswith("command:")]
    env = {**draft.values.pop("env", {}), **launcher.values.get("env", {})}
    if own := {name: value for name, value in env.items() if name not in _GIVEN}:
        draft.values["env"] = own
    selector = launcher.values.get("node_selector")
    if selector and draft.values["mode"] == "horovod":
        elastic["launcher_selector"] = selector
    elif selector:
        draft.lacks(f"{_AT}.launcher…nodeSelector", "the command runs on the first worker, wherever that is")
    if seconds := launcher.values.get("time_limit"):
        draft.values["time_limit"] = seconds
    _note_launcher(launcher, draft)


def _note_launcher(launcher: Role, draft: Draft) -> None:
    """Note what the launcher has and cannot have here."""
    if launcher.values.get("specs"):
        draft.lacks(f"{_AT}.launcher…resources", "the launcher may use one CPU and 1 GiB, and has no cards; left out")
    for name in sorted(launcher.values.keys() - {"command", "env", "node_selector", "specs", "time_limit", "elastic"}):
        if launcher.values[name] != draft.values.get(name) and name != "labels":
            draft.lacks(f"{_AT}.launcher", f"the launcher gets the workers' {name}")
    if launcher.restart_policy != "Never":
        draft.lacks(
            f"{_AT}.launcher.restartPolicy={launcher.restart_policy}",
            "the launcher starts again with the job only; `job_restart_policy` says when",
        )


def _command_text(replica: Mapping[str, Any], launcher: Role | None) -> str:
    """Return the text that the launcher's container gives to a shell, as arena writes its commands; else nothing."""
    pod = (replica.get("template") or {}).get("spec") or {}
    container: Mapping[str, Any] = next(iter(pod.get("containers") or ()), {})
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if launcher is None or tuple(words[:-1]) != _SHELL:
        return ""
    return expand_references(str(words[-1]), launcher.values.get("env", {}))


def write_training_job(spec: JobSpec) -> dict[str, Any]:
    """Return the manifest of a TrainingJob. A job that is not elastic gets equal bounds for its workers."""
    elastic = spec.elastic or Elastic(workers=spec.nodes, min_workers=spec.nodes, max_workers=spec.nodes)
    notes = {SPOT: "true"} if elastic.spot else {}
    body: dict[str, Any] = {
        "restartPolicy": str(elastic.job_restart_policy),
        "backoffLimit": elastic.backoff_limit,
        "slotsPerWorker": max(1, -(-spec.specs[0].card_milli // WHOLE_CARD)),
        "etReplicaSpecs": {
            "launcher": {"replicas": 1, "template": _launcher_template(spec, elastic)},
            "worker": {
                "replicas": elastic.workers,
                "minReplicas": elastic.min_workers,
                "maxReplicas": elastic.max_workers,
                **_restarts(elastic.worker_restart_policy),
                "template": _worker_template(spec),
            },
        },
    }
    metadata = {**metadata_of(spec), "annotations": {**notes, MAX_WAIT: str(elastic.max_wait_seconds)}}
    return {"apiVersion": "kai.alibabacloud.com/v1alpha1", "kind": "TrainingJob", "metadata": metadata, "spec": body}


def _restarts(policy: WorkerRestart) -> dict[str, str]:
    return {} if policy is WorkerRestart.NEVER else {"restartPolicy": str(policy)}


def _launcher_template(spec: JobSpec, elastic: Elastic) -> dict[str, Any]:
    """Return the launcher's pod: without cards, with a shell that runs the command, and with arena's variables."""
    given = {
        "workers": elastic.workers,
        "gpus": max(1, spec.specs[0].card_milli // WHOLE_CARD),
        "minWorkers": elastic.min_workers,
        "maxWorkers": elastic.max_workers,
    }
    own = replace(spec, node_selector=dict(elastic.launcher_selector))
    template = template_of(own, "et", each=replace(spec.specs[0], card_milli=0, card_models=()))
    pod = template["spec"]
    container = pod["containers"][0]
    if spec.command.split()[:1] != [ENTRYPOINT]:
        text = without_patterns(without_nodes(spec.command))
        container.pop("args", None)
        container["command"] = [*_SHELL, escape(text)]
    container["env"] = [*container.get("env", ()), *({"name": name, "value": str(n)} for name, n in given.items())]
    # The job itself has no time limit.
    pod |= deadline_of(spec)
    return template


def _worker_template(spec: JobSpec) -> dict[str, Any]:
    template = template_of(spec, "et")
    # Workers wait for the launcher's processes: they run the image's sshd and not the command.
    for name in ("command", "args"):
        template["spec"]["containers"][0].pop(name, None)
    return template


def is_for_elastic_training(spec: JobSpec) -> bool:
    """Return whether a TrainingJob can run the job: its launcher starts the processes of workers that may change."""
    return spec.elastic is not None and spec.mode in {Mode.HOROVOD, Mode.DEEPSPEED}
