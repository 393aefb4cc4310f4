"""What a job uses, on its page: figures under each other, a chart where there is room, and honest words."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.attempt import Replica
from cockpit.model.ids import Millis, NodeName
from cockpit.model.jobdetail import JobDetail, ReplicaUse
from cockpit.model.node import Card, CardSlice, Node
from cockpit.model.usage import Sample
from cockpit.present.columns import Context
from cockpit.present.job.answer import PanelContext
from cockpit.present.job.usage import usage_tab
from cockpit.present.spans import plain
from cockpit.present.width import width
from tests.doubles.samples import HOUR, NOW
from tests.present.job.test_page import running

STARTED = Millis(NOW - 2 * HOUR)
COURSE = tuple(Sample(HOUR, busy, memory, card) for busy, memory, card in ((1000, 4096, 0), (4000, 15_000, 98)))
USE = ReplicaUse(
    0,
    cpu_ms=5 * HOUR,
    memory_mib=15_000,
    peak_memory_mib=15_500,
    card_percent=98,
    card_memory_mib=40_960,
    mean_card_percent=49,
    peak_card_percent=99,
    peak_card_memory_mib=61_440,
    course=COURSE,
)


def node(**card: object) -> Node:
    cards = (Card(index=0, model="A100", memory_mib=81_920, **card),)
    return Node(name=NodeName("n03"), cpus=8, memory_mib=1 << 15, cards=cards)


def job(*uses: ReplicaUse, ended: bool = False, slices: tuple[CardSlice, ...] = (CardSlice(0, None),)) -> JobDetail:
    end = Millis(NOW - HOUR) if ended else None
    replicas = [Replica(rank=each.rank, started_at=STARTED, ended_at=end) for each in uses]
    found = running(*replicas, use=uses)
    places = tuple(replace(each, slices=slices) for each in found.job.attempt.placement)
    return replace(found, job=replace(found.job, attempt=replace(found.job.attempt, placement=places)))


def shown(detail: JobDetail, columns: int, on: Node | None = None) -> list[str]:
    """From the measured part on."""
    around = PanelContext(Context(now=NOW, zone=UTC), columns, 30, {}, lambda _: None, node={"n03": on}.get)
    lines = [plain(each) for each in usage_tab(detail, around)]
    of_use = lines[next(at for at, each in enumerate(lines) if "measured" in each) :]
    assert all(width(each) <= columns for each in of_use)
    return of_use


@pytest.mark.req("JT-48")
def test_a_running_replica_at_80_columns() -> None:
    assert shown(job(USE), 80, node()) == [
        "  uses, as it is measured",
        "    CPUs            4.0 of 4    ━━━━━━━━━━  5:00:00 CPU time       ▃▃▃▃▃▃██████",
        "    memory        14.6G of 16G  ━━━━━━━━━·  15.1G at most          ▃▃▃▃▃▃▇▇▇▇▇▇",
        "    cards          98 %         ━━━━━━━━━╸  mean 49 %, most 99 %   ▁▁▁▁▁▁██████",
        "    card memory     40G of 80G  ━━━━━·····  60G at most",
    ]


@pytest.mark.req("JT-48")
def test_the_chart_is_wider_on_a_wide_screen_and_absent_on_a_narrow_one() -> None:
    assert len(shown(job(USE), 120, node())[1]) == 119
    assert shown(job(USE), 70, node())[1].endswith("CPU time")


@pytest.mark.req("JT-48")
def test_an_ended_replica_shows_totals() -> None:
    kept = replace(USE, memory_mib=None, card_percent=None, card_memory_mib=None, course=())
    lines = shown(job(kept, ended=True), 80, node())
    assert [each.split() for each in lines[1:4]] == [
        ["CPUs", "5.0", "of", "4", "━━━━━━━━━━", "5:00:00", "CPU", "time"],
        ["memory", "most", "15.1G", "of", "16G", "━━━━━━━━━╸"],
        ["cards", "mean", "49", "%", "━━━━━·····", "most", "99", "%"],
    ]


@pytest.mark.req("JT-48")
@pytest.mark.parametrize(
    ("slices", "card", "words"),
    [
        ((CardSlice(0, None),), {"declared": True}, "not measured: the card is only declared"),
        ((CardSlice(0, 1, 250),), {}, "not measured: a part of a card has no figures of its own"),
        ((CardSlice(0, None),), {}, "not measured"),
    ],
)
def test_an_unmeasured_card_is_reported_as_such(
    slices: tuple[CardSlice, ...], card: dict[str, object], words: str
) -> None:
    nothing = replace(USE, card_percent=None, mean_card_percent=None)
    lines = shown(job(nothing, slices=slices), 80, node(**card))
    assert lines[-1] == f"    cards        {words}"


@pytest.mark.req("JT-48")
def test_many_replicas_are_a_table() -> None:
    lines = shown(job(*(replace(USE, rank=rank) for rank in range(5))), 80, node())
    assert lines[1].split()[:3] == ["RANK", "NODE", "CPU"]
    assert lines[6].split() == [
        "4",
        "n03",
        "5:00:00",
        "4.0",
        "of",
        "4",
        "14.6G",
        "15.1G",
        "16G",
        "98",
        "%",
        "49",
        "%",
        "99",
        "%",
    ]


@pytest.mark.req("JT-48", "UI-25")
@pytest.mark.parametrize(("memory_mib", "role"), [(15_000, "tight"), (8192, "running")])
def test_nearly_full_memory_has_its_own_colour(memory_mib: int, role: str) -> None:
    used = job(replace(USE, memory_mib=memory_mib))
    around = PanelContext(Context(now=NOW, zone=UTC), 80, 30, {}, lambda _: None, node={"n03": node()}.get)
    line = next(each for each in usage_tab(used, around) if plain(each).startswith("    memory "))
    assert {span.role for span in line if "━" in span.text} == {role}
