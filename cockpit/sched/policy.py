"""The scheduler's settings, as an administrator chooses them in the configuration."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

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


BEST_FIT: Final = FractionFit.BEST
"""For what is done in every pass: to look up an enumeration's member takes Python 3.11 ten times as long."""


class Ties(msgspec.Struct, frozen=True, kw_only=True):
    """What comes first of the things that happen at one moment, and after which of them a cycle follows: where time is
    virtual, as in a replay. The defaults are those of the simulators behind the published EASY schedules (pyss)."""

    submissions_first: bool = True
    """Before the ends of the same moment; starts come last."""
    ends_in_order_of_start: bool = True
    """Ends of one moment go in the order in which their jobs started, a cycle after each; else in order of id."""
    limits_free_at_once: bool = True
    """A job that reaches its time limit at this moment has freed its resources before anything else happens at it."""
    only_what_fits_sets_off_a_cycle: bool = True
    """A submission is followed by a cycle only if there is room for the new job."""
    one_cycle_a_moment: bool = False
    """Everything that happens at a moment happens before one cycle at it; then the above does not matter."""


ONE_CYCLE_A_MOMENT = Ties(one_cycle_a_moment=True)
"""As published for conservative backfill."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one cycle."""

    fraction_fit: FractionFit = FractionFit.BEST
    backfill: Backfill = Backfill()
    workload: tuple[Target, ...] = ()
    """What fragmentation is measured against (`FractionFit.FGD`); empty: what is queued and running."""
    ties: Ties = Ties()
