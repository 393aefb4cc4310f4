"""The position of a queued job that is shown, and which reasons never pass."""

from __future__ import annotations

import pytest

from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.reasons import (
    BehindHead,
    DependencyNever,
    Explanation,
    Held,
    InReservation,
    LimitReached,
    NeverFits,
    NoAlternative,
    NoAssociation,
    NoEligibleNode,
    NoQueue,
    PartitionRefuses,
    PartitionRule,
    QosRefused,
    QuotaFull,
    Reason,
    never_starts,
)
from cockpit.model.spec import DependencyKind


@pytest.mark.req("SC-12")
@pytest.mark.parametrize(
    ("reason", "place"),
    [
        (BehindHead(JobId(3)), 4),
        (NoEligibleNode(out_of_service=("n1",)), 4),
        (Held("ann", Millis(0)), None),
        (NoQueue("vision"), None),
        (NoEligibleNode(labels=("disk=ssd",)), None),
    ],
)
def test_a_job_has_a_position_unless_it_is_held_or_can_never_start(reason: Reason, place: int | None) -> None:
    assert Explanation(JobId(9), reason, 4, ()).place == place


@pytest.mark.req("SC-13")
@pytest.mark.parametrize(
    ("limit", "asked", "never"),
    [("GrpTRES", 5, True), ("GrpTRES", 4, False), ("MinTRESPerJob", 3, True), ("MinTRESPerJob", 4, False)],
)
def test_a_limit_that_the_job_alone_breaks_never_passes(limit: str, asked: int, never: bool) -> None:
    assert LimitReached("account nlp", limit, "cpu", 4, 0, asked).never is never
    assert LimitReached("account nlp", limit).used == 0


@pytest.mark.req("SC-13")
def test_a_quota_smaller_than_the_job_never_passes() -> None:
    assert [QuotaFull("root", "cpu", 4, 4, asked).never for asked in (4, 5)] == [False, True]


DOWN = PartitionRefuses("gpu", PartitionRule.STATE, "down")
NEVER = NeverFits(None, 4, 2)


@pytest.mark.req("SC-13")
@pytest.mark.parametrize(
    ("reason", "never"),
    [
        (NEVER, True),
        (DependencyNever(DependencyKind.AFTER_OK, JobId(1)), True),
        (NoAssociation("ann"), True),
        (QosRefused("high", ("normal",)), True),
        (NoQueue("vision"), True),
        (BehindHead(JobId(3)), False),
        (DOWN, False),
        (PartitionRefuses("gpu", PartitionRule.STATE, "inactive"), False),
        (PartitionRefuses("gpu", PartitionRule.STATE, "drain"), True),
        (PartitionRefuses("gpu", PartitionRule.MAX_NODES, "4"), True),
        (InReservation("r", start_at=Millis(5)), False),
        (InReservation("r"), True),
        (InReservation("r", start_at=Millis(5), end_at=Millis(9)), True),
        (InReservation("r", end_at=Millis(9)), True),
        (NoAlternative((NEVER, NoEligibleNode(labels=("disk=ssd",)))), True),
        (NoAlternative((NEVER, NoEligibleNode(out_of_service=(NodeName("n1"),)))), False),
        (QuotaFull("root", "cpu", 4, 4, 5), True),
    ],
)
def test_what_is_expected_to_return_or_to_begin_does_not_keep_a_job_from_starting_for_ever(
    reason: Reason, never: bool
) -> None:
    assert never_starts(reason) is never
