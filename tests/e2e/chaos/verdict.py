"""Judges a chaos run when all of its jobs have ended, from what is on the disk: the ledgers that the jobs wrote, the
engine's journal and accounting, and what is left on the machine. Each check yields a sentence for each broken promise.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from cockpit.engine.invariants import violations
from cockpit.engine.machine import Machine as Engine
from cockpit.engine.state import ClusterState
from cockpit.model import events
from cockpit.model.job import JobState
from tests.e2e.aftermath import journal, state_folder
from tests.e2e.chaos.leftovers import leftovers
from tests.e2e.chaos.story import Story
from tests.e2e.chaos.usage import accounting_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cockpit.model.events import EventRecord
    from tests.e2e.chaos.kinds import Kind
    from tests.e2e.chaos.machine import Machine
    from tests.e2e.cockpit_user import CockpitUser

SAMPLES, GLOBAL_BATCH = 24, 6


class Submitted:
    """A job of the run."""

    def __init__(self, number: int, name: str, kind: Kind, steps: int, out: Path) -> None:
        self.id, self.name, self.kind, self.steps, self.out = number, name, kind, steps, out

    def __str__(self) -> str:
        return f"job {self.id} ({self.name})"

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.out / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def result(self) -> list[dict[str, Any]] | None:
        path = self.out / "result.json"
        return json.loads(path.read_text()) if path.exists() else None


def verdict(machine: Machine, jobs: Sequence[Submitted], interfaces: list[str]) -> list[str]:
    """All broken promises. The engine still runs, and no job does."""
    user = machine.user
    records = journal(user)
    told: dict[int, list[EventRecord]] = defaultdict(list)
    for record in records:
        if (job := getattr(record.body, "job", None)) is not None:
            told[int(job)].append(record)
    found = [*_lost(records, jobs)]
    for job in jobs:
        found += [f"{job}: {each}" for each in (*_of_ledger(job), *_of_events(job, told[job.id]))]
        found += [f"{job}: {each}" for each in _of_end(job, told[job.id])]
    found += [*_of_journal(records), *accounting_errors(user, told)]
    return [*found, *leftovers(machine, interfaces), *_of_engine(user)]


def _lost(records: Sequence[EventRecord], jobs: Sequence[Submitted]) -> Iterator[str]:
    submitted = {int(record.body.job) for record in records if isinstance(record.body, events.JobSubmitted)}
    ended = {int(record.body.job) for record in records if isinstance(record.body, events.JobEnded)}
    yield from (f"{job} was never submitted" for job in jobs if job.id not in submitted)
    yield from (f"job {job} has not ended" for job in sorted(submitted - ended))


# ── What the job wrote ───────────────────────────────────────────────────────────────────────────────────────────────


def _of_ledger(job: Submitted) -> Iterator[str]:
    yield from (f"attempt {line['attempt']}, replica {line['replica']}: {line['what']}" for line in job.lines("broken"))
    ledger = job.result()
    if ledger is None:
        return
    if len(ledger) != job.steps:
        yield f"{len(ledger)} of {job.steps} steps are in its ledger"
    if odd := [number for number, entry in enumerate(ledger) if len(entry["samples"]) != GLOBAL_BATCH]:
        yield f"the global batch of steps {odd} is another one"
    for first in range(0, len(ledger), SAMPLES // GLOBAL_BATCH):
        epoch = ledger[first : first + SAMPLES // GLOBAL_BATCH]
        used = Counter(sample for entry in epoch for sample in entry["samples"])
        if len(epoch) == SAMPLES // GLOBAL_BATCH and used != Counter(range(SAMPLES)):
            yield f"the epoch of step {first} did not use every sample once"
    order = [(entry["attempt"], entry["version"]) for entry in ledger]
    if order != sorted(order):
        yield "its ledger goes back to an earlier attempt or ring"


# ── What the engine wrote ────────────────────────────────────────────────────────────────────────────────────────────


def _of_events(job: Submitted, records: Sequence[EventRecord]) -> Iterator[str]:
    elastic = job.kind.elastic
    story = (
        Story(elastic["min_workers"], elastic["max_workers"]) if elastic else Story(1, job.kind.fields.get("nodes", 1))
    )
    for record in records:
        yield from story.step(record)
    for entry in (*(job.result() or ()), *job.lines("history")) if elastic else ():
        size = story.sizes.get((entry["attempt"], entry["version"]))
        if size != entry["size"]:
            yield f"a step with {entry['size']} workers in version {entry['version']}, in which there were {size}"


def _of_end(job: Submitted, records: Sequence[EventRecord]) -> Iterator[str]:
    """Each job ends with its steps complete, unless its own policy lets a failure end it."""
    ends = [record.body for record in records if isinstance(record.body, events.JobEnded)]
    if not ends:
        return
    end = ends[-1]
    if len(ends) > 1:
        yield "it has ended more than once"
    if end.state is JobState.SUCCEEDED:
        if job.result() is None:
            yield "it has succeeded without its result"
    elif not job.kind.may_fail or end.state is not JobState.ERROR or end.exit is None or end.exit.ok:
        yield f"it ended as {end.state} ({end.cause}, {end.exit})"


def _of_journal(records: Sequence[EventRecord]) -> Iterator[str]:
    """Every step is legal, and no invariant is violated after any."""
    engine = Engine(ClusterState())
    known: set[str] = set()
    for record in records:
        engine.handle(record)
        new = set(violations(engine, record.body)) - known
        known |= new
        yield from (f"event {record.seq} ({type(record.body).__name__}): {each}" for each in sorted(new))


def _of_engine(user: CockpitUser) -> Iterator[str]:
    log = (state_folder(user) / "engine.log").read_text()
    if "Traceback" in log:
        yield f"the engine's log has a traceback: {log[log.index('Traceback') :][:2000]}"
    yield from (f"the engine is in trouble: {each}" for each in user.row("engine", "status")["trouble"])
