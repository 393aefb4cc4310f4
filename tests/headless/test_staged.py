"""The copies on a machine, listed and removed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cockpit.headless.exitcodes import ExitCode
from cockpit.model.ids import JobId, Millis
from cockpit.model.staging import Progress, StagedCopy
from tests.builders import HOUR
from tests.doubles.samples import NOW

if TYPE_CHECKING:
    from tests.headless.conftest import Desk

CATS = StagedCopy(
    key="4f2a90c1d3e8" + "0" * 52,
    what="dataset",
    source="/data/cats",
    size=3 << 30,
    users=("ann", "bob"),
    made_at=Millis(NOW - 2 * HOUR),
    used_at=Millis(NOW - HOUR),
    jobs=(),
)
COMING = StagedCopy(
    key="77" * 32,
    what="image",
    source="/images/torch.tar",
    size=1 << 30,
    users=(),
    made_at=NOW,
    used_at=NOW,
    jobs=(JobId(4711),),
    progress=Progress(1 << 29, 1 << 30, 1 << 28),
)


@pytest.mark.req("JT-50")
def test_copies_are_listed_with_size_users_and_last_use(desk: Desk) -> None:
    desk.backend.copies = [CATS, COMING]
    first, second = json.loads(desk("staged", "-o", "json").out)["rows"]
    assert (first["key"], first["state"], first["size_mib"], first["users"]) == (
        "4f2a90c1d3e8",
        "kept",
        3072,
        ["ann", "bob"],
    )
    assert (second["state"], second["jobs"], second["done"]) == ("copying", ["4711"], "50%")
    table = desk("staged").out.decode()
    assert "/data/cats" in table
    assert "3G" in table
    desk.backend.copies = []
    assert "Nothing is staged" in desk("staged", terminal=True).out.decode() + desk("staged", terminal=True).err


@pytest.mark.req("JT-50")
def test_copies_are_removed_by_their_keys(desk: Desk) -> None:
    assert desk("staged", "remove", "4f2a90c1d3e8").lines == ["removed 4f2a90c1d3e8"]
    assert desk.backend.asked[-1] == ("unstage", "4f2a90c1d3e8")
    assert desk("staged", "remove").code == ExitCode.USAGE
