"""What the demo says was used: weeks before it opened, and what its jobs use as they run and when they have ended."""

from __future__ import annotations

from datetime import datetime

import pytest

from cockpit.backends.demo.fixture import nodes_of, read_fixture, rules_of
from cockpit.backends.demo.past import DAYS, past
from cockpit.backends.demo.scripts import Scripts
from cockpit.engine.views.spending import divided
from cockpit.model.accounting import Span
from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from tests.backends.demo.conftest import HOUR, LAB

DAY_MS = 24 * 3_600_000
BEGINS = Millis(1_800_000_000_000)


@pytest.mark.req("UI-09")
def test_weeks_of_it_are_full_but_never_fuller_than_the_cluster() -> None:
    campus = read_fixture("campus")
    nodes, accounts = nodes_of(campus), rules_of(campus)[1]
    held = list(past(campus, Scripts(campus, 1), nodes, accounts, BEGINS))
    assert held == list(past(campus, Scripts(campus, 1), nodes, accounts, BEGINS)), "the same for the same seed"
    edges = [Millis(BEGINS - back * DAY_MS) for back in range(DAYS, -1, -1)]
    cards = sum(len(node.cards) for node in nodes)
    for day in divided(held, edges):
        assert 0.2 < sum(each.card_milli_ms for each in day) / (cards * 1000 * DAY_MS) < 1
    assert {each.account for each in held} <= {each.account for each in accounts.associations.values() if each.user}
    assert {each.user for each in held} == {user.name for user in campus.users}


@pytest.mark.req("JT-48")
async def test_usage_of_demo_jobs_grows_and_is_within_their_allocation(opened) -> None:
    demo = await opened()
    running = [row for row in await demo.backend.jobs() if row.state is JobState.RUNNING]
    before = {row.id: (await demo.backend.job(row.id)).use for row in running}
    for uses in before.values():
        assert all(use.cpu_ms > 0 and use.memory_mib <= use.peak_memory_mib and use.course for use in uses)
    await demo.elapse(60)
    for job, uses in before.items():
        after = (await demo.backend.job(job)).use
        assert all(late.cpu_ms >= use.cpu_ms for late, use in zip(after, uses, strict=False))
    ended = [each for each in await demo.backend.accounting() if each.elapsed_ms]
    assert ended
    assert all(0 < each.cpu_ms <= each.cpu_held_ms and each.peak_memory_mib for each in ended)


@pytest.mark.req("UI-09")
def test_the_past_is_quieter_at_weekends() -> None:
    lab = read_fixture(LAB)
    nodes, accounts = nodes_of(lab), rules_of(lab)[1]
    spans = list(past(lab, Scripts(lab, 1), nodes, accounts, BEGINS))
    cpus, cards = sum(node.cpus for node in nodes), sum(len(node.cards) for node in nodes)
    days: dict[Millis, list[Span]] = {}
    for span in spans:
        days.setdefault(span.from_at, []).append(span)
    assert len(days) == DAYS + 1
    assert list(days) == sorted(days)
    shares: dict[bool, list[float]] = {True: [], False: []}
    for begins, day in days.items():
        assert {span.user for span in day} == {user.name for user in lab.users}
        share = sum(span.cpus for span in day) / cpus
        assert sum(span.card_milli for span in day) / (1000 * cards) == pytest.approx(share, abs=0.02)
        shares[datetime.fromtimestamp(begins / 1000).weekday() >= 5].append(share)  # noqa: DTZ006 - of this machine
        last = day[0].until_at == BEGINS
        assert day[0].until_at - begins in {23 * HOUR, 24 * HOUR, 25 * HOUR} or last
    assert 0.29 < min(shares[True]) < max(shares[True]) < 0.61
    assert 0.54 < min(shares[False]) < max(shares[False]) < 0.93
    assert spans[-1].until_at == BEGINS
    parts = [span.cpus for span in spans if span.user == "ann"]
    assert max(parts) > 3 * min(parts), "a user is not equally busy on all days"
