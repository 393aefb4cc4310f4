"""Tests whether the rules allow an elastic job more workers than it needs to run at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from cockpit.model.ids import NodeName
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node, Placement
from cockpit.sched.gates import Gates
from cockpit.sched.rules.amounts import ONE, Amounts, held
from cockpit.sched.rules.limits import JOBS
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.rules.tres import BILLING


class Sizes:
    """The tests for one pass, whose gates count what it starts."""

    def __init__(self, rules: Rulebook, gates: Gates, nodes: Mapping[NodeName, Node]) -> None:
        self._rules, self._gates, self._nodes = rules, gates, nodes

    def lawful(self, job: Job, partition: str) -> Callable[[Placement], bool]:
        """Return a test whether the job may hold a placement in that partition: neither a limit on jobs of that size
        nor one on all running jobs forbids it."""
        equivalence_class = self._gates.equivalence_class(job, partition)
        has = self._has(job, partition)

        def check(placement: Placement) -> bool:
            sized = replace(job, spec=replace(job.spec, nodes=len(placement), elastic=None))
            if self._rules.refusal(sized, partition) is not None:
                return False
            amounts = self._amounts(placement, partition) | {JOBS: ONE}
            # the job counts to the limits already by what it holds, so only the difference is tested
            more = {each: amount - has.get(each, 0) for each, amount in amounts.items()}
            return self._gates.exceeded(equivalence_class, more) is None

        return check

    def resized(self, job: Job, partition: str, placement: Placement) -> float:
        """Count a running job by this placement from now on, and return its billing."""
        amounts = self._amounts(placement, partition)
        self._gates.adds(job, partition, amounts | {JOBS: ONE})
        return amounts[BILLING] / ONE

    def _has(self, job: Job, partition: str) -> Amounts:
        if job.attempt is None or job.state not in OCCUPYING:
            return {}
        return self._amounts(job.attempt.placement, partition) | {JOBS: ONE}

    def _amounts(self, placement: Placement, partition: str) -> Amounts:
        return self._rules.billed(held(placement, self._nodes), partition)
