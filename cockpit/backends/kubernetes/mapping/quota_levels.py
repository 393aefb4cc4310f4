"""The test whether a request fits into a queue's quota and those above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cockpit.model.quota import Amounts
from cockpit.model.reasons import QuotaFull

ONE = 1000
"""Amounts are counted in thousandths."""


class QuotaLevel(NamedTuple):
    """A queue or quota that a job counts to: its own, or one above that."""

    path: str
    used: Amounts
    max: Amounts
    """The largest amounts; absent: without bound."""


def first_short(levels: Sequence[QuotaLevel], asked: Amounts) -> QuotaFull | None:
    """Return the first bound that the request would break, from the job's own level up; None: it breaks none.

    The test at each level is `used + asked <= max`.
    """
    for level in levels:
        for resource, most in level.max.items():
            used, wanted = level.used.get(resource, 0), asked.get(resource, 0)
            if wanted and used + wanted > most:
                return QuotaFull(level.path, resource, most / ONE, used / ONE, wanted / ONE)
    return None
