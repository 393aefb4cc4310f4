"""Measures the quality of a schedule by the usual figures: waiting time, slowdown, utilization."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

BOUND_SECONDS = 10
"""τ of the bounded slowdown: shorter jobs count as if they were so long."""


class Run(msgspec.Struct, frozen=True):
    """One job of a schedule; times in seconds."""

    submitted: int
    waited: int
    ran: int
    processors: int

    @property
    def bounded_slowdown(self) -> float:
        """max(1, (wait + run) / max(run, τ)), after Feitelson et al., "Theory and Practice in Parallel Job Scheduling",
        1997."""
        return max(1.0, (self.waited + self.ran) / max(self.ran, BOUND_SECONDS))

    @property
    def ended(self) -> int:
        return self.submitted + self.waited + self.ran


class Figures(msgspec.Struct, frozen=True):
    """Means over all jobs, and the share of the machine in use from the first submission to the last end."""

    mean_bounded_slowdown: float
    mean_wait: float
    utilisation: float


def figures(runs: Sequence[Run], processors: int) -> Figures:
    """Return the figures of a schedule; all are 0 for one without jobs."""
    if not runs:
        return Figures(0.0, 0.0, 0.0)
    span = max(run.ended for run in runs) - min(run.submitted for run in runs)
    used = sum(run.processors * run.ran for run in runs)
    return Figures(
        mean_bounded_slowdown=fsum(run.bounded_slowdown for run in runs) / len(runs),
        mean_wait=sum(run.waited for run in runs) / len(runs),
        utilisation=used / (processors * span) if span else 0.0,
    )
