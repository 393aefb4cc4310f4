"""A TFJob of the Kubeflow training operator. Source: kubeflow.org/v1, TFJobSpec.

Workers and parameter servers alone are the mode `tensorflow`. With a chief or an evaluator they are worker pools, whose
TF_CONFIG has these roles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import read_name
from cockpit.formats.foreign.podwriting import metadata_of, run_policy, template_of
from cockpit.formats.foreign.roles import PER_POOL, Role, merge, pools_of, read_policy, read_roles
from cockpit.model.spec import PARAMETER_SERVER, Mode

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_AT: Final = "spec.tfReplicaSpecs"
_CHIEFS: Final = ("Chief", "Master")
_POOLS: Final = ("Chief", "Worker", "PS", "Evaluator")
"""By the position of the pool."""
GIVEN: Final = frozenset({"TF_CONFIG"})


def read_tf_job(value: Mapping[str, Any]) -> Draft:
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    known = (*_CHIEFS, "Worker", "PS", "Evaluator")
    roles = read_roles(spec.pop("tfReplicaSpecs", None) or {}, known, _AT, draft, GIVEN)
    by_name = {("Chief" if role.name in _CHIEFS else role.name): role for role in roles if role.replicas}
    if {"Chief", "Evaluator"} & by_name.keys():
        _take_pools(by_name, draft)
    else:
        _take_servers(by_name, draft)
    if not by_name:
        draft.run([])
    read_policy(spec.pop("runPolicy", None) or {}, roles, "spec.runPolicy", draft)
    if str(policy := spec.pop("successPolicy", "") or "") not in {"", "ChiefWorker"}:
        draft.lacks(f"spec.successPolicy={policy}")
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def _take_pools(roles: dict[str, Role], draft: Draft) -> None:
    if "Chief" not in roles and "Worker" in roles:
        worker = roles.pop("Worker")
        draft.lacks(f"{_AT}.Worker", "the first of them is the chief, by which the job ends")
        roles["Chief"] = worker._replace(replicas=1)
        if worker.replicas > 1:
            roles["Worker"] = worker._replace(replicas=worker.replicas - 1)
    present = [roles[name] for name in _POOLS if name in roles]
    merge(present, _AT, draft, besides=PER_POOL)
    draft.values |= {name: value for name, value in present[0].values.items() if name in {"command", "image"}}
    last = max(_POOLS.index(name) for name in roles)
    pools_of([roles.get(name) for name in _POOLS[: last + 1]], draft)


def _take_servers(roles: dict[str, Role], draft: Draft) -> None:
    draft.values["mode"] = "tensorflow"
    workers, servers = roles.get("Worker"), roles.get("PS")
    draft.values["nodes"] = workers.replicas if workers is not None else 1
    merge([role for role in (workers, servers) if role is not None], _AT, draft, besides=("specs",))
    if workers is not None and "specs" in workers.values:
        draft.values["specs"] = workers.values["specs"]
    if servers is not None:
        draft.values["parameter_servers"] = servers.replicas
        if "specs" in servers.values:
            size = f"{PARAMETER_SERVER.cpus} CPU and {PARAMETER_SERVER.memory_mib} MiB"
            draft.lacks(f"{_AT}.PS…resources", f"a parameter server has {size}")


def write_tf_job(spec: JobSpec) -> dict[str, Any]:
    """The manifest: workers and servers, or the roles of worker pools."""
    policy = run_policy(spec)
    if spec.mode is Mode.WORKER_POOLS:
        replicas = {
            name: _replicas(spec, pool.replicas, each=pool.spec, image=pool.image, command=pool.command or None)
            for name, pool in zip(_POOLS, spec.worker_pools, strict=False)
            if pool.replicas
        }
    else:
        replicas = {"Worker": _replicas(spec, spec.nodes)}
        if spec.parameter_servers:
            replicas["PS"] = _replicas(spec, spec.parameter_servers, each=PARAMETER_SERVER)
    body = {"runPolicy": policy, "tfReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata_of(spec), "spec": body}


def _replicas(spec: JobSpec, count: int, **of_pool: Any) -> dict[str, Any]:  # noqa: ANN401 - as `template_of` has them
    return {"replicas": count, "restartPolicy": "Never", "template": template_of(spec, "tensorflow", GIVEN, **of_pool)}
