"""Published logs through the scheduler, every event through the engine; the waits must come out as published."""

from __future__ import annotations

import gc
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from cockpit.formats.traces.swf import read_swf
from cockpit.formats.traces.swf_history import history
from cockpit.headless.verbs.replay import replayed
from tests.oracles.traces import trace

if TYPE_CHECKING:
    from tests.bench.figures import Figures

ROUNDS = 3


@pytest.mark.parametrize(
    ("requirement", "name", "log", "processors", "policy"),
    [
        ("PF-03", "EASY replay, KTH-SP2", "KTH-SP2.easy-oracle.swf.gz", 100, "easy"),
        ("PF-03", "EASY replay, SDSC-SP2", "SDSC-SP2.easy-oracle.swf.gz", 128, "easy"),
        ("PF-04", "conservative replay, KTH-SP2", "KTH-SP2.conservative-replan-oracle.swf.gz", 100, "conservative"),
    ],
)
def test_jobs_a_second(figure: Figures, requirement: str, name: str, log: str, processors: int, policy: str) -> None:
    past = history(read_swf(log, trace(log).read_bytes()), processors)
    rates = []
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()  # as a command does
        before = perf_counter()
        runs = replayed(past, processors, policy, lambda _: None)
        rates.append(len(runs) / (perf_counter() - before))
        gc.enable()
        assert [run.waited for run in runs] == [job.waited for job in past.jobs]
    figure(requirement, name, median(rates))
