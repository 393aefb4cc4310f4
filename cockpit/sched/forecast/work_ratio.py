"""Compares the work ahead of each job under several assumptions about run times.

Behind many jobs a wait is proportional to the work ahead: single jobs, and which of them fit beside each other, no
longer matter. So the careful and the hard start can be scaled from the likely one without being simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Node
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.forecast.runtime_predictors import RuntimePredictor, ends_at


class Shares:
    """A job's share of the cluster while it runs: the larger of its share of CPUs and its share of cards. The share
    times milliseconds is called work."""

    def __init__(self, nodes: Mapping[NodeName, Node]) -> None:
        self._cpus = max(1, sum(node.cpus for node in nodes.values()))
        self._card_milli = max(1, WHOLE_CARD * sum(len(node.cards) for node in nodes.values()))
        self._shares: dict[tuple[int, NodeSpec], float] = {}

    def of(self, job: Job) -> float:
        # the job is judged by its first alternative: which one it gets is not known yet
        key = job.spec.nodes, job.spec.specs[0]
        share = self._shares.get(key)
        if share is None:
            nodes, each = key
            share = nodes * max(each.cpus / self._cpus, each.card_milli / self._card_milli)
            self._shares[key] = share
        return share

    def remaining(self, jobs: Iterable[Job], predictor: RuntimePredictor, now: Millis) -> float:
        """Return the remaining work of running jobs."""
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
    """Return, by job, the work ahead of it, itself included, under the second and the third predictor, divided by that
    under the first."""
    # iterated three times, and the caller may pass a generator
    occupying = [*running]
    likely, careful, hard = [shares.remaining(occupying, predictor, now) for predictor in predictors]
    first, second, third = predictors
    ratios = {}
    for job in order:
        share = shares.of(job)
        likely += share * first.run_ms(job)
        careful += share * second.run_ms(job)
        hard += share * third.run_ms(job)
        # the job's own work is included, so `likely` is above 0
        ratios[job.id] = careful / likely, hard / likely
    return ratios
