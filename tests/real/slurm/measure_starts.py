"""Compare predicted starts with real ones, on a real Slurm cluster of this machine.

    python -m tests.real.slurm.measure_starts [--jobs 64] [--seed 1] [--policy multifactor|basic] [--rows FILE]

Jobs of unlike shapes arrive at a cluster and fill it. For each, these are recorded: before it is submitted the answer
of `cockpit predict`, then the column START (Slurm's own estimate) and the likely start of cockpit's plan in `explain`.
When all have started, the errors are printed. It takes about ten minutes, so it is no test of the suite. `--rows`
writes a line of JSON for each job.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.model.forecast import Forecast
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.spec import JobSpec, Mode, NodeSpec
from cockpit.runtime.clock import SystemClock
from tests.builders import a_spec
from tests.real.slurm.conftest import backend_for
from tests.real.slurm.real_cluster import ADA, BEN, PEOPLE, RealCluster

SOON_MS = 10_000
"""A start that takes no longer than this counts as one that was to be at once."""
SHAPES: Sequence[tuple[int, str, dict[str, Any]]] = (
    (1, "batch", {"cpus": 1, "memory_mib": 500}),
    (1, "batch", {"cpus": 4, "memory_mib": 8_000}),
    (1, "batch", {"cpus": 8, "memory_mib": 4_000}),
    (1, "batch", {"cpus": 12, "memory_mib": 16_000}),
    (1, "batch", {"cpus": 2, "memory_mib": 40_000}),
    (2, "batch", {"cpus": 4, "memory_mib": 2_000}),
    (3, "batch", {"cpus": 6, "memory_mib": 2_000}),
    (1, "debug", {"cpus": 2, "memory_mib": 1_000}),
    (1, "gpu", {"cpus": 1, "memory_mib": 4_000, "card_milli": 1000, "card_models": ("a100",)}),
    (1, "gpu", {"cpus": 2, "memory_mib": 8_000, "card_milli": 3000}),
    (1, "gpu", {"cpus": 4, "memory_mib": 8_000, "card_milli": 8000, "card_models": ("h100",)}),
    (2, "gpu", {"cpus": 4, "memory_mib": 8_000, "card_milli": 2000, "card_models": ("a100",)}),
)
"""Nodes, partition, and what each node gives."""


def spec_of(number: int, random: Random, account: str, folder: Path) -> tuple[JobSpec, int]:
    """Return a job, and for how many seconds it runs."""
    nodes, partition, each = random.choice(SHAPES)
    limit = 60 * random.choice((1, 1, 2, 2, 3))
    seconds = int(limit * random.uniform(0.2, 0.9))
    spec = a_spec(f"m{number}", time_limit_seconds=limit, partitions=(partition,), account=account, nodes=nodes)
    spec = replace(spec, specs=(NodeSpec(**each),), mode=Mode.SLURM if nodes > 1 else None, output=str(folder))
    return replace(spec, command=f"sleep {seconds}"), seconds


async def submitted(backend: SlurmBackend, spec: JobSpec) -> dict[str, Any]:
    """Predict the job, submit it, and return the predictions: milliseconds since 1970."""
    at = SystemClock().now()
    (before,) = await backend.predict([spec])
    (job,) = await backend.submit([spec])
    return {"job": int(job), "at": at, **_figures("predict", before.forecast)}


def _figures(name: str, forecast: Forecast) -> dict[str, Any]:
    return {
        f"{name}_now": forecast.now,
        f"{name}": forecast.likely_at,
        f"{name}_from": forecast.likely_from,
        f"{name}_to": forecast.likely_to,
        f"{name}_latest": forecast.latest_at,
    }


async def shown(backend: SlurmBackend, row: dict[str, Any]) -> None:
    """Add what a user sees of a queued job once Slurm has planned it."""
    job = JobId(row["job"])
    for _ in range(20):
        found = {each.id: each for each in await backend.jobs()}.get(job)
        if found is None or found.state is not JobState.QUEUED:
            return
        if found.starts_by is not None:
            row["slurm"] = found.starts_by
            break
        await asyncio.sleep(0.5)
    row["waited"] = True
    row |= _figures("explain", (await backend.explain(job)).forecast)


async def measure(cluster: RealCluster, jobs: int, seed: int) -> list[dict[str, Any]]:
    random, rows = Random(seed), []
    backends = {person: backend_for(cluster, person) for person in PEOPLE}
    for number in range(jobs):
        person = random.choice((ADA, ADA, BEN))
        account = "vision" if person == ADA else "nlp"
        spec, _ = spec_of(number, random, account, cluster.home(person))
        row = await submitted(backends[person], spec)
        await shown(backends[person], row)
        row |= {"shape": f"{spec.partitions[0]} {spec.nodes}x{spec.specs[0].cpus}", "limit": spec.time_limit_seconds}
        rows.append(row)
        sys.stderr.write(f"\r{number + 1} of {jobs} submitted")
    by_job = {row["job"]: row for row in rows}
    while waiting := [row for row in rows if "real" not in row]:
        for each in await backends[ADA].jobs(ended=True):
            if each.id in by_job and each.started_at is not None:
                by_job[each.id]["real"] = each.started_at
        sys.stderr.write(f"\r{len(waiting)} jobs have not started yet   ")
        await asyncio.sleep(2)
    for backend in backends.values():
        await backend.close()
    return rows


def line_of(name: str, rows: Iterable[dict[str, Any]], key: str) -> str:
    """Return the line of the table for one source of predictions."""
    rows = list(rows)
    known = [row for row in rows if row.get(key) is not None]
    errors = sorted(abs(row["real"] - max(row[key], row["at"])) / 1000 for row in known)
    ranged = [row for row in known if row.get(f"{key}_to") is not None]
    inside = [row for row in ranged if row[f"{key}_from"] - SOON_MS <= row["real"] <= row[f"{key}_to"] + SOON_MS]
    bound = [row for row in rows if row.get(f"{key}_latest") is not None]
    held = [row for row in bound if row["real"] <= row[f"{key}_latest"] + SOON_MS]
    late = sum(row["real"] > row[key] + SOON_MS for row in known)
    middle = f"{statistics.median(errors):.0f} s" if errors else "-"
    ninth = f"{errors[int(0.9 * (len(errors) - 1))]:.0f} s" if errors else "-"
    return (
        f"{name:<9} {len(known):>3} of {len(rows):<3} {middle:>6} {ninth:>6}  {late:>3} later"
        f"  range {len(inside)}/{len(ranged)}  bound {len(held)}/{len(bound)}"
    )


def report(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    now = [row for row in rows if row["predict_now"]]
    yes = sum(row["real"] - row["at"] <= SOON_MS for row in now)
    yield f"{len(rows)} jobs; {len(now)} predicted to start at once, {yes} of them did"
    waited = [row for row in rows if row.get("waited")]
    sat = [(row["real"] - row["at"]) / 1000 for row in waited]
    yield f"{len(waited)} waited, {statistics.median(sat):.0f} s in the middle, {max(sat):.0f} s at most"
    yield line_of("predict", [row for row in rows if not row["predict_now"]], "predict")
    yield line_of("explain", waited, "explain")
    yield line_of("START", waited, "slurm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", choices=("multifactor", "basic"), default="multifactor")
    parser.add_argument("--rows", type=Path)
    args = parser.parse_args()

    class Measured(RealCluster):
        def _conf(self) -> str:
            return super()._conf().replace("PriorityType=priority/multifactor", f"PriorityType=priority/{args.policy}")

    with tempfile.TemporaryDirectory(prefix="cockpit-slurm-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        cluster = Measured(Path(folder))
        try:
            cluster.begin()
            rows = asyncio.run(measure(cluster, args.jobs, args.seed))
        finally:
            cluster.end()
    if args.rows is not None:
        args.rows.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sys.stdout.write("\n".join(["", *report(rows), ""]))


if __name__ == "__main__":
    main()
