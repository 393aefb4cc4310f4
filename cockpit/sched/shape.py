"""The shape of a job: everything that decides where it fits. Jobs of one shape fit, or do not fit, alike."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import replace

from cockpit.model.ids import NodeName
from cockpit.model.labels import Toleration
from cockpit.model.spec import JobSpec, NodeSpec, TaskSpread

SPOT = Toleration("spot")
"""The toleration that jobs with `spot` have: nodes that their provider may take back have a taint of this key."""


class Shape(msgspec.Struct, frozen=True, cache_hash=True):
    """The part of a job spec that decides where the job may run and what it takes, in one partition at one moment."""

    nodes: int
    """The number of replicas of the first kind; for an elastic job, those that it needs to run at all."""
    specs: tuple[NodeSpec, ...]
    node_names: tuple[str, ...]
    pool: str | None
    driver_version: str | None
    exclusive: bool
    selector: tuple[tuple[str, str], ...] = ()
    """Labels that a node must have, sorted by key."""
    tolerations: tuple[Toleration, ...] = ()
    by_pool: bool = False
    """Whether `node_names` come from a pool that the job may use, even if its nodes are dedicated."""
    partition: str = ""
    """The partition whose nodes it may use; empty: the cluster has no partitions."""
    reservation: str = ""
    """The advance reservation on whose nodes alone it runs; empty: none."""
    barred: tuple[str, ...] = ()
    """Advance reservations whose nodes it may not use, because it would run into them."""
    helpers: tuple[NodeSpec, ...] = ()
    """Further replicas of other kinds, each on a node of its own too."""
    max_price_milli: int | None = None
    """The highest price of its nodes, in thousandths, by their label."""
    excluded: tuple[tuple[NodeName, str], ...] = ()
    """Nodes that it may not use, each with the reason."""
    launcher: tuple[tuple[str, str], ...] = ()
    """Labels, by key, of the node where the launcher runs; the launcher is allocated nothing of it."""

    spread: TaskSpread | None = None
    """Tasks that are spread over any number of nodes, at least `nodes`."""
    components: tuple[Shape, ...] = ()
    """Shapes of further jobs that start together with this one; they may share nodes."""

    @property
    def is_uneven(self) -> bool:
        """Whether it may hold different amounts on its nodes, so that counting nodes that fit does not suffice."""
        return bool(self.helpers or self.components) or self.spread is not None

    @property
    def each_component(self) -> list[Shape]:
        """The shapes that are placed one after the other: this one's own first."""
        barred = self.barred
        return [replace(self, components=()), *(replace(each, barred=barred) for each in self.components)]

    @property
    def alike(self) -> Shape:
        """The shape without replicas of other kinds."""
        return replace(self, helpers=())

    @property
    def replica_groups(self) -> list[Shape]:
        """The shapes with replicas that are alike, one for each kind; all of them must fit. The first kind comes
        first, together with helpers that ask for exactly the same."""
        # equal helpers form one group, however many the job lists
        counted, base = Counter(self.helpers), self.alike
        # with alternatives the first kind may take another one than these helpers, so they stay a group of their own
        like_first = counted.pop(self.specs[0], 0) if len(self.specs) == 1 else 0
        others = [replace(base, nodes=count, specs=(spec,)) for spec, count in counted.items()]
        return [replace(base, nodes=self.nodes + like_first), *others]


def shape_of(spec: JobSpec, partition: str = "") -> Shape:
    """Return the shape of a job with this spec in the partition; for an elastic job, with its fewest workers."""
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
        excluded=tuple([(each.node, each.because) for each in spec.excluded]) if spec.excluded else (),
        launcher=tuple(sorted(spec.elastic.launcher_selector.items())) if spec.elastic is not None else (),
        spread=spec.spread,
        components=tuple([shape_of(each, each.partitions[0] if each.partitions else "") for each in spec.components]),
    )


def alternative(spec: JobSpec, shape: Shape, number: int) -> int:
    """Return the number, in the job, of an alternative of the shape: a limit may have left the shape fewer
    alternatives."""
    return spec.specs.index(shape.specs[number])
