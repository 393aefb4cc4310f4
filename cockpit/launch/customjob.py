"""A job as Vertex AI's CustomJobSpec: what its replicas find under `job`, and what `cockpit convert` writes.

Source: the REST reference of CustomJobSpec, WorkerPoolSpec, MachineSpec, DiskSpec and ContainerSpec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    """The job's pools, or those that it amounts to."""
    if spec.worker_pools:
        return spec.worker_pools
    pools = [WorkerPool(replicas=1, spec=spec.specs[0]), WorkerPool(replicas=spec.nodes - 1, spec=spec.specs[0])]
    if spec.parameter_servers:
        pools.append(WorkerPool(replicas=spec.parameter_servers, spec=spec.helpers[0]))
    while pools and not pools[-1].replicas:
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
    cards = -(-pool.spec.card_milli // WHOLE_CARD)
    known = machine_type(name)
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
