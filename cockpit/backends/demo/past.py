"""Invents the use of the demo's cluster in the weeks before it opens: sums by user and day, for accounting.

Invented by the same chance as the rest; no job of those days can be looked at.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cockpit.engine.submission.account_defaults import default_account
from cockpit.model.accounting import Span
from cockpit.model.accounts import NORMAL
from cockpit.model.ids import JobId, Millis
from cockpit.model.spec import WHOLE_CARD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from cockpit.backends.demo.fixture import Fixture, User
    from cockpit.backends.demo.scripts import Scripts
    from cockpit.model.accounts import Accounts
    from cockpit.model.node import Node

DAYS: Final = 90
SATURDAY: Final = 5
WORKDAY, WEEKEND = (0.55, 0.92), (0.3, 0.6)
"""The range of the cluster's utilization."""
MOODS: Final = (0.2, 1.8)
"""The range of a user's daily use relative to the average."""


def past(
    fixture: Fixture, scripts: Scripts, nodes: tuple[Node, ...], accounts: Accounts, until: Millis
) -> Iterator[Span]:
    """Yield what each user used on each day up to `until`, the oldest day first."""
    cards, cpus = sum(len(node.cards) for node in nodes), sum(node.cpus for node in nodes)
    midnight = datetime.fromtimestamp(until / 1000).replace(hour=0, minute=0, second=0, microsecond=0)  # noqa: DTZ006 - of the machine that shows it
    for back in range(DAYS, -1, -1):
        day = midnight - timedelta(days=back)
        # By the calendar and not plus 24 hours: a day on which the clocks change has 23 or 25.
        ends = min(until, _millis(day + timedelta(days=1)))
        # A chance for each day, so that one more user or day does not change what the others used.
        chance = scripts.chance("past", back)
        full = chance.uniform(*(WEEKEND if day.weekday() >= SATURDAY else WORKDAY))
        for user, part in _parts(fixture, chance):
            yield Span(
                # No job has this id: the sums belong to none.
                job=JobId(0),
                attempt=0,
                user=user.name,
                account=default_account(accounts, user.name),
                project=user.group,
                qos=NORMAL,
                from_at=_millis(day),
                until_at=ends,
                cpus=round(cpus * full * part),
                card_milli=round(cards * WHOLE_CARD * full * part),
            )


def _parts(fixture: Fixture, chance: Random) -> list[tuple[User, float]]:
    """Return each user's share of the day's jobs; together 1."""
    wants = [(user, user.weight * chance.uniform(*MOODS)) for user in fixture.users]
    whole = sum(weight for _, weight in wants)
    return [(user, weight / whole) for user, weight in wants]


def _millis(moment: datetime) -> Millis:
    return Millis(int(moment.timestamp() * 1000))
