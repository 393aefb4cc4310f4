"""The multifactor priority, factor by factor, in double precision, exactly as Slurm computes it.

P = W_age x age + W_assoc x assoc + W_fs x fairshare + W_js x size + W_part x partition + W_qos x qos + sum of W_tres,i
x tres_i + site - nice. Results below 1 become 1 (0 means held), those above 2^32 - 1 become that; then they are
truncated.

Source: Slurm's `priority_multifactor.c` (set_priority_factors, _get_priority_internal).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cockpit.model.ids import Millis
from cockpit.model.priority import FactorName, Part

MOST = 2**32 - 1


class Size(NamedTuple):
    """The size of a job or of the cluster."""

    nodes: float
    cpus: float


def age(since: Millis | None, at: Millis, max_age_seconds: int) -> float:
    """Return the part of PriorityMaxAge that has passed at `at`, at most 1; 0 while age does not count yet."""
    if since is None:
        return 0.0
    # ages count to the last update of usage, which may be before the submission
    return min(max(0, at - since) / max(1, 1000 * max_age_seconds), 1.0)


def normalised(value: int, most: int, *, raw: bool) -> float:
    """Return a priority divided by the highest one; `raw` (NO_NORMAL): the priority unchanged."""
    if raw:
        return float(value)
    return value / most if most else 0.0


def job_size(job: Size, cluster: Size, *, small: bool) -> float:
    """Return the job's part of the cluster, the mean of nodes and CPUs; `small`: the part of the rest."""
    if not (cluster.nodes and cluster.cpus):
        return 0.0
    if small:
        nodes, cpus = cluster.nodes - job.nodes, cluster.cpus - job.cpus
    else:
        nodes, cpus = job
    return _within_one((nodes / cluster.nodes + cpus / cluster.cpus) / 2)


def job_size_by_time(job: Size, cluster: Size, limit_seconds: int, *, small: bool) -> float:
    """Return the factor under SMALL_RELATIVE_TO_TIME: CPUs, or the CPUs of its nodes on average, per minute of the time
    limit (rounded up)."""
    if not (cluster.nodes and cluster.cpus):
        return 0.0
    minutes = -(-limit_seconds // 60)
    size = max(job.nodes * cluster.cpus / cluster.nodes, job.cpus) / minutes / cluster.cpus
    return _within_one(1.0 - size if small else size)


def weighted_sum(parts: Iterable[Part], nice: int) -> float:
    """Return the priority before it is clamped and truncated, added in Slurm's order (`sum` would round
    differently)."""
    named = tres = site = 0.0
    for part in parts:
        if part.name is FactorName.TRES:
            tres += part.contribution
        elif part.name is FactorName.SITE:
            site = part.contribution
        else:
            named += part.contribution
    return named + tres + site - nice


def clamped(priority: float) -> int:
    """Clamp the priority to 1 … 2^32 - 1, and truncate it."""
    return int(min(max(priority, 1.0), float(MOST)))


def _within_one(size: float) -> float:
    return min(1.0, max(0.0, size))
