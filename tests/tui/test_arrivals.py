"""Rows that pour in: shown at once, then some times a second, and all of them in the end."""

from __future__ import annotations

import pytest

from cockpit.model.ids import JobId
from cockpit.present.job.list import Changes
from cockpit.tui.poller import SECONDS_BETWEEN, Arrivals

SOON = SECONDS_BETWEEN / 10


def page(*jobs: int, order_changed: bool = False) -> Changes:
    return Changes([JobId(job) for job in jobs], order_changed)


@pytest.mark.req("PF-12")
def test_pages_in_quick_succession_are_shown_together():
    arrivals = Arrivals()
    assert arrivals.worth_showing(page(1), 0.0, loaded=False) == page(1)
    assert arrivals.worth_showing(page(2, order_changed=True), SOON, loaded=False) is None
    assert arrivals.worth_showing(page(3), 2 * SOON, loaded=False) is None
    assert arrivals.worth_showing(page(4), SECONDS_BETWEEN, loaded=False) == page(2, 3, 4, order_changed=True)
    assert arrivals.worth_showing(page(5), SECONDS_BETWEEN + SOON, loaded=False) is None


@pytest.mark.req("UI-23")
def test_pending_pages_are_shown_once_all_is_loaded_and_later_ones_at_once():
    arrivals = Arrivals()
    arrivals.worth_showing(page(1), 0.0, loaded=False)
    arrivals.worth_showing(page(2, order_changed=True), SOON, loaded=False)
    assert arrivals.worth_showing(page(), 2 * SOON, loaded=True) == page(2, order_changed=True)
    assert arrivals.worth_showing(page(3), 3 * SOON, loaded=True) == page(3)


@pytest.mark.req("UI-29")
def test_pending_rows_can_be_taken_once_when_no_more_arrive():
    arrivals = Arrivals()
    arrivals.worth_showing(page(1), 0.0, loaded=False)
    arrivals.worth_showing(page(2, order_changed=True), SOON, loaded=False)
    assert arrivals.rest() == page(2, order_changed=True)
    assert arrivals.rest() == page()
