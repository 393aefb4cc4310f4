"""What a fleet says."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model import events
from cockpit.model.attempt import RemotePart
from cockpit.model.fleet import Member
from cockpit.model.ids import JobId, NodeName
from cockpit.model.node import Allocation
from cockpit.model.reasons import ClusterShort, NoMemberPlacement, Reason, Resource
from cockpit.present.events.sentences import event_job, event_sentence, member_lines
from cockpit.present.reasons import reason_sentence
from tests.doubles.samples import NOW
from tests.present.corpus import HOSTILE, is_harmless

JOB = JobId(4711)
PLACE = tuple(Allocation(rank, NodeName(f"beijing/n{rank}"), 1, 1) for rank in range(3))
TRIED_AGAIN = "though enough is free in all; tried again when resources become free there"
BOUND = "ScheduleBindingSucceed: Binding has been scheduled successfully. Result:"

REASONS: list[tuple[Reason, str]] = [
    (
        ClusterShort("beijing", Resource.CARDS, 32, 12, ("A100",)),
        "waits for 32 A100 in one cluster; beijing has 12 free in all",
    ),
    (
        ClusterShort("beijing", Resource.MEMORY, 2048, 1024),
        "waits for 2G of memory in one cluster; beijing has 1G free in all",
    ),
    (NoMemberPlacement(("beijing", "hangzhou"), NOW), f"beijing and hangzhou could not fit it at 12:00, {TRIED_AGAIN}"),
]
PART = RemotePart(member="west", own="12")
EVENTS: list[tuple[events.EventBody, str]] = [
    (
        events.JobPlaced(JOB, 1, 0, PLACE, "beijing", 0, ("beijing",) * 3),
        f"{BOUND} {{beijing:0,[{{master 1}} {{worker 2}}]}}",
    ),
    (
        events.JobPlaced(JOB, 2, 0, PLACE, "fleet", 0, ("beijing", "hangzhou", "hangzhou")),
        f"{BOUND} {{beijing:0,[{{master 1}}], hangzhou:0,[{{worker 2}}]}} (attempt 2)",
    ),
    (events.MemberPlaced(JOB, 1, "beijing", PLACE[:2]), "beijing placed 2 replicas: beijing/n0 and beijing/n1"),
    (
        events.BindingGivenUp(JOB, 1, ("beijing",), ("hangzhou", "beijing")),
        "beijing did not place it in time; it is scheduled again",
    ),
    (
        events.BindingGivenUp(JOB, 1, ("beijing", "hangzhou"), (), revoked=True),
        "beijing and hangzhou did not place it in time; it waits in its queue to be admitted again",
    ),
    (
        events.RemotePartChanged(JOB, 1, PART),
        "west has the part as 12: holds it until all other clusters have theirs",
    ),
    (events.RemotePartChanged(JOB, 1, replace(PART, is_released=True)), "west has the part as 12: may start it"),
    (
        events.RemotePartChanged(JOB, 1, replace(PART, is_released=True, is_recalled=True)),
        "not all parts began in time: west must give part 12 back before it starts elsewhere",
    ),
    (
        events.RemotePartChanged(JOB, 1, replace(PART, own="")),
        "west has lost the part before it was released; it is ordered again",
    ),
    (events.OthersHeld("beijing", (PLACE, PLACE)), "beijing runs 2 jobs of its own"),
]


def record(body: events.EventBody) -> events.EventRecord:
    return events.EventRecord(seq=1, at=NOW, actor="engine", origin="scheduler", body=body)


@pytest.mark.parametrize(("reason", "sentence"), REASONS, ids=[sentence[:40] for _, sentence in REASONS])
@pytest.mark.req("FL-06", "FL-08")
def test_every_reason_has_its_sentence(reason: Reason, sentence: str) -> None:
    assert reason_sentence(reason, NOW, UTC) == sentence


@pytest.mark.parametrize(("body", "sentence"), EVENTS, ids=[sentence[:60] for _, sentence in EVENTS])
@pytest.mark.req("FL-04", "FL-08")
def test_every_event_has_its_sentence(body: events.EventBody, sentence: str) -> None:
    assert event_sentence(record(body), UTC) == sentence


def test_allocations_of_the_members_own_jobs_belong_to_no_job() -> None:
    assert event_job(events.OthersHeld("a", ())) is None
    assert event_job(events.BindingGivenUp(JOB, 1, (), ())) == JOB


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_names_of_clusters_are_escaped(hostile: str) -> None:
    place = (Allocation(0, NodeName(hostile), 1, 1),)
    bodies: list[events.EventBody] = [
        events.JobPlaced(JOB, 1, 0, place, "", 0, (hostile,)),
        events.MemberPlaced(JOB, 1, hostile, place),
        events.BindingGivenUp(JOB, 1, (hostile,), ()),
        events.RemotePartChanged(JOB, 1, RemotePart(member=hostile, own=hostile)),
        events.OthersHeld(hostile, ()),
    ]
    reasons: list[Reason] = [
        ClusterShort(hostile, Resource.CARDS, 1, 0, (hostile,)),
        NoMemberPlacement((hostile,), NOW),
    ]
    assert all(is_harmless(event_sentence(record(body), UTC)) for body in bodies)
    assert all(is_harmless(reason_sentence(reason, NOW, UTC)) for reason in reasons)


@pytest.mark.req("FL-06")
def test_the_binding_mode_of_a_cluster_is_shown_with_its_missing_features() -> None:
    good = {"kubernetes": "1.28", "scheduler": "6.8.0", "enable_reservation": True}
    members = [Member(name="new", **good), Member(name="old", **{**good, "kubernetes": "1.26.15"})]
    assert member_lines(members) == [
        "# new is bound to by reservation",
        "# old is bound to by totals: Kubernetes 1.26.15 is older than 1.28",
    ]
