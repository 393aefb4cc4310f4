"""Behind many jobs a wait is as long as the work ahead is large: single jobs, and which of them fit beside each other,
no longer matter. So the future need not be gone through to its end, nor in each of its courses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.forecast.runtime_predictors import RuntimePredictor, ends_at


class Shares:
    """What jobs take of a cluster while they run: the larger of their shares of its CPUs and of its cards. Times
    milliseconds it is called work."""

    def __init__(self, nodes: Mapping[NodeName, Node]) -> None:
        self._cpus = max(1, sum(node.cpus for node in nodes.values()))
        self._card_milli = max(1, WHOLE_CARD * sum(len(node.cards) for node in nodes.values()))
        self._known: dict[tuple[int, NodeSpec], float] = {}

    def of(self, job: Job) -> float:
        asked = job.spec.nodes, job.spec.specs[0]
        found = self._known.get(asked)
        if found is None:
            nodes, each = asked
            found = nodes * max(each.cpus / self._cpus, each.card_milli / self._card_milli)
            self._known[asked] = found
        return found

    def remaining(self, jobs: Iterable[Job], predictor: RuntimePredictor, now: Millis) -> float:
        """The work that is still to be done of jobs that run now."""
        return sum(
            [self.of(job) * max(1, ends_at(job, predictor, now) - now) for job in jobs if job.state in OCCUPYING]
        )


def work_ratios(
    order: Iterable[Job],
    running: Iterable[Job],
    shares: Shares,
    predictors: tuple[RuntimePredictor, RuntimePredictor, RuntimePredictor],
    now: Millis,
) -> dict[JobId, tuple[float, float]]:
    """By job: so many times as much work is ahead of it in the second and in the third course as in the first, itself
    included."""
    there = [*running]
    usual, careful, hard = [shares.remaining(there, predictor, now) for predictor in predictors]
    first, second, third = predictors
    found = {}
    for job in order:
        share = shares.of(job)
        usual += share * first.run_ms(job)
        careful += share * second.run_ms(job)
        hard += share * third.run_ms(job)
        found[job.id] = careful / usual, hard / usual
    return found
