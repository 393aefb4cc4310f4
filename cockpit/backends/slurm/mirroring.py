"""Copies of the Slurm cluster in the embedded engine, made of the lists that Slurm's commands print."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cockpit.backends.inprocess import InProcessBackend
from cockpit.backends.planning_mirror import PlanningMirror
from cockpit.backends.slurm.mapping.cluster import ClusterLists, state
from cockpit.engine.machine import Machine
from cockpit.runtime.offline_engine import offline_engine, read_only_actor

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.runtime.clock import Timekeeper

SlurmMirror = PlanningMirror[ClusterLists]


def planning_mirror(clock: Timekeeper, name: str, user: str) -> SlurmMirror:
    """Return a mirror that plans the queue in the order of Slurm's own priorities."""
    return PlanningMirror(clock, name, user, partial(state, as_ranked=True), _is_same)


def _is_same(one: ClusterLists, other: ClusterLists) -> bool:
    # Identity suffices: `Reading` returns the same object as long as a command prints the same. `at` is always new.
    return all(before is now for before, now in zip(one[1:], other[1:], strict=True))


async def recounted(everything: ClusterLists, clock: Timekeeper, name: str) -> InProcessBackend:
    """Return a backend that computes priorities itself instead of using Slurm's, to try other weights."""
    engine = await offline_engine(Machine(state(everything, as_ranked=False)), (), clock, name)
    return InProcessBackend(engine, read_only_actor("root"))


async def with_ended(everything: ClusterLists, ended: Sequence[Job], clock: Timekeeper, name: str) -> InProcessBackend:
    """Return a backend of the cluster whose history also has these ended jobs."""
    engine = await offline_engine(Machine(state(everything, as_ranked=True)), ended, clock, name)
    return InProcessBackend(engine, read_only_actor("cockpit"))
