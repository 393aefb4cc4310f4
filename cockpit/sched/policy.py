"""The scheduler's settings, as an administrator chooses them in the configuration."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from cockpit.model.cluster import Backfill
from cockpit.model.spec import NodeSpec

Target = tuple[NodeSpec, int]
"""The request of one replica, and how often such a request comes."""


class FractionFit(StrEnum):
    """The rule by which a job's nodes are chosen among those that fit."""

    BEST = "best"
    """Shares go to the card with least free that holds them; other jobs to the nodes with the fewest idle cards left
    over."""
    FGD = "fgd"
    """The node where the cluster's fragmentation grows least (fragmentation gradient descent); ties by best fit."""


BEST_FIT: Final = FractionFit.BEST
"""The constant for code that runs in every pass: to look up an enumeration's member takes Python 3.11 ten times as
long."""


class TieOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order of events at the same moment, and after which of them a cycle follows, where time is virtual as in a
    replay. The defaults are those of the simulators behind the published EASY schedules (pyss)."""

    submissions_first: bool = True
    """Submissions come before the ends of the same moment; starts come last."""
    ends_in_order_of_start: bool = True
    """Ends of one moment come in the order in which their jobs started, with a cycle after each; else by id."""
    limits_free_at_once: bool = True
    """A job that reaches its time limit at this moment has freed its resources before anything else happens at it."""
    only_what_fits_sets_off_a_cycle: bool = True
    """A submission is followed by a cycle only if the new job fits."""
    one_cycle_a_moment: bool = False
    """Everything at one moment comes before a single cycle; then the other settings have no effect."""


ONE_CYCLE_A_MOMENT = TieOrder(one_cycle_a_moment=True)
"""The order of the published schedules of conservative backfill."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one cycle."""

    fraction_fit: FractionFit = FractionFit.BEST
    backfill: Backfill = Backfill()
    workload: tuple[Target, ...] = ()
    """The workload that fragmentation is measured against (`FractionFit.FGD`); empty: what is queued and running."""
    ties: TieOrder = TieOrder()
