"""What distinguishes one request from another to the scheduler. Jobs of one shape fail for one reason."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.spec import JobSpec, NodeSpec


class Shape(msgspec.Struct, frozen=True, cache_hash=True):
    """The part of a job spec that decides where it may run and what it takes."""

    nodes: int
    specs: tuple[NodeSpec, ...]
    node_names: tuple[str, ...]
    pool: str | None
    driver_version: str | None
    exclusive: bool


def shape_of(spec: JobSpec) -> Shape:
    return Shape(spec.nodes, spec.specs, spec.node_names, spec.pool, spec.driver_version, spec.exclusive)


class ShapeBook:
    """Remembers the shape of every queued job: hashing 100 000 specs each cycle would cost more than the cycle.

    Only a memory: it changes no answer, so successive indexes share one.
    """

    def __init__(self) -> None:
        self._known: dict[JobId, tuple[JobSpec, Shape]] = {}
        self._interned: dict[Shape, Shape] = {}

    def of(self, job: Job) -> Shape:
        known = self._known.get(job.id)
        return known[1] if known is not None and known[0] is job.spec else self._learn(job)

    def of_all(self, queue: Sequence[Job]) -> list[Shape]:
        """Shapes in the queue's order; forgets jobs that left it once they are the majority."""
        if len(self._known) > 2 * len(queue) + 1024:
            self._known.clear()
            self._interned.clear()
        get, learn = self._known.get, self._learn
        return [
            known[1] if (known := get(job.id)) is not None and known[0] is job.spec else learn(job) for job in queue
        ]

    def _learn(self, job: Job) -> Shape:
        shape = shape_of(job.spec)
        shape = self._interned.setdefault(shape, shape)
        self._known[job.id] = (job.spec, shape)
        return shape
