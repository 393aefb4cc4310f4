"""The scheduler's settings, as an administrator chooses them in the configuration."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FractionFit(StrEnum):
    """Which card a share goes to."""

    BEST = "best"
    """The smallest hole that holds it."""
    FGD = "fgd"
    """Where the cluster's fragmentation grows least (fragmentation gradient descent)."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one cycle."""

    fraction_fit: FractionFit = FractionFit.BEST
    backfill: bool = True
    """Off: nothing passes the first job that waits for room."""
