"""Describes the replicas of a job with worker pools: as Vertex AI's CustomJobSpec, and as the variables they read.

Source: Vertex AI, the REST reference of CustomJobSpec, WorkerPoolSpec, MachineSpec, DiskSpec and ContainerSpec; and
"Distributed training", the formats of `CLUSTER_SPEC` and `TF_CONFIG`. A replica finds the CustomJobSpec in its
CLUSTER_SPEC under `job`; `cockpit convert` writes it to a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cockpit.launch.modes import PORT, Peer, Role
from cockpit.launch.shellform import plain_arguments
from cockpit.model.image import HOST
from cockpit.model.machinetypes import custom_type, machine_type
from cockpit.model.spec import WHOLE_CARD, WorkerPool

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec, NodeSpec


def custom_job_spec(spec: JobSpec) -> dict[str, Any]:
    """Return the CustomJobSpec. Worker pools are kept; any other job becomes a primary (its first node) and workers."""
    return {"workerPoolSpecs": [_pool(spec, pool) for pool in pools_of(spec)]}


def pools_of(spec: JobSpec) -> tuple[WorkerPool, ...]:
    """Return the job's pools; for a job without pools, the ones that its replicas form."""
    if spec.worker_pools:
        return spec.worker_pools
    pools = [WorkerPool(replicas=1, spec=spec.specs[0]), WorkerPool(replicas=spec.nodes - 1, spec=spec.specs[0])]
    if spec.parameter_servers:
        pools.append(WorkerPool(replicas=spec.parameter_servers, spec=spec.helpers[0]))
    while not pools[-1].replicas:  # the first one has a replica
        pools.pop()
    return tuple(pools)


def _pool(spec: JobSpec, pool: WorkerPool) -> dict[str, Any]:
    if not pool.replicas:
        return {}
    pool_spec: dict[str, Any] = {"machineSpec": _machine(pool), "replicaCount": pool.replicas}
    disk = {"bootDiskType": pool.disk_type, "bootDiskSizeGb": pool.disk_gib}
    if any(disk.values()):
        pool_spec["diskSpec"] = {name: value for name, value in disk.items() if value}
    return pool_spec | {"containerSpec": _container(spec, pool)}


def _machine(pool: WorkerPool) -> dict[str, Any]:
    name = pool.machine_type or custom_type(pool.spec.cpus, pool.spec.memory_mib)
    # Vertex AI counts whole accelerators, so that a share becomes one.
    cards = -(-pool.spec.card_milli // WHOLE_CARD)
    known = machine_type(name)
    # The cards of such a machine type are part of it (`a2-highgpu-1g`).
    if not cards or (known is not None and known.cards == cards):
        return {"machineType": name}
    return {"machineType": name, "acceleratorType": _model(pool.spec), "acceleratorCount": cards}


def _model(spec: NodeSpec) -> str:
    return spec.card_models[0] if spec.card_models else "ACCELERATOR_TYPE_UNSPECIFIED"


def _container(spec: JobSpec, pool: WorkerPool) -> dict[str, Any]:
    image = pool.image or (spec.image if spec.image != HOST else "")
    container: dict[str, Any] = {"imageUri": image} if image else {}
    container["command"] = list(plain_arguments(pool.command or spec.command))
    if spec.env:
        container["env"] = [{"name": name, "value": value} for name, value in spec.env.items()]
    return container


_POOL: Final = "workerpool"
TASKS: Final = ("chief", "worker", "ps", "evaluator")
"""TensorFlow's names for the replicas, by the position of their pool."""
EVALUATORS: Final = 3


def pool_roles(pools: Sequence[WorkerPool]) -> list[Role]:
    """Return the role of each rank: the pools follow each other."""
    return [Role(f"{_POOL}{position}", index) for position, pool in enumerate(pools) for index in range(pool.replicas)]


def replica_spec(spec: JobSpec, rank: int) -> JobSpec:
    """Return the job as one replica has it: with its pool's command and image."""
    if not spec.worker_pools:
        return spec
    own = [pool for pool in spec.worker_pools for _ in range(pool.replicas)][rank]
    # `image_found` is of the job's image, which the catalogue has looked up.
    image = {"image": own.image, "image_found": ""} if own.image else {}
    return replace(spec, command=own.command or spec.command, **image)


def pool_environment(spec: JobSpec, peers: Sequence[Peer], rank: int, *, job: str, trial: str = "") -> dict[str, str]:
    """Return the variables of one replica of a worker pool.

    `job`: its id; `trial`: the number of the trial, from 1, where parameters are being searched.
    """
    own = peers[rank].role
    cluster: dict[str, list[str]] = {}
    for peer in peers:
        cluster.setdefault(peer.role.word, []).append(f"{peer.host}:{PORT}")
    values = pool_values(spec, cluster, own.word, own.index, job=job, trial=trial, alone=len(peers) == 1)
    return {name: json.dumps(value) for name, value in values.items()}


def pool_values(
    spec: JobSpec,
    cluster: Mapping[str, Any],
    word: str,
    index: Any,  # noqa: ANN401 - JSON
    *,
    job: Any,  # noqa: ANN401 - JSON
    trial: Any = "",  # noqa: ANN401 - JSON
    alone: bool,
) -> dict[str, dict[str, Any]]:
    """Return the value before it is written as JSON. `cluster`: the addresses of each pool's replicas by the pool's
    name."""
    common = {"environment": "cloud", "job": custom_job_spec(spec)}
    task: dict[str, Any] = {"type": word, "index": index, **({"trial": trial} if trial else {})}
    values = {"CLUSTER_SPEC": {"cluster": cluster, **common, "task": task}}
    # Vertex AI sets TF_CONFIG for distributed training alone.
    if not alone:
        task = {**task, "type": _tensorflow_word(word), "cloud": job}
        called = {_tensorflow_word(each): hosts for each, hosts in cluster.items()}
        values["TF_CONFIG"] = {"cluster": called, **common, "task": task}
    return values


def pool_hints(spec: JobSpec) -> list[str]:
    """Return hints for a user who looks at the launch beforehand."""
    evaluators = spec.worker_pools[EVALUATORS].replicas if len(spec.worker_pools) > EVALUATORS else 0
    return [f"TensorFlow takes one evaluator, and there are {evaluators}"] if evaluators > 1 else []


def _tensorflow_word(word: str) -> str:
    return TASKS[int(word.removeprefix(_POOL))]
