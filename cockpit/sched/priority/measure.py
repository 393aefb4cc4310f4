"""The priority of one job at one moment: the scale, and what age and usage add to it."""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.model.accounts import AssocKey, Usage
from cockpit.model.cluster import PriorityFlag
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.model.priority import Breakdown
from cockpit.sched.priority.classic_share import classic_share
from cockpit.sched.priority.factors import age, clamped, weighted_sum
from cockpit.sched.priority.fair_tree import fair_tree
from cockpit.sched.priority.scale import Scale

Shares = Mapping[AssocKey, float]
"""Fair-share factors."""


class Measure:
    """Holds for every job until rules, nodes or usage change, or a pass over usage moves the moment."""

    def __init__(self, scale: Scale, shares: Shares, at: Millis) -> None:
        self.scale = scale
        self.shares = shares
        self.at = at
        """The last pass over usage: ages count to it."""

    def breakdown(self, job: Job, partition: str) -> Breakdown:
        """Factor by factor; of a running job by what it holds."""
        if job.direct_priority is not None:
            total = 0 if job.held_by else job.direct_priority
            return Breakdown(job.id, partition, total, (), job.spec.nice, direct=True)
        claim = self.scale.claim(job, partition)
        fairshare = 0.0 if claim.association is None else self.shares.get(claim.association, 0.0)
        parts = self.scale.parts(claim, age(claim.since, self.at, self.scale.priority.max_age_seconds), fairshare)
        total = 0 if job.held_by else clamped(weighted_sum(parts, job.spec.nice))
        return Breakdown(job.id, partition, total, parts, job.spec.nice)


def shares_of(scale: Scale, usage: Mapping[AssocKey, Usage]) -> Shares:
    """As the cluster's own scheduler says, where it is another; else by Fair Tree, unless the cluster asks for the
    classic formula."""
    told = {key: each.fair_share for key, each in usage.items() if each.fair_share is not None}
    if told:
        return told
    if scale.priority.fair_tree:
        return fair_tree(scale.tree, usage)
    return classic_share(
        scale.tree,
        usage,
        dampening=scale.priority.dampening_factor,
        depth_oblivious=scale.has(PriorityFlag.DEPTH_OBLIVIOUS),
    )
