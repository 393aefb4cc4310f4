"""What distinguishes one request for room from another. Jobs of one shape find room, or lack it, alike."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import replace

from cockpit.model.labels import Toleration
from cockpit.model.spec import JobSpec, NodeSpec, TaskSpread

SPOT = Toleration("spot")
"""Nodes that their provider may take back have a taint of this key; a job with `spot` puts up with it."""


class Shape(msgspec.Struct, frozen=True, cache_hash=True):
    """The part of a job spec that decides where it may run and what it takes, in one partition at one moment."""

    nodes: int
    """Of an elastic job so many as it needs to run at all; those that are of the same kind."""
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
    helpers: tuple[NodeSpec, ...] = ()
    """What further replicas of other kinds ask for, each on a node of its own too."""
    max_price_milli: int | None = None
    """Of its nodes, as their label says."""
    launcher: tuple[tuple[str, str], ...] = ()
    """Labels, by key, that a node must have for the launcher to be there, which is given nothing of it."""

    spread: TaskSpread | None = None
    """Tasks that share out over any number of nodes, of which there are `nodes` at least."""

    @property
    def is_uneven(self) -> bool:
        """Whether it may hold different amounts on its nodes, so that room is a matter of all of them together."""
        return bool(self.helpers) or self.spread is not None

    @property
    def alike(self) -> Shape:
        """Without those of other kinds."""
        return replace(self, helpers=())

    @property
    def replica_groups(self) -> list[Shape]:
        """One shape for each kind of its replicas, all of which have to find room; that of the first ones comes first,
        with those of the others that ask for just the same."""
        counted, alike = Counter(self.helpers), self.alike
        like_first = counted.pop(self.specs[0], 0) if len(self.specs) == 1 else 0
        others = [replace(alike, nodes=count, specs=(spec,)) for spec, count in counted.items()]
        return [replace(alike, nodes=self.nodes + like_first), *others]


def shape_of(spec: JobSpec, partition: str = "") -> Shape:
    return Shape(
        spec.nodes if spec.elastic is None else spec.elastic.min_workers,
        spec.specs,
        spec.node_names or spec.pool_nodes,
        spec.pool if not spec.pool_nodes else None,
        spec.driver_version,
        spec.exclusive,
        tuple(sorted(spec.node_selector.items())) if spec.node_selector else (),
        spec.tolerations if spec.elastic is None or not spec.elastic.spot else (*spec.tolerations, SPOT),
        bool(spec.pool_nodes),
        partition,
        spec.reservation,
        helpers=spec.helpers,
        max_price_milli=spec.elastic.max_price_milli if spec.elastic is not None else None,
        launcher=tuple(sorted(spec.elastic.launcher_selector.items())) if spec.elastic is not None else (),
        spread=spec.spread,
    )


def alternative(spec: JobSpec, shape: Shape, number: int) -> int:
    """Which of the job's node specs the shape's is: a limit may have left the shape fewer."""
    return spec.specs.index(shape.specs[number])
