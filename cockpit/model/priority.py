"""What a job's priority is made of."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from cockpit.model.cluster import Weights
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
    kept: bool = False
    """INCREMENT_ONLY: it was higher than the parts come to now, and stays so."""


Weight = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
"""What slurm.conf takes for a PriorityWeight."""


class WeightChanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Other weights than the cluster's, to try out. None, or a resource that is left out: as they are."""

    age: Weight | None = None
    assoc: Weight | None = None
    fairshare: Weight | None = None
    job_size: Weight | None = None
    partition: Weight | None = None
    qos: Weight | None = None
    tres: dict[str, Annotated[float, msgspec.Meta(ge=0, lt=1 << 32)]] = {}

    def on(self, weights: Weights) -> Weights:
        """The cluster's weights with these in their place."""
        named = {name: getattr(self, name) for name in self.__struct_fields__ if name != "tres"}
        given = {name: weight for name, weight in named.items() if weight is not None}
        return msgspec.structs.replace(weights, **given, tres=weights.tres | self.tres)
