"""What a long list of Slurm's costs beyond the time of its `squeue`."""

from __future__ import annotations

from datetime import UTC
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.listing import FIELDS, read
from cockpit.backends.slurm.rows import Rows
from cockpit.model.ids import Millis

if TYPE_CHECKING:
    from tests.bench.figures import Figures

JOBS, ROUNDS = 10_000, 5
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


def test_ten_thousand_jobs(figure: Figures) -> None:
    text, took = printed(), []
    for _ in range(ROUNDS):
        before = perf_counter()
        jobs = [Listed(fields, UTC) for fields in read(text, "~s~")]
        rows = Rows("ann").of(jobs, {}, Millis(0))
        took.append(perf_counter() - before)
        assert len(rows) == JOBS
    figure("PF-21", "from what squeue printed to rows, 10 000 jobs", median(took))
