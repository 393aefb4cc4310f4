"""What a job's priority is made of."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.ids import JobId


class FactorName(StrEnum):
    """In sprio's order; `present` has the words."""

    SITE = "site"
    AGE = "age"
    ASSOC = "assoc"
    FAIRSHARE = "fairshare"
    JOB_SIZE = "job_size"
    PARTITION = "partition"
    QOS = "qos"
    TRES = "tres"
    """One part for each weighted resource."""


class Part(msgspec.Struct, frozen=True):
    """One factor of one job."""

    name: FactorName
    raw: float
    """Between 0 and 1, but for what a NO_NORMAL flag leaves raw."""
    weight: float
    contribution: float
    """raw x weight."""
    tres: str = ""
    """Which resource, for TRES."""


class Breakdown(msgspec.Struct, frozen=True):
    """The priority of one job in one partition. Before clamp and truncation: sum of contributions - nice."""

    job: JobId
    partition: str
    total: int
    """As Slurm computes it: clamped to 1 … 2**32 - 1 and truncated; 0: held."""
    parts: tuple[Part, ...]
    """Empty where the priority was set directly, or the cluster serves in order of submission."""
    nice: int = 0
    direct: bool = False
    """An administrator set it."""
