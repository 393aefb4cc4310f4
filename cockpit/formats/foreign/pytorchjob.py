"""A PyTorchJob of the Kubeflow training operator. Source: kubeflow.org/v1, PyTorchJobSpec and ElasticPolicy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import read_name
from cockpit.formats.foreign.podwriting import metadata_of, run_policy, template_of
from cockpit.formats.foreign.roles import merge, read_policy, read_roles
from cockpit.formats.foreign.torchrun import (
    SLOTS,
    elastic_launcher,
    lacks_process_count,
    plain_launcher,
    with_nodes,
    without_nodes,
)
from cockpit.model.text import is_whole

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

GIVEN: Final = frozenset({"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"})
"""Variables that the operator sets as this job's mode does."""
RENDEZVOUS: Final = "c10d"
"""The rendezvous of elastic jobs' workers."""
_AT: Final = "spec.pytorchReplicaSpecs"
_RESTARTS: Final = "OnFailure"
"""What the operator sets where a role has no restart policy (PyTorchJobDefaultRestartPolicy); that of its other kinds
is `Never`."""


def read_pytorch_job(value: Mapping[str, Any]) -> Draft:
    """Read a PyTorchJob (kubeflow.org/v1)."""
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    draft.values["mode"] = "pytorch"
    replicas = spec.pop("pytorchReplicaSpecs", None) or {}
    roles = read_roles(replicas, ("Master", "Worker"), _AT, draft, GIVEN, restarts=_RESTARTS)
    # Master and workers are equal ranks of one job: the master is rank 0.
    draft.values["nodes"] = sum(role.replicas for role in roles) or 1
    merge(roles, _AT, draft)
    if not roles:
        draft.run([])
    # Before torchrun and the run policy, which both depend on whether the job is elastic.
    _elastic(spec.pop("elasticPolicy", None), draft)
    take_torchrun(draft, spec.pop("nprocPerNode", None), "spec.nprocPerNode")
    read_policy(spec.pop("runPolicy", None) or {}, roles, draft)
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def take_torchrun(draft: Draft, count: object = None, at: str = "") -> None:
    """Give torchrun the options in place of the variables that the operator sets.

    `count`: the number of processes per node, as the field `at` has it; None: the field is missing.
    """
    nodes, command = int(draft.values.get("nodes") or 1), str(draft.values.get("command", ""))
    if draft.values.get("mode") != "pytorch":
        take_processes(count, at, draft)
        return
    if "elastic" in draft.values:
        take_processes(count, at, draft)
        draft.values["command"] = elastic_launcher(command)
        if draft.values["command"] != command:
            draft.lacks("torchrun", "is run by cockpit.elastic_torchrun, and again when the workers change")
        elif with_nodes(command, nodes=2) != command or lacks_process_count(command):
            draft.lacks("torchrun", "learns of no other worker here; use python3 -m cockpit.elastic_torchrun")
        return
    # A number that equals the cards is the usual case, for which the launcher's own variable is written: it stays right
    # when the number of cards is edited.
    own = is_whole(str(count)) and int(str(count)) not in {0, _cards(draft)}
    draft.values["command"] = with_nodes(command, nodes=nodes, processes=str(count) if own else SLOTS)
    if draft.values["command"] == command:
        take_processes(count, at, draft)
        if lacks_process_count(command):
            draft.lacks("torchrun", "is called by a shell, and has no PET_ variables here; give it --nproc_per_node=N")
    elif nodes > 1:
        draft.lacks("torchrun", "has the nodes as options here; the operator gives them as PET_ variables")
    else:
        draft.lacks("torchrun", "has its processes as an option here; the operator gives them as PET_NPROC_PER_NODE")


def _cards(draft: Draft) -> int:
    """Return the cards of a node, at least one, since a node without cards runs one process."""
    cards = (draft.values.get("specs") or [{}])[0].get("cards", 0)
    return max(1, cards) if isinstance(cards, int) else 1


def take_processes(count: object, at: str, draft: Draft) -> None:
    """Note a number of processes per node that is not the usual one: as many as cards, or one."""
    cards = _cards(draft)
    if count is not None and str(count) not in {"auto", "gpu", str(cards)}:
        draft.lacks(at if "=" in at else f"{at}={count}", f"a node has a process for each card, {cards} here; left out")


def _elastic(policy: Mapping[str, Any] | None, draft: Draft) -> None:
    """Read the elastic policy, or make one for a best-effort job without it."""
    # Set by the pods' labels (`pods._metadata`), before the policy is known.
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
    if (restarts := left.pop("maxRestarts", None)) is not None:
        draft.values["elastic"]["backoff_limit"] = draft.whole(restarts, "spec.elasticPolicy.maxRestarts")
    take_processes(left.pop("nProcPerNode", None), "spec.elasticPolicy.nProcPerNode", draft)
    if left.get("rdzvBackend") == RENDEZVOUS:
        del left["rdzvBackend"]
    for name in left:
        draft.lacks(f"spec.elasticPolicy.{name}")


def write_pytorch_job(spec: JobSpec) -> dict[str, Any]:
    """Return the manifest of a PyTorchJob (kubeflow.org/v1)."""
    count = spec.nodes if spec.elastic is None else spec.elastic.workers
    policy = spec.elastic.worker_restart_policy if spec.elastic is not None else "Never"
    template = template_of(spec, "pytorch", GIVEN, command=plain_launcher(without_nodes(spec.command)))
    replicas = {
        kind: {"replicas": number, "restartPolicy": str(policy) if kind == "Worker" else "Never", "template": template}
        for kind, number in {"Master": 1, "Worker": count - 1}.items()
        if number
    }
    # An elastic job of one worker: the operator scales workers only.
    if spec.elastic is not None and "Worker" not in replicas:
        replicas = {"Worker": {**replicas["Master"], "restartPolicy": str(policy)}}
    body: dict[str, Any] = {"runPolicy": run_policy(spec), "pytorchReplicaSpecs": replicas}
    if spec.elastic is not None:
        sizes = {"minReplicas": spec.elastic.min_workers, "maxReplicas": spec.elastic.max_workers}
        body["elasticPolicy"] = {"rdzvBackend": RENDEZVOUS, **sizes}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata_of(spec), "spec": body}
