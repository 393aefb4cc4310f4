"""Published logs through the scheduler, every event through the engine; the waits must come out as published. AccaSim
beside it where it is installed."""

from __future__ import annotations

import gc
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from cockpit.formats.traces.swf import history, read_swf
from cockpit.headless.verbs.replay import replayed
from tests.bench.figures import Peer
from tests.bench.peer_accasim import PYTHON as ACCASIM
from tests.bench.peer_accasim import accasim_jobs_a_second
from tests.oracles.traces import trace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench.figures import Figures

LEAST_ROUNDS, LEAST_SECONDS = 3, 15
"""A machine's speed may swing for seconds: a median of less says how it was just then."""
KTH = "EASY replay, KTH-SP2", "KTH-SP2.easy-oracle.swf.gz", 100
SDSC = "EASY replay, SDSC-SP2", "SDSC-SP2.easy-oracle.swf.gz", 128


@pytest.mark.parametrize(
    ("requirement", "name", "log", "processors", "policy"),
    [
        ("PF-03", *KTH, "easy"),
        ("PF-03", *SDSC, "easy"),
        ("PF-04", "conservative replay, KTH-SP2", "KTH-SP2.conservative-replan-oracle.swf.gz", 100, "conservative"),
    ],
)
def test_jobs_a_second(figure: Figures, requirement: str, name: str, log: str, processors: int, policy: str) -> None:
    past = history(read_swf(log, trace(log).read_bytes()), processors)
    taken: list[float] = []
    while len(taken) < LEAST_ROUNDS or sum(taken) < LEAST_SECONDS:
        gc.collect()
        gc.disable()  # as a command does
        before = perf_counter()
        runs = replayed(past, processors, policy, lambda _: None)
        taken.append(perf_counter() - before)
        gc.enable()
        assert [run.waited for run in runs] == [job.waited for job in past.jobs]
    figure(requirement, name, len(past.jobs) / median(taken))


@pytest.mark.skipif(ACCASIM is None, reason="AccaSim is not installed: its figures are those of another day")
@pytest.mark.parametrize(("name", "log", "processors"), [KTH, SDSC])
def test_jobs_a_second_in_accasim(figure: Figures, tmp_path: Path, name: str, log: str, processors: int) -> None:
    past = history(read_swf(log, trace(log).read_bytes()), processors)
    figure.beside("PF-03", name, Peer("AccaSim", accasim_jobs_a_second(past, processors, tmp_path)))
