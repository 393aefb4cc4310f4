from __future__ import annotations

import json

import pytest

from tests.headless.conftest import Desk


@pytest.mark.req("SC-12", "UI-40")
def test_queued_jobs_are_in_order_of_their_likely_start(desk: Desk) -> None:
    rows = json.loads(desk("starts", "-o", "json").out)["rows"]
    known = [row for row in rows if row["starts_at"] is not None]
    assert [row["id"] for row in known] == [4720]
    assert rows[0] == known[0]
    assert rows[0]["starts_in_seconds"] > 0
    states = {row["id"]: row["state"] for row in json.loads(desk("jobs", "-o", "json").out)["rows"]}
    assert {states[row["id"]] for row in rows} == {"queued"}


def test_starts_are_filtered_like_jobs(desk: Desk) -> None:
    rows = json.loads(desk("starts", "--filter", "user:nobody", "-o", "json").out)["rows"]
    assert rows == []
