"""How many reduction servers a job with worker pools wants, and what else helps them.

Source: Vertex AI, "Reduce training time with Reduction Server": together they have the bandwidth of the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.model.machinetypes import bandwidth_gbps
from cockpit.model.rules.pools import REDUCTION_SERVER, SERVERS
from cockpit.model.spec import WHOLE_CARD

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec, WorkerPool

REDUCER: Final = "n1-highcpu-16"
"""Of the machines that suit, the one with much bandwidth for what it is."""
IMAGES: Final = tuple(f"{place}-docker.pkg.dev{REDUCTION_SERVER}latest" for place in ("us", "europe", "asia"))
FUSION_VARIABLE: Final = "HOROVOD_FUSION_THRESHOLD"
FUSION_BYTES: Final = 128 * 1024 * 1024
BUCKET_MB: Final = 64
_LEAST_CPUS, _LEAST_GBPS = 16, 32


def reducers(workers: int, gbps: int, reducer_gbps: int) -> int:
    """So many carry what the workers send."""
    return -(-workers * gbps // reducer_gbps)


def bandwidth(pool: WorkerPool) -> int:
    """Gbps of one replica, outward; 0: not known."""
    model = pool.spec.card_models[0] if pool.spec.card_models else ""
    return pool.bandwidth_gbps or bandwidth_gbps(pool.machine_type, pool.spec.card_milli // WHOLE_CARD, model)


def advice(spec: JobSpec) -> Iterator[str]:
    """Sentences for a person; none where pools do not train on cards, or nobody knows their bandwidth."""
    training = [pool for pool in spec.worker_pools[:SERVERS] if pool.replicas]
    if not training or not all(pool.spec.card_milli and bandwidth(pool) for pool in training):
        return
    total = sum(pool.replicas * bandwidth(pool) for pool in training)
    servers = spec.worker_pools[SERVERS] if len(spec.worker_pools) > SERVERS else None
    if servers is not None and REDUCTION_SERVER in servers.image:
        yield from _about_servers(servers, total)
        yield from _about_messages(spec)
    elif (servers is None or not servers.replicas) and sum(pool.replicas for pool in training) > 1:
        wanted = reducers(1, total, bandwidth_gbps(REDUCER))
        yield (
            f"{wanted} reduction servers of {REDUCER} would carry the {total} Gbps of its workers: as the third pool, "
            f"with one of the images {', '.join(IMAGES)}"
        )


def _about_servers(servers: WorkerPool, total: int) -> Iterator[str]:
    each = bandwidth(servers)
    if each and servers.replicas * each < total:
        carried, wanted = servers.replicas * each, reducers(1, total, each)
        yield f"its {servers.replicas} reduction servers carry {carried} of {total} Gbps; {wanted} would"
    if servers.spec.cpus < _LEAST_CPUS or (each and each < _LEAST_GBPS):
        yield f"a reduction server does best with {_LEAST_CPUS} CPUs and {_LEAST_GBPS} Gbps, as {REDUCER} has"


def _about_messages(spec: JobSpec) -> Iterator[str]:
    yield (
        "reduction servers need TensorFlow 2.3, PyTorch 1.4, or NCCL 2.7 with google-reduction-server in the images of "
        "the first two pools"
    )
    given = spec.env.get(FUSION_VARIABLE, "")
    if "horovod" in spec.command.lower() and not (given.isdigit() and int(given) >= FUSION_BYTES):
        yield f"large messages suit them: set {FUSION_VARIABLE} to {FUSION_BYTES} or more"
    yield f"large messages suit them: PyTorch's DistributedDataParallel takes bucket_cap_mb={BUCKET_MB}"
