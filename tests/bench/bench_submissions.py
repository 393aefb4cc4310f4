"""Submissions over one connection, each durable when it is answered, and how soon what was submitted acts."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from statistics import median
from time import CLOCK_REALTIME, clock_gettime_ns, perf_counter
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.drive import drive
from cockpit.backends.local.backend import LocalBackend
from cockpit.backends.local.start import connect
from cockpit.config.places import paths
from cockpit.model.asking import LogRequest
from cockpit.model.spec import JobSpec, NodeSpec
from tests.bench.figures import Figures, Peer
from tests.e2e.cockpit_user import CockpitUser, a_new_user

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cockpit.backends.local.channel import Channel

BATCH = 1000
ONE_BY_ONE = 400
STARTS = 21


@pytest.fixture(scope="module")
def user() -> Iterator[CockpitUser]:
    with a_new_user() as somebody:
        somebody.ok("engine", "start")
        yield somebody


@pytest.fixture(scope="module")
def engine(user: CockpitUser) -> Iterator[LocalBackend]:
    def channel() -> Channel:
        found = connect(paths(os.geteuid(), user.env))
        assert found is not None
        return found

    backend = LocalBackend(channel)
    yield backend
    drive(backend.close())


def spec(user: CockpitUser, name: str, command: str = "true", *, hold: bool = False) -> JobSpec:
    small = (NodeSpec(memory_mib=64),)
    return JobSpec(name=name, command=command, output=str(user.work / "out"), specs=small, hold=hold)


def bare_commits_a_second(folder: Path) -> float:
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as bare:
        bare.execute("PRAGMA journal_mode=WAL")
        bare.execute("PRAGMA synchronous=FULL")
        bare.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
        before = perf_counter()
        for number in range(ONE_BY_ONE):
            bare.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 600))
        return ONE_BY_ONE / (perf_counter() - before)


def test_submissions(user: CockpitUser, engine: LocalBackend, figure: Figures):
    batch = [spec(user, f"batch-{each}", hold=True) for each in range(BATCH)]
    before = perf_counter()
    drive(engine.submit(batch))
    figure("PF-31", "submissions in a batch", BATCH / (perf_counter() - before))
    single = [spec(user, f"single-{each}", hold=True) for each in range(ONE_BY_ONE)]
    before = perf_counter()
    for each in single:
        drive(engine.submit([each]))
    reached = ONE_BY_ONE / (perf_counter() - before)
    peer = Peer("bare SQLite commits", bare_commits_a_second(user.work))
    figure("PF-31", "submissions one by one", reached, peer=peer)


def test_from_submission_to_the_first_act(user: CockpitUser, engine: LocalBackend, figure: Figures):
    took = []
    for each in range(STARTS):
        before = clock_gettime_ns(CLOCK_REALTIME)
        (job,) = drive(engine.submit([spec(user, f"start-{each}", "date +%s%N")]))
        drive(engine.wait(job, timeout_seconds=20))
        took.append((int(drive(engine.logs(LogRequest(job=job))).data) - before) / 1_000_000)
    figure("PF-30", "from submitting to the command's first act", median(took))
