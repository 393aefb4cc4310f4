"""Finds out which of Slurm's NO_NORMAL flags a cluster has.

`scontrol show config` prints NO_NORMAL_ALL for any of them, and what one of them leaves raw counts many times as much.
So what sprio prints has to tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.slurm.ranking import printed_of
from cockpit.model.cluster import PriorityFlag
from cockpit.model.priority import FactorName
from cockpit.sched.priority.priority_context import PriorityContext

if TYPE_CHECKING:
    from cockpit.backends.slurm.mapping.cluster import ClusterLists
    from cockpit.backends.slurm.ranking import Printed
    from cockpit.model.cluster import Cluster
    from cockpit.model.job import Job
    from cockpit.model.priority import Breakdown, Part

_FLAGS = {
    FactorName.ASSOC: PriorityFlag.NO_NORMAL_ASSOC,
    FactorName.PARTITION: PriorityFlag.NO_NORMAL_PART,
    FactorName.QOS: PriorityFlag.NO_NORMAL_QOS,
    FactorName.TRES: PriorityFlag.NO_NORMAL_TRES,
}
ENOUGH = 200
"""The number of jobs whose figures are compared."""


def normalization_flags(everything: ClusterLists, printed: Printed) -> tuple[PriorityFlag, ...]:
    """Return the flags of the rules; NO_NORMAL_ALL is replaced by the flags that no figure contradicts."""
    flags = everything.rules.priority.flags
    others = tuple(each for each in flags if each is not PriorityFlag.NO_NORMAL_ALL)
    if others == flags:
        return flags
    raw, normal = _scale(everything, flags), _scale(everything, others)
    normalised: set[FactorName] = set()
    # `raw` and `normal` compute each factor with and without normalisation. Where the two differ and sprio prints the
    # normal one, the flag of this factor is not set.
    for job, breakdown in islice(_queued_breakdowns(everything, printed), ENOUGH):
        figures = {(part.name, part.tres): part.contribution for part in breakdown.parts}
        pairs = zip(_parts(raw, job, breakdown.partition), _parts(normal, job, breakdown.partition), strict=True)
        normalised |= {
            by_most.name
            for as_is, by_most in pairs
            # sprio rounds what it prints; equal figures prove nothing.
            if round(as_is.contribution) != round(by_most.contribution) == figures.get((by_most.name, by_most.tres))
        }
    return (*others, *(flag for name, flag in _FLAGS.items() if name not in normalised))


def with_priority_flags(rules: Cluster, flags: tuple[PriorityFlag, ...]) -> Cluster:
    """Return the rules with these flags of priorities."""
    return replace(rules, priority=replace(rules.priority, flags=flags))


def _scale(everything: ClusterLists, flags: tuple[PriorityFlag, ...]) -> PriorityContext:
    nodes = {each.node.name: each.node for each in everything.nodes}
    return PriorityContext(with_priority_flags(everything.rules, flags), everything.accounts, nodes)


def _queued_breakdowns(everything: ClusterLists, printed: Printed) -> Iterator[tuple[Job, Breakdown]]:
    """Return the queued jobs with sprio's figures for each of their partitions."""
    for listed in everything.jobs:
        if listed.waits:
            job = next(listed.each())
            yield from ((job, breakdown) for breakdown in printed_of(job.id, printed))


def _parts(scale: PriorityContext, job: Job, partition: str) -> Iterator[Part]:
    return (part for part in scale.parts(scale.inputs(job, partition), 0.0, 0.0) if part.name in _FLAGS)
