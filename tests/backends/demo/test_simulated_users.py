"""When the demo's users submit, and what."""

from __future__ import annotations

from datetime import datetime
from random import Random

import pytest
from msgspec.structs import replace

from cockpit.backends.demo.fixture import Fixture, read_fixture
from cockpit.backends.demo.simulated_users import SimulatedUsers
from cockpit.model.ids import Millis
from cockpit.model.spec import HoldCards, Mode
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.tasks import Tasks
from tests.backends.demo.conftest import HOUR, LAB, Open

OPENING = Millis(1_000 * HOUR)


def users(fixture: Fixture, queued: int = 0) -> SimulatedUsers:
    return SimulatedUsers(
        fixture,
        Random(1),
        opening=OPENING,
        clock=VirtualClock(OPENING),
        seats={},
        queued=lambda: queued,
        tasks=Tasks(),
    )


@pytest.mark.parametrize(
    ("hours", "rate"),
    [
        (0, 5),
        (8.4, 5),  # 17:54
        (8.6, 4),  # 18:06
        (14, 1.5),  # 23:30
        (15, 1.5),  # 0:30
        (4 * 24, 5),  # Friday
        (5 * 24, 2),  # Saturday
        (6 * 24, 2),
        (7 * 24, 5),  # Monday
        (-10, 0.6),  # Sunday at 23:30
    ],
)
def test_users_submit_by_the_hour_of_the_day_and_less_at_the_weekend(hours: float, rate: float) -> None:
    """The lab opens on a Monday at 9:30 here."""
    fixture = replace(read_fixture(LAB), opens_at=datetime(2027, 3, 8, 9, 30))  # noqa: DTZ001 - of this machine
    assert users(fixture).rate(Millis(OPENING + int(hours * HOUR))) == pytest.approx(rate)


@pytest.mark.parametrize(("queued", "eagerness"), [(0, 1), (5, 0.8), (25, 0), (30, 0)])
def test_users_submit_less_when_the_queue_is_long(queued: int, eagerness: float) -> None:
    assert users(read_fixture(LAB), queued)._eagerness() == pytest.approx(eagerness)


@pytest.mark.req("UI-50")
async def test_every_job_has_what_its_template_says(opened: Open) -> None:
    demo = await opened()
    fixture = read_fixture(LAB)
    groups = {user.name: user.group for user in fixture.users}
    jobs = list(demo.host.machine.state.jobs.values())
    assert len({job.spec.name for job in jobs}) == len(jobs)
    assert {job.submitter.name for job in jobs} <= set(groups)
    for job in jobs:
        spec, who = job.spec, job.submitter.name
        template = fixture.template_of(spec.name)
        assert template is not None
        assert spec.output == f"/home/{who}/{template.name}/outputs"
        assert (spec.command, spec.terminal, spec.project) == (template.command, template.terminal, groups[who])
        assert spec.time_limit_seconds / 3600 in template.limits_hours
        assert (spec.mode is Mode.PYTORCH) == (spec.nodes > 1)
        assert (spec.debug_hold.cards is HoldCards.KEEP) == template.keeps_cards
        (each,) = spec.specs
        assert (spec.nodes, each.card_milli, each.cpus, each.memory_mib) in {
            (size.nodes, round(size.cards * 1000), size.cpus, size.memory_gib * 1024) for size in template.sizes
        }


@pytest.mark.req("UI-50")
async def test_from_the_opening_on_the_persons_jobs_are_her_own(opened: Open) -> None:
    demo = await opened()
    opening = demo.now()
    await demo.pace.reach(Millis(opening + 30 * HOUR))
    late = [row for row in await demo.backend.jobs(ended=True) if row.submitted_at > opening]
    assert {row.user for row in late} == {"bob", "eve"}
    early = [row for row in await demo.backend.jobs(ended=True) if row.submitted_at <= opening]
    assert "ann" in {row.user for row in early}
