"""What distinguishes one request for room from another. Jobs of one shape find room, or lack it, alike."""

from __future__ import annotations

import msgspec

from cockpit.model.labels import Toleration
from cockpit.model.spec import JobSpec, NodeSpec


class Shape(msgspec.Struct, frozen=True, cache_hash=True):
    """The part of a job spec that decides where it may run and what it takes, in one partition at one moment."""

    nodes: int
    """Of an elastic job so many as it needs to run at all."""
    specs: tuple[NodeSpec, ...]
    node_names: tuple[str, ...]
    pool: str | None
    driver_version: str | None
    exclusive: bool
    selector: tuple[tuple[str, str], ...] = ()
    """Labels that a node must have, by key."""
    tolerations: tuple[Toleration, ...] = ()
    by_pool: bool = False
    """The nodes are named by a pool that it may use, also where they are set apart."""
    partition: str = ""
    """Whose nodes it may use; empty: those of a cluster without partitions."""
    reservation: str = ""
    """It runs only on this one's nodes."""
    barred: tuple[str, ...] = ()
    """Reservations whose nodes it may not use: it would run into them."""


def shape_of(spec: JobSpec, partition: str = "") -> Shape:
    return Shape(
        spec.least_nodes,
        spec.specs,
        spec.node_names or spec.pool_nodes,
        spec.pool if not spec.pool_nodes else None,
        spec.driver_version,
        spec.exclusive,
        tuple(sorted(spec.node_selector.items())) if spec.node_selector else (),
        spec.tolerations,
        bool(spec.pool_nodes),
        partition,
        spec.reservation,
    )


def alternative(spec: JobSpec, shape: Shape, number: int) -> int:
    """Which of the job's node specs the shape's is: a limit may have left the shape fewer."""
    return spec.specs.index(shape.specs[number])
