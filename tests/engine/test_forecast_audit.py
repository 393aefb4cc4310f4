"""What users of a random cluster with every rule are shown over some hours comes true, or the change has a cause.

`COCKPIT_SEEDS=7000-7500` tries these seeds instead of the few that run always.
"""

from __future__ import annotations

import os

import pytest

from tests.engine.forecast_audit import Audit

ALWAYS = (7002, 7008, 7013, 7017, 7034, 7106, 7129, 7240, 7302, 7367, 7391, 7479, 7515, 7666, 8018, 8179, 9240, 9658)
"""Each of them once contradicted itself."""
STEPS = 60


def seeds() -> tuple[int, ...]:
    first, _, last = os.environ.get("COCKPIT_SEEDS", "").partition("-")
    return tuple(range(int(first), int(last or first) + 1)) if first else ALWAYS


@pytest.mark.req("SC-12", "SC-13")
@pytest.mark.parametrize("seed", seeds())
def test_starts_shown_to_users_come_true(seed: int) -> None:
    audit = Audit(seed)
    assert audit.run(STEPS) == []
    # A seed of your own may make a cluster in which every job starts at once.
    assert audit.counts["course"] + audit.counts["what-ifs"] or "COCKPIT_SEEDS" in os.environ
