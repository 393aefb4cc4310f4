"""Describes the replicas of a job with worker pools to each other: `CLUSTER_SPEC`, and `TF_CONFIG` beside it.

Source: Vertex AI, "Distributed training", the formats of both variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from cockpit.launch.customjob import custom_job_spec
from cockpit.launch.modes import PORT, Peer, Role

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec, WorkerPool

_POOL: Final = "workerpool"
TASKS: Final = ("chief", "worker", "ps", "evaluator")
"""TensorFlow's names for the replicas, by the position of their pool."""
EVALUATORS: Final = 3


def pool_roles(pools: Sequence[WorkerPool]) -> list[Role]:
    """Return the role of each rank: the pools follow each other."""
    return [Role(f"{_POOL}{position}", index) for position, pool in enumerate(pools) for index in range(pool.replicas)]


def replica_spec(spec: JobSpec, rank: int) -> JobSpec:
    """The job as one replica has it: with its pool's command and image."""
    if not spec.worker_pools:
        return spec
    own = [pool for pool in spec.worker_pools for _ in range(pool.replicas)][rank]
    image = {"image": own.image, "image_found": ""} if own.image else {}
    return replace(spec, command=own.command or spec.command, **image)


def pool_environment(spec: JobSpec, peers: Sequence[Peer], rank: int, *, job: str, trial: str = "") -> dict[str, str]:
    """`job`: its id; `trial`: the number of the trial, from 1, where parameters are being searched."""
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
