"""The position of a queued job that is shown."""

from __future__ import annotations

import pytest

from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import BehindHead, Explanation, Held, NoEligibleNode, NoQueue, Reason


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
