"""Computes the priority of one job at one moment from its context, age and usage."""

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
from cockpit.sched.priority.priority_context import PriorityContext

Shares = Mapping[AssocKey, float]
"""Fair-share factors by association."""


class PriorityCalculator:
    """The calculator holds for every job until rules, nodes or usage change."""

    def __init__(self, context: PriorityContext, shares: Shares, at: Millis) -> None:
        self.context = context
        self.shares = shares
        self.at = at
        """The last update of usage; ages count to it."""

    def breakdown(self, job: Job, partition: str) -> Breakdown:
        """Return the priority with all its factors; for a running job, by what it holds."""
        if job.direct_priority is not None:
            total = 0 if job.held_by else job.direct_priority
            return Breakdown(job.id, partition, total, (), job.spec.nice, direct=True)
        inputs = self.context.inputs(job, partition)
        fairshare = 0.0 if inputs.association is None else self.shares.get(inputs.association, 0.0)
        parts = self.context.parts(inputs, age(inputs.since, self.at, self.context.priority.max_age_seconds), fairshare)
        total = 0 if job.held_by else clamped(weighted_sum(parts, job.spec.nice))
        return Breakdown(job.id, partition, total, parts, job.spec.nice)


def shares_of(context: PriorityContext, usage: Mapping[AssocKey, Usage]) -> Shares:
    """Return the factors that the cluster's own scheduler reports, if it does; else those of Fair Tree, or of the
    classic formula if the cluster is configured so."""
    reported = {key: each.fair_share for key, each in usage.items() if each.fair_share is not None}
    if reported:
        return reported
    if context.priority.fair_tree:
        return fair_tree(context.tree, usage)
    return classic_share(
        context.tree,
        usage,
        dampening=context.priority.dampening_factor,
        depth_oblivious=context.has(PriorityFlag.DEPTH_OBLIVIOUS),
    )
