"""How many replicas of a job a member takes by its resource models, which count its nodes by what each has free.

Source: Karmada, `getMaximumReplicasBasedOnResourceModels` of its general estimator. A model is a grade: a range of free
amounts from `min` on. A node of a grade counts as having just the grade's minimum free.

1. A replica fits on nodes from the first grade on whose minimum is at least the request, of every resource.
2. A node of such a grade takes as many replicas as its scarcest minimum allows.
3. Where the models lack a resource that is asked for, or no node was counted, the fleet compares totals instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.mapping.quantities import exact_amounts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.backends.kubernetes.objects.fleet import MemberCluster


def modelled_replicas(member: MemberCluster, request: Mapping[str, int]) -> int | None:
    """Return how many replicas find a node; None: the models say nothing of this. `request`: of one replica, in the
    units of `quantities.exact_request`."""
    summary = member.status.resource_summary
    nodes = {each.grade: each.count for each in (summary.allocatable_modelings or ())} if summary is not None else {}
    minima = [
        (model.grade, exact_amounts({each.name: each.min for each in model.ranges or ()}))
        for model in sorted(member.spec.resource_models or (), key=lambda model: model.grade)
    ]
    if not nodes or not minima or not request or any(not amounts.keys() >= request.keys() for _, amounts in minima):
        return None  # step 3
    # Where a minimum is below the request, the quotient is 0: step 1 needs no step of its own, as minima grow by grade.
    return sum(
        nodes.get(grade, 0) * min(amounts[name] // asked for name, asked in request.items())
        for grade, amounts in minima
    )
