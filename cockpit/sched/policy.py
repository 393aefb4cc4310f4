"""The scheduler's settings, as an administrator chooses them in the configuration."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.cluster import Backfill
from cockpit.model.spec import NodeSpec

Target = tuple[NodeSpec, int]
"""What one replica asks for, and how often that comes."""


class FractionFit(StrEnum):
    """Where a job goes of all the places it could."""

    BEST = "best"
    """Shares: the smallest hole that holds them. The rest: where the fewest cards are left stranded."""
    FGD = "fgd"
    """Where the cluster's fragmentation grows least (fragmentation gradient descent); equal places by best fit."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one cycle."""

    fraction_fit: FractionFit = FractionFit.BEST
    backfill: Backfill = Backfill()
    workload: tuple[Target, ...] = ()
    """What fragmentation is measured against (`FractionFit.FGD`); empty: what is queued and running."""
