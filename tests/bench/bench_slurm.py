"""What a long list of Slurm's costs beyond the time of its `squeue`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from datetime import UTC
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.listing import FIELDS, read
from cockpit.backends.slurm.past import RECENTLY
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.rows import Rows
from cockpit.backends.slurm.wire.answers import PROGRAMS, Answers
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.model.ids import Millis
from cockpit.present.columns import Context
from cockpit.runtime.clock import VirtualClock
from cockpit.tui.opening import GC_THRESHOLDS
from cockpit.tui.rows.lists import JobRows

if TYPE_CHECKING:
    from tests.bench.figures import Figures

JOBS, ROUNDS = 10_000, 5
COLUMNS, LINES = 120, 30
PLAIN = {
    "NumNodes": "1",
    "NumCPUs": "4",
    "State": "PENDING",
    "UserName": "ann",
    "UserID": "1000",
    "GroupID": "1000",
    "TimeLimit": "1:00:00",
    "SubmitTime": "2026-11-21T08:00:00",
    "EligibleTime": "2026-11-21T08:00:00",
    "AccrueTime": "2026-11-21T08:00:00",
    "Partition": "gpu",
    "Account": "vision",
    "QOS": "normal",
    "Reason": "Priority",
    "PriorityLong": "1234",
    "tres-alloc": "cpu=4,mem=8G,node=1,billing=4,gres/gpu=2,gres/gpu:a100=2",
    "NodeList": "",
}


def printed() -> str:
    """As squeue prints ten thousand waiting jobs."""
    plain = dict.fromkeys(FIELDS, "N/A") | PLAIN
    records = (plain | {"JobID": str(job), "STDOUT": f"/home/ann/slurm-{job}.out"} for job in range(1, JOBS + 1))
    return "".join("".join(f"{value}~s~" for value in each.values()) + "\n" for each in records)


@pytest.fixture(autouse=True)
def as_seldom_collected_as_in_the_app() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    yield
    gc.set_threshold(*before)


class Busy(RecordedCommands):
    """A recorded cluster with ten thousand jobs in its queue, which it knows by heart."""

    def __init__(self) -> None:
        super().__init__("22.05")
        self._squeue = printed()

    def _printed(self, argv: Sequence[str]) -> str:
        if argv[0] != "squeue":
            return super()._printed(argv)
        return self._squeue.replace("~s~", argv[-1].rpartition(":")[2])


def test_ten_thousand_jobs(figure: Figures) -> None:
    text, took = printed(), []
    for _ in range(ROUNDS):
        before = perf_counter()
        jobs = [Listed(fields, UTC) for fields in read(text, "~s~")]
        rows = Rows("ann").of(jobs, {}, Millis(0))
        took.append(perf_counter() - before)
        assert len(rows) == JOBS
    figure("PF-21", "from what squeue printed to rows, 10 000 jobs", median(took))


async def test_ten_thousand_jobs_listed_and_drawn(figure: Figures) -> None:
    took = []
    for _ in range(ROUNDS):
        commands = Busy()
        clock = VirtualClock(commands.recorded_at)
        reading = Reading(Answers(commands, clock.now, Random(1)), clock.now)
        backend = SlurmBackend("bench", commands, reading, clock, "ann")
        await reading.everything(closely=False)
        await reading.sacct.ended(RECENTLY)
        reading.forget(PROGRAMS)
        context = Context(now=clock.now(), zone=UTC, user="ann")
        before = perf_counter()
        delta = await anext(aiter(backend.watch_jobs()))
        shown = JobRows(lambda context=context: context)
        shown.folds.replace_all(delta.changed)
        cells = [shown.cells(row_id, COLUMNS) for row_id in shown.order[:LINES]]
        took.append(perf_counter() - before)
        assert (len(cells), len(delta.changed) >= JOBS) == (LINES, True)
    figure("PF-21", "10 000 Slurm jobs, beyond squeue's own time", median(took))
