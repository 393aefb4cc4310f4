"""The network of a job with several replicas: who has which address, and by which name each knows the others."""

from __future__ import annotations

from typing import Final

from cockpit.model.names import host_name
from cockpit.model.node import Placement
from cockpit.model.spec import JobSpec

PREFIX: Final = 16
GATEWAY: Final = "198.18.0.1"
"""The gateway of a job's own network. RFC 2544 reserves 198.18.0.0/15 for tests of network devices, so no machine that
a job may want to reach has such an address."""
_FIRST: Final = 2
_BYTE: Final = 256
_AHEAD: Final = 2
"""How many times an elastic job's largest number of workers get names. No rank is used twice, so later ones are
higher."""


def address(rank: int) -> str:
    """Return the address of `eth0` in the container of this rank."""
    high, low = divmod(_FIRST + rank, _BYTE)
    return f"198.18.{high}.{low}"


def host_of(spec: JobSpec, rank: int) -> str:
    """The name by which the others know a replica."""
    if spec.elastic is None:
        return host_name(spec.name, rank)
    return host_name(spec.name, "launcher" if rank < spec.first_worker else f"worker-{rank - spec.first_worker}")


def hosts(spec: JobSpec, placement: Placement) -> dict[str, str]:
    """Address by host name, of every replica that there is or may come to be; empty where there is only one, which
    shares the network of its node."""
    ranks = {part.rank for part in placement}
    if spec.elastic is not None:
        ranks |= {*range(max(ranks) + 1), *range(spec.first_worker + _AHEAD * spec.most_nodes)}
    if len(ranks) == 1:
        return {}
    return {host_of(spec, rank): address(rank) for rank in sorted(ranks)}
