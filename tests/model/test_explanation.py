"""The position of a queued job that is shown, and which reasons never pass."""

from __future__ import annotations

import pytest

from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import (
    BehindHead,
    Explanation,
    Held,
    LimitReached,
    NoEligibleNode,
    NoQueue,
    QuotaFull,
    Reason,
)


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
