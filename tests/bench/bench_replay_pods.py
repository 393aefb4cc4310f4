"""Pods of a published trace through the scheduler, one cycle each."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from cockpit.formats.traces.gpu import arriving, read_nodes, read_pods
from cockpit.headless.verbs.replay_pods import filled
from cockpit.sched.policy import FractionFit
from tests.oracles.traces import trace

if TYPE_CHECKING:
    from tests.bench.figures import Figures

SEEDS = 3
FITS = {FractionFit.BEST: "best fit", FractionFit.FGD: "gradient descent"}


def test_pods_a_second(figure: Figures) -> None:
    nodes = read_nodes("nodes", trace("openb_node_list_gpu_node.csv").read_bytes())
    pods = read_pods("pods", trace("openb_pod_list_default.csv").read_bytes())
    target = 1300 * sum(len(node.cards) for node in nodes)
    for fit, name in FITS.items():
        rates = []
        for seed in range(SEEDS):
            coming = arriving(pods, target, 42 + seed)
            before = perf_counter()
            filled(nodes, pods, coming, fit)
            rates.append(len(coming) / (perf_counter() - before))
        figure("PF-06", f"openb replay, {name}", median(rates))
