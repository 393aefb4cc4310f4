"""Elastic and resuming jobs on a real engine, while nodes, processes, links and the engine itself fail at random.

`COCKPIT_CHAOS=SEED` runs other acts, `COCKPIT_CHAOS=SEED:MINUTES` runs that long with a dozen jobs at a time. With
`COCKPIT_CHAOS_KEEP=FOLDER` what the engine and the jobs wrote is copied there if a promise is broken.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.e2e.aftermath import ENDED, accounting
from tests.e2e.chaos.disturbances import Disturbances, with_patience
from tests.e2e.chaos.kinds import KINDS, job_file
from tests.e2e.chaos.leftovers import folders_left, processes
from tests.e2e.chaos.machine import Machine, a_machine
from tests.e2e.chaos.verdict import Submitted, verdict
from tests.e2e.cockpit_user import ROOT, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

DEFAULT_SEED = 1
ACTS, JOBS, STEPS = 14, 6, 48
LONG_JOBS, LONG_STEPS = 12, 160
PATIENCE_SECONDS = 240


class Measure(NamedTuple):
    """How much happens in a run."""

    seed: int
    minutes: float
    """How long acts go on; 0: until `ACTS` of them have happened."""

    @property
    def jobs(self) -> int:
        """The number of jobs at a time."""
        return LONG_JOBS if self.minutes else JOBS

    @property
    def steps(self) -> int:
        return LONG_STEPS if self.minutes else STEPS

    @classmethod
    def asked_for(cls) -> Measure:
        seed, _, minutes = os.environ.get("COCKPIT_CHAOS", str(DEFAULT_SEED)).partition(":")
        return cls(int(seed), float(minutes or 0))


class Run:
    """One run. `plan` is what has happened, for whoever wants to see it again."""

    def __init__(self, machine: Machine, measure: Measure) -> None:
        self.machine, self.measure, self.user = machine, measure, machine.user
        self.jobs: list[Submitted] = []
        self.plan: list[str] = []
        self._began = time.monotonic()
        random = Random(measure.seed)
        self._order = Random(measure.seed)
        self._kinds = self._shuffled_kinds()
        self.disturbances = Disturbances(machine, random)
        self.user.write("algo/trainer.py", (ROOT / "tests/e2e/chaos/trainer.py").read_text())

    def _shuffled_kinds(self) -> Iterator:
        while True:
            yield from self._order.sample(KINDS, len(KINDS))

    def note(self, what: str) -> None:
        self.plan.append(f"{time.monotonic() - self._began:7.1f} s  {what}")

    def submit(self, count: int) -> None:
        files, submitted = [], []
        for _ in range(count):
            kind, number = next(self._kinds), len(self.jobs) + len(submitted) + 1
            name = f"{kind.name}-{number}"
            variables = {"STEPS": str(self.measure.steps), "PAUSE": "0.2", "CHAOS_RUN": str(self.user.folder)}
            file = job_file(kind, name, "./algo", variables)
            files.append(str(self.user.write(f"{name}.json", json.dumps(file))))
            submitted.append((name, kind))
        lines = self.user.ok("submit", *files).splitlines()
        ids = [int(line.split()[-1]) for line in lines if line.startswith("submitted")]
        for job, (name, kind) in zip(ids, submitted, strict=True):
            self.jobs.append(Submitted(job, name, kind, self.measure.steps, self.user.work / name / "out"))
        self.note(f"submit {', '.join(f'{job}={name}' for job, (name, _) in zip(ids, submitted, strict=True))}")

    def disturb(self) -> None:
        until = self._began + 60 * self.measure.minutes
        acts = 0
        while time.monotonic() < until if self.measure.minutes else acts < ACTS:
            self.wait_for_steps(self._order.choice((1, 2, 4, 8)))
            name, done = self.disturbances.act()
            self.note(f"{name}: {done or 'nothing to do it to'}")
            acts += 1
            if self.measure.minutes and (missing := self.measure.jobs - self.live()) > 0:
                self.submit(missing)

    def wait_for_steps(self, count: int) -> None:
        wanted = self.steps() + count
        with_patience(lambda: self.steps() >= wanted, 4)

    def steps(self) -> int:
        return sum(len(job.lines("history")) for job in self.jobs)

    def live(self) -> int:
        rows = self.user.rows("jobs", "--columns", "id,state")
        live = {int(row["id"]) for row in rows if row["state"] not in ENDED}
        return len(live.intersection(job.id for job in self.jobs))

    def finish(self) -> None:
        self.note("mend")
        self.disturbances.mend()
        while left := len(self.unfinished()):  # best effort takes its time on a machine that has other work
            before = self.steps(), left
            eventually(lambda before=before: (self.steps(), len(self.unfinished())) != before, PATIENCE_SECONDS)
        with_patience(lambda: not any(folders_left(self.user)), 60)
        with_patience(lambda: not processes(self.user))
        with_patience(lambda: len(accounting(self.user)) >= len(self.jobs))
        self.note("all jobs have ended")

    def unfinished(self) -> list[str]:
        rows = self.user.rows("jobs", "--columns", "id,name,state,why")
        return [f"{row['id']} {row['name']}: {row['state']}, {row['why']}" for row in rows if row["state"] not in ENDED]

    def story(self, broken: list[str]) -> str:
        again = f"{self.measure.seed}:{self.measure.minutes:g}".removesuffix(":0")
        return "\n".join([f"seed {self.measure.seed}; again with COCKPIT_CHAOS={again}", *self.plan, "", *broken])


@pytest.mark.req("EL-02", "EL-04", "JT-17")
def test_jobs_survive_whatever_fails(folder: Path) -> None:
    measure = Measure.asked_for()
    with a_machine(folder) as machine:
        interfaces = machine.interfaces()
        run = Run(machine, measure)
        try:
            run.submit(measure.jobs)
            run.disturb()
            run.finish()
            broken = verdict(machine, run.jobs, interfaces)
        except Exception as error:  # noqa: BLE001 - the plan is told with any error
            broken = [repr(error), *run.unfinished()]
        if broken:
            keep(machine, os.environ.get("COCKPIT_CHAOS_KEEP", ""))
        assert broken == [], run.story(broken)


def keep(machine: Machine, folder: str) -> None:
    """Copy what the engine and the jobs wrote, to be looked at."""
    if folder:
        shutil.copytree(machine.user.folder, folder, symlinks=True, dirs_exist_ok=True, ignore=_sockets)


def _sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not ((path := Path(folder, name)).is_file() or path.is_dir())]
