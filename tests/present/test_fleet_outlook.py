"""The lines about what each cluster of a fleet has for a waiting job."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.fleet import BindingMode
from cockpit.model.fleetoutlook import MemberOutlook
from cockpit.model.ids import Millis
from cockpit.model.reasons import Resource
from cockpit.present.columns import Context
from cockpit.present.fleet_outlook import member_lines, members_json
from tests.doubles.samples import NOW

pytestmark = pytest.mark.req("FL-06", "FL-08")
IN_VAIN = "it could not place the job at 12:00, and has released nothing since"
WEST = MemberOutlook(
    cluster="west",
    mode=BindingMode.TOTALS,
    replicas=2,
    fitting=1,
    cpus=4,
    free_cpus=64,
    memory_mib=2048,
    free_memory_mib=1 << 20,
    card_milli=16_000,
    free_card_milli=9_000,
    short=Resource.CARDS,
    likely_at=Millis(NOW + 25 * 60_000),
)


@pytest.mark.parametrize(
    ("member", "text"),
    [
        (WEST, "on west: in 25 min  9 cards free of the 16 asked; by totals, 1 of 2 replicas fit"),
        (
            replace(WEST, mode=BindingMode.RESERVATION, fitting=2, short=None, starts_now=True),
            "on west: now  9 cards free of the 16 asked; on its nodes, 2 of 2 replicas fit",
        ),
        (
            replace(WEST, short=Resource.CPUS, free_cpus=1, likely_at=None),
            "on west: not known when  1 CPUs free of the 4 asked; by totals, 1 of 2 replicas fit",
        ),
        (
            replace(WEST, short=Resource.MEMORY, free_memory_mib=1024, out="west does not answer: no route"),
            "on west: in 25 min  1G of memory free of the 2G asked; west does not answer: no route",
        ),
        (
            replace(WEST, in_vain_at=NOW),
            f"on west: in 25 min  9 cards free of the 16 asked; {IN_VAIN}",
        ),
    ],
)
def test_each_member_says_when_what_and_why(member: MemberOutlook, text: str) -> None:
    (shown,) = member_lines([member], Context(now=NOW, zone=UTC))
    assert "".join(span if isinstance(span, str) else span.text for span in shown).strip() == text
    (data,) = members_json([member], Context(now=NOW, zone=UTC))
    assert data["sentence"] in text
    assert data["starts_now"] is member.starts_now
