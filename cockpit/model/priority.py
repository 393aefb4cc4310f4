"""The factors of a job's priority, with their weights and values."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from cockpit.model.cluster import Weights
from cockpit.model.ids import JobId


class FactorName(StrEnum):
    """The factors, in sprio's order; `present` has their titles."""

    SITE = "site"
    AGE = "age"
    ASSOC = "assoc"
    FAIRSHARE = "fairshare"
    JOB_SIZE = "job_size"
    PARTITION = "partition"
    QOS = "qos"
    TRES = "tres"
    """A factor for each weighted resource."""


class Part(msgspec.Struct, frozen=True):
    """One factor of one job."""

    name: FactorName
    raw: float
    """Between 0 and 1, but for what a NO_NORMAL flag leaves raw."""
    weight: float
    contribution: float
    """raw x weight."""
    tres: str = ""
    """The resource, for the factor TRES."""


class Breakdown(msgspec.Struct, frozen=True):
    """The priority of one job in one partition. Before clamp and truncation: sum of contributions - nice."""

    job: JobId
    partition: str
    total: int
    """The priority as Slurm computes it: clamped to 1 … 2**32 - 1 and truncated; 0: held."""
    parts: tuple[Part, ...]
    """The factors; empty where the priority was set directly, or the cluster starts jobs in order of submission."""
    nice: int = 0
    direct: bool = False
    """An administrator set it."""
    kept: bool = False
    """INCREMENT_ONLY: it was higher than the parts come to now, and stays so."""
    source: str = ""
    """What gives the job this number, where it is no sum of factors: `PriorityClass urgent`."""


Weight = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
"""A weight within the bounds of slurm.conf's PriorityWeight settings."""


class WeightChanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Weights to try out in place of the cluster's. None, or a resource that is left out: the cluster's own weight."""

    age: Weight | None = None
    assoc: Weight | None = None
    fairshare: Weight | None = None
    job_size: Weight | None = None
    partition: Weight | None = None
    qos: Weight | None = None
    tres: dict[str, Annotated[float, msgspec.Meta(ge=0, lt=1 << 32)]] = {}

    @property
    def is_complete(self) -> bool:
        """Whether no weight of the cluster is left, as far as a change can name them all."""
        names = (each for each in self.__struct_fields__ if each != "tres")
        return bool(self.tres) and all(getattr(self, each) is not None for each in names)

    def on(self, weights: Weights) -> Weights:
        """Return the cluster's weights, with these instead where they are given."""
        named = {name: getattr(self, name) for name in self.__struct_fields__ if name != "tres"}
        given = {name: weight for name, weight in named.items() if weight is not None}
        # A weight of 0 is a change as well: it switches the factor off.
        return msgspec.structs.replace(weights, **given, tres=weights.tres | self.tres)
